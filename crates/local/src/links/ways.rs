//! Which way traffic takes: at every vertex on, by where it goes to alone, as bridges look at nothing else.
//!
//! A way leads up and then down and is as short as any. The fabric divides traffic over all such ways in equal parts;
//! bridges cannot, so each member that is sent to has one of them, and members are spread over them.

use std::collections::BTreeMap;

use metronome_core::model::cluster::{Cluster, Fabric, Vertex};
use metronome_core::model::id::{LinkId, NodeId};

use crate::names::MemberNumber;

/// The cables of a fabric, seen from each vertex.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    ups: BTreeMap<Vertex, Vec<(Vertex, LinkId)>>,
    downs: BTreeMap<Vertex, Vec<(Vertex, LinkId)>>,
}

impl Ways {
    pub(crate) fn of(fabric: &Fabric) -> Self {
        let mut ways = Self::default();
        for (id, link) in fabric.links().iter() {
            let side = if is_up(id) { &mut ways.ups } else { &mut ways.downs };
            side.entry(link.from).or_default().push((link.to, id));
        }
        ways
    }

    /// The links that lead up from a vertex.
    pub(crate) fn ups(&self, vertex: Vertex) -> impl Iterator<Item = LinkId> {
        self.ups.get(&vertex).into_iter().flatten().map(|(_, link)| *link)
    }

    /// For every vertex from which a member on a node can be reached, the link to take next.
    pub(crate) fn towards(&self, node: NodeId, member: MemberNumber) -> BTreeMap<Vertex, LinkId> {
        let goal = Vertex::Node(node);
        let falls = self.falls(goal);
        let distances = self.distances(&falls);
        let mut next = BTreeMap::new();
        for (at, (vertex, distance)) in
            distances.iter().enumerate().filter(|(_, (vertex, _))| **vertex != goal)
        {
            let falling = falls.get(vertex) == Some(distance);
            let (side, known) = if falling { (&self.downs, &falls) } else { (&self.ups, &distances) };
            let nearer =
                |(to, _): &&(Vertex, LinkId)| known.get(to).is_some_and(|left| left + 1 == *distance);
            let candidates: Vec<LinkId> =
                side.get(vertex).into_iter().flatten().filter(nearer).map(|(_, link)| *link).collect();
            if let Some(link) = candidates.get((member.0 as usize + at) % candidates.len().max(1)) {
                next.insert(*vertex, *link);
            }
        }
        next
    }

    /// For every vertex above the goal, how many links lead down from there.
    fn falls(&self, goal: Vertex) -> BTreeMap<Vertex, u32> {
        let mut falls = BTreeMap::from([(goal, 0)]);
        let mut frontier = vec![goal];
        let mut fall = 0;
        while !frontier.is_empty() {
            fall += 1;
            let above = frontier.iter().flat_map(|vertex| self.ups.get(vertex).into_iter().flatten());
            let mut above: Vec<Vertex> = above.map(|(vertex, _)| *vertex).collect();
            above.retain(|vertex| !falls.contains_key(vertex));
            falls.extend(above.iter().map(|vertex| (*vertex, fall)));
            frontier = above;
        }
        falls
    }

    /// For every vertex, the length of the shortest way that leads up, if at all, and then down.
    fn distances(&self, falls: &BTreeMap<Vertex, u32>) -> BTreeMap<Vertex, u32> {
        let mut distances = falls.clone();
        let mut changed = true;
        while changed {
            changed = false;
            for (vertex, above) in &self.ups {
                let by_above = above.iter().filter_map(|(top, _)| distances.get(top)).min();
                let Some(length) = by_above.map(|length| length + 1) else { continue };
                if distances.get(vertex).is_none_or(|known| length < *known) {
                    distances.insert(*vertex, length);
                    changed = true;
                }
            }
        }
        distances
    }
}

/// The other direction of a cable: it is laid as a link up and, right after it, the link down.
pub(crate) fn reverse(link: LinkId) -> LinkId {
    LinkId(link.0 ^ 1)
}

pub(crate) fn is_up(link: LinkId) -> bool {
    link < reverse(link)
}

/// The links from one node to a member on another, in the order in which they are crossed.
pub(crate) fn walk(fabric: &Fabric, from: NodeId, towards: &BTreeMap<Vertex, LinkId>) -> Vec<LinkId> {
    let mut at = Vertex::Node(from);
    let mut crossed = Vec::new();
    while let Some(link) = towards.get(&at) {
        crossed.push(*link);
        at = fabric.links()[*link].to;
    }
    crossed
}

/// A cluster without links has one switch that joins all nodes, and nothing is shaped.
pub(crate) fn joined(cluster: &Cluster) -> Fabric {
    let mut fabric = Fabric::default();
    let all = fabric.add_switch("all");
    for node in cluster.nodes().ids() {
        let free = metronome_core::model::units::Bandwidth(u64::MAX);
        let laid = fabric.connect(Vertex::Node(node), all, free, |vertex| format!("{vertex:?}"));
        laid.expect("every node is joined once");
    }
    fabric
}

#[cfg(test)]
mod tests {
    use metronome_core::model::cluster::NodeSpec;
    use metronome_core::model::units::Bandwidth;

    use super::*;

    fn cluster(racks: &[&str]) -> Cluster {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        for (at, rack) in racks.iter().enumerate() {
            let name = format!("node-{at}");
            cluster
                .add_node(&NodeSpec { name, domains: vec![(*rack).into()], ..NodeSpec::default() })
                .unwrap();
        }
        cluster
    }

    /// Every way between two nodes is one of those that the fabric itself knows.
    fn agrees(fabric: &Fabric, nodes: u32) -> usize {
        let ways = Ways::of(fabric);
        let mut ends = 0;
        for (from, to) in (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to))) {
            for member in (0..8).map(MemberNumber) {
                let crossed = walk(fabric, NodeId(from), &ways.towards(NodeId(to), member));
                let Some(path) = fabric.path(NodeId(from), NodeId(to)) else {
                    assert_eq!(crossed, []);
                    continue;
                };
                let known: Vec<LinkId> = path.iter().map(|(link, _)| *link).collect();
                assert!(
                    crossed.iter().all(|link| known.contains(link)),
                    "{from} to {to}: {crossed:?} of {known:?}"
                );
                let end = crossed.last().map_or(Vertex::Node(NodeId(from)), |link| fabric.links()[*link].to);
                assert_eq!(end, Vertex::Node(NodeId(to)));
                ends += 1;
            }
        }
        ends
    }

    #[test]
    fn in_a_tree_there_is_one_way() {
        let mut cluster = cluster(&["a", "a", "b", "b", "c"]);
        cluster.connect_as_tree(&[Bandwidth(60), Bandwidth(100)]).unwrap();
        assert_eq!(agrees(&cluster.fabric, 5), 5 * 5 * 8);
    }

    #[test]
    fn where_there_are_several_members_are_spread_over_them() {
        let mut fabric = Fabric::default();
        let leaves = ["l0", "l1"].map(|name| fabric.add_switch(name));
        let spines = ["s0", "s1", "s2"].map(|name| fabric.add_switch(name));
        let mut lay = |from, to| fabric.connect(from, to, Bandwidth(10), |v| format!("{v:?}")).unwrap();
        for (node, leaf) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            lay(Vertex::Node(NodeId(node)), leaves[leaf]);
        }
        leaves.iter().for_each(|leaf| spines.iter().for_each(|spine| lay(*leaf, *spine)));
        assert_eq!(agrees(&fabric, 4), 4 * 4 * 8);
        let ways = Ways::of(&fabric);
        let taken = (0..3).map(|member| ways.towards(NodeId(3), MemberNumber(member))[&leaves[0]]);
        let mut taken: Vec<LinkId> = taken.collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), 3);
    }

    #[test]
    fn a_short_cut_over_a_skipped_level_makes_no_loop() {
        let mut fabric = Fabric::default();
        let [low, middle, top] = ["low", "middle", "top"].map(|name| fabric.add_switch(name));
        let mut lay = |from, to| fabric.connect(from, to, Bandwidth(10), |v| format!("{v:?}")).unwrap();
        lay(Vertex::Node(NodeId(0)), low);
        lay(low, middle);
        lay(middle, top);
        lay(Vertex::Node(NodeId(0)), top);
        lay(Vertex::Node(NodeId(1)), middle);
        lay(Vertex::Node(NodeId(2)), low);
        let ways = Ways::of(&fabric);
        let lengths = |from: u32, to: u32| {
            let walks = (0..4)
                .map(|member| walk(&fabric, NodeId(from), &ways.towards(NodeId(to), MemberNumber(member))));
            let walks: Vec<Vec<LinkId>> = walks.collect();
            let ends =
                |walk: &Vec<LinkId>| fabric.links()[*walk.last().unwrap()].to == Vertex::Node(NodeId(to));
            assert!(walks.iter().all(ends), "{walks:?}");
            walks.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(lengths(0, 1), [3; 4]);
        assert_eq!(lengths(1, 0), [3; 4]);
        assert_eq!(lengths(2, 0), [2; 4]);
        assert_eq!(lengths(2, 1), [3; 4]);
    }

    #[test]
    fn who_is_not_joined_is_not_reached() {
        let mut fabric = Fabric::default();
        let switch = fabric.add_switch("s");
        fabric.connect(Vertex::Node(NodeId(0)), switch, Bandwidth(1), |v| format!("{v:?}")).unwrap();
        assert_eq!(agrees(&fabric, 2), 8 * 2);
    }
}
