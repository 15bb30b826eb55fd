//! Links: a tree of switches, one for each domain, or any graph said from below to above.

mod pieces;

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::model::cluster::{Cluster, Fabric, Level, Vertex};
use metronome_core::model::id::{DomainId, LinkId, NodeId};
use metronome_core::model::units::Bandwidth;
use serde_saphyr::Spanned;

use crate::near::meant_or_known;
use crate::scenario::documents::{Cable, EndsShape, Links};
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{Placed, Text, name, some_quantity};

/// Lays the links of a cluster; the rate within a node, if it is not free.
pub(super) fn lay(links: &Spanned<Links>, cluster: &mut Cluster) -> Result<Option<Bandwidth>, Problem> {
    match &links.value {
        Links::Tree(rates) => {
            cluster.fabric = tree(rates, links, cluster)?;
            rates.get(WITHIN_NODE).map_or(Ok(None), within_node)
        }
        Links::List(cables) => {
            cluster.fabric = graph(cables, cluster)?;
            pieces::check_one_piece(cluster, links)?;
            Ok(None)
        }
    }
}

const WITHIN_NODE: &str = "withinNode";

fn within_node(rate: &Text) -> Result<Option<Bandwidth>, Problem> {
    if rate.value == "free" {
        return Ok(None);
    }
    let rate = some_quantity(rate, "the rate within a node");
    rate.map(Some).map_err(|problem| problem.with_hint("write `free` where members on one node load no link"))
}

/// One switch for each domain and one above them all; the rate of a level is that of the cable upwards from it.
fn tree(rates: &BTreeMap<String, Text>, links: &impl Placed, cluster: &Cluster) -> Result<Fabric, Problem> {
    let levels: Vec<&str> = (0..=cluster.depth().0).map(|level| cluster.level_name(Level(level))).collect();
    check_tree(rates, &levels)?;
    let rates: Vec<Bandwidth> = levels
        .iter()
        .map(|level| match rates.get(*level) {
            Some(rate) => some_quantity(rate, "the rate of a link"),
            None => Err(links.problem(format!("the links of level `{level}` have no rate"))),
        })
        .collect::<Result<_, _>>()?;

    let mut fabric = Fabric::default();
    let root = fabric.add_switch("root");
    let mut switches: BTreeMap<DomainId, Vertex> = BTreeMap::new();
    for (id, node) in cluster.nodes().iter() {
        let mut above = root;
        for (level, domain) in node.domains.iter().enumerate() {
            above = match switches.get(domain) {
                Some(switch) => *switch,
                None => {
                    let switch = fabric.add_switch(cluster.domain_name(*domain));
                    connect(&mut fabric, (switch, above), rates[level], links)?;
                    switches.insert(*domain, switch);
                    switch
                }
            };
        }
        connect(&mut fabric, (Vertex::Node(id), above), rates[levels.len() - 1], links)?;
    }
    Ok(fabric)
}

fn check_tree(rates: &BTreeMap<String, Text>, levels: &[&str]) -> Result<(), Problem> {
    for (level, rate) in rates {
        if level != WITHIN_NODE && !levels.contains(&level.as_str()) {
            let message = format!("the topology has no level {}", quoted(level));
            return Err(rate.problem(message).with_hint(meant_or_known(level, levels.iter().copied())));
        }
    }
    Ok(())
}

fn connect(
    fabric: &mut Fabric,
    ends: (Vertex, Vertex),
    rate: Bandwidth,
    place: &impl Placed,
) -> Result<(), Problem> {
    let label = |vertex| format!("{vertex:?}");
    fabric.connect(ends.0, ends.1, rate, label).map_err(|error| place.problem(error.to_string()))
}

/// Any graph without circles. A name that is no node is a switch, and a switch has something below it.
fn graph(cables: &[Spanned<Cable>], cluster: &Cluster) -> Result<Fabric, Problem> {
    let mut fabric = Fabric::default();
    let switches = switches(cables, cluster, &mut fabric)?;
    let vertex = |end: &str| cluster.find_node(end).map(Vertex::Node).or_else(|| switches.get(end).copied());
    let mut laid = Vec::with_capacity(cables.len());
    for cable in cables {
        let from = vertex(&cable.value.from.value).ok_or_else(|| dangling(&cable.value.from))?;
        let to = switches[cable.value.to.value.as_str()];
        laid.push((from, to, some_quantity::<Bandwidth>(&cable.value.rate, "the rate of a link")?, cable));
    }
    let heights = heights(&laid)?;
    // From the bottom up, so that nothing above a new cable has to be searched for a circle.
    laid.sort_by_key(|(from, ..)| heights[from]);
    let names: BTreeMap<Vertex, &str> = switches.iter().map(|(name, vertex)| (*vertex, *name)).collect();
    let label = |vertex: Vertex| match vertex {
        Vertex::Node(node) => cluster.node(node).name.to_string(),
        Vertex::Switch(_) => names[&vertex].to_owned(),
    };
    for (from, to, rate, cable) in laid {
        fabric.connect(from, to, rate, label).map_err(|error| cable.problem(error.to_string()))?;
    }
    Ok(fabric)
}

/// Every upper end is a switch.
fn switches<'a>(
    cables: &'a [Spanned<Cable>],
    cluster: &Cluster,
    fabric: &mut Fabric,
) -> Result<BTreeMap<&'a str, Vertex>, Problem> {
    let mut switches = BTreeMap::new();
    for cable in cables {
        let to = &cable.value.to;
        if cluster.find_node(&to.value).is_some() {
            let message = format!("a link leads up to {}, which is a node", quoted(&to.value));
            return Err(to
                .problem(message)
                .with_hint("write the node as `from`: links are said from below to above"));
        }
        let to = name(to)?;
        switches.entry(to).or_insert_with(|| fabric.add_switch(to));
    }
    Ok(switches)
}

fn dangling(from: &Text) -> Problem {
    let message = format!("{} is neither a node nor a switch that a link leads up to", quoted(&from.value));
    from.problem(message).with_hint("nodes are called `node-0` and so on, unless their group has a name")
}

type Laid<'a> = (Vertex, Vertex, Bandwidth, &'a Spanned<Cable>);

/// How many cables at most lie below each vertex, one after the other; a circle has no such number.
fn heights(laid: &[Laid<'_>]) -> Result<BTreeMap<Vertex, u32>, Problem> {
    let mut below: BTreeMap<Vertex, u32> = BTreeMap::new();
    let mut upwards: BTreeMap<Vertex, Vec<Vertex>> = BTreeMap::new();
    for (from, to, ..) in laid {
        below.entry(*from).or_default();
        *below.entry(*to).or_default() += 1;
        upwards.entry(*from).or_default().push(*to);
    }
    let mut ready: Vec<Vertex> =
        below.iter().filter(|(_, count)| **count == 0).map(|(vertex, _)| *vertex).collect();
    let mut heights: BTreeMap<Vertex, u32> = ready.iter().map(|vertex| (*vertex, 0)).collect();
    let mut done: BTreeSet<Vertex> = BTreeSet::new();
    while let Some(vertex) = ready.pop() {
        done.insert(vertex);
        let next = heights[&vertex] + 1;
        for above in upwards.get(&vertex).into_iter().flatten() {
            let height = heights.entry(*above).or_default();
            *height = (*height).max(next);
            let waiting = below.get_mut(above).expect("every upper end is counted");
            *waiting -= 1;
            if *waiting == 0 {
                ready.push(*above);
            }
        }
    }
    match laid.iter().find(|(from, to, ..)| !done.contains(from) && !done.contains(to)) {
        Some((_, _, _, cable)) => Err(cable.problem(format!(
            "the links form a cycle through {}; a link leads from its lower end to its upper end",
            quoted(&cable.value.from.value)
        ))),
        None => Ok(heights),
    }
}

/// Both directions of the cable that a fault names, whichever of its ends is named first.
pub(super) fn find_cable(ends: &Spanned<EndsShape>, cluster: &Cluster) -> Result<[LinkId; 2], Problem> {
    let EndsShape { from, to } = &ends.value;
    let (a, b) = (find_vertices(from, cluster)?, find_vertices(to, cluster)?);
    let links = cluster.fabric.links().iter();
    let mut joins = links.filter(|(_, link)| {
        a.contains(&link.from) && b.contains(&link.to) || b.contains(&link.from) && a.contains(&link.to)
    });
    match (joins.next(), joins.next()) {
        (Some((one, _)), Some((other, _))) => Ok([one, other]),
        _ => {
            let message =
                format!("there is no link between {} and {}", quoted(&from.value), quoted(&to.value));
            Err(ends.problem(message).with_hint("a link joins a node or switch to a switch right above it"))
        }
    }
}

/// The node and the switch of a name: both may have it.
fn find_vertices(text: &Text, cluster: &Cluster) -> Result<Vec<Vertex>, Problem> {
    let node = cluster.find_node(&text.value).map(Vertex::Node);
    let found: Vec<Vertex> = node.into_iter().chain(cluster.fabric.find_switch(&text.value)).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let nodes = cluster.nodes().values().take(1000).map(|node| &*node.name);
    let names: Vec<&str> = nodes.chain(cluster.fabric.switches().take(1000)).collect();
    Err(text
        .problem(format!("there is no node and no switch {}", quoted(&text.value)))
        .with_hint(meant_or_known(&text.value, names)))
}

/// The node that a fault or a link names.
pub(super) fn find_node(text: &Text, cluster: &Cluster) -> Result<NodeId, Problem> {
    cluster.find_node(&text.value).ok_or_else(|| {
        let names = cluster.nodes().values().take(1000).map(|node| &*node.name);
        text.problem(format!("there is no node {}", quoted(&text.value)))
            .with_hint(meant_or_known(&text.value, names))
    })
}
