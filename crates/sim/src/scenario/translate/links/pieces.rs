//! Whether a fabric is one piece: traffic climbs and then descends, so two nodes need something above them both.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use metronome_core::model::cluster::{Cluster, Vertex};
use metronome_core::model::id::NodeId;

use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::Placed;

/// The vertices above one from which nothing leads further up.
type Tops = Rc<BTreeSet<Vertex>>;

/// Two nodes have something above them both exactly if they have a top in common.
pub(super) fn check_one_piece(cluster: &Cluster, links: &impl Placed) -> Result<(), Problem> {
    let tops = tops(cluster);
    let mut kinds: BTreeMap<&BTreeSet<Vertex>, NodeId> = BTreeMap::new();
    for (node, own) in &tops {
        kinds.entry(own).or_insert(*node);
    }
    let name = |node: NodeId| quoted(&cluster.node(node).name);
    let mut common = kinds.keys().next().map_or_else(BTreeSet::new, |first| (*first).clone());
    common.retain(|top| kinds.keys().all(|tops| tops.contains(top)));
    if !common.is_empty() {
        return Ok(());
    }
    for (place, (tops, node)) in kinds.iter().enumerate() {
        if let Some((_, other)) = kinds.iter().skip(place + 1).find(|(others, _)| tops.is_disjoint(others)) {
            let (first, second) = (node.min(other), node.max(other));
            return Err(links
                .problem(format!("no links lead from {} to {}", name(*first), name(*second)))
                .with_hint("lead both up to a switch that they have in common"));
        }
    }
    Ok(())
}

fn tops(cluster: &Cluster) -> BTreeMap<NodeId, Tops> {
    let mut above: BTreeMap<Vertex, Vec<Vertex>> = BTreeMap::new();
    // Links come in pairs, the one upwards first.
    for link in cluster.fabric.links().values().step_by(2) {
        above.entry(link.from).or_default().push(link.to);
    }
    let mut known: BTreeMap<Vertex, Tops> = BTreeMap::new();
    cluster.nodes().ids().map(|node| (node, tops_of(Vertex::Node(node), &above, &mut known))).collect()
}

/// Depth first with a stack of its own: a chain of switches may be long.
fn tops_of(start: Vertex, above: &BTreeMap<Vertex, Vec<Vertex>>, known: &mut BTreeMap<Vertex, Tops>) -> Tops {
    let mut stack = vec![start];
    while let Some(vertex) = stack.last().copied() {
        let higher = above.get(&vertex).map_or(&[][..], |higher| higher);
        let unknown = higher.iter().find(|next| !known.contains_key(next));
        if let Some(next) = unknown {
            stack.push(*next);
            continue;
        }
        let tops = match higher {
            [] => Rc::new(BTreeSet::from([vertex])),
            [only] => known[only].clone(),
            several => Rc::new(several.iter().flat_map(|next| known[next].iter().copied()).collect()),
        };
        known.insert(vertex, tops);
        stack.pop();
    }
    known[&start].clone()
}
