//! Links of the fabric and paths over them.
//!
//! A fabric is directed upwards: each cable leads from a node or switch to a switch one step further up, and carries
//! one link in each direction. A vertex with several cables upwards spreads its traffic over them equally (ECMP), so
//! a path is a set of links, each with its share of the traffic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Name;
use crate::model::id::{IdVec, LinkId, NodeId};
use crate::model::units::{Bandwidth, Share};

/// End of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Vertex {
    Node(NodeId),
    Switch(u32),
}

/// One direction of one cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub from: Vertex,
    pub to: Vertex,
    pub rate: Bandwidth,
}

/// Links between two nodes, each with its share of the traffic, in order of link id.
pub type Path = Vec<(LinkId, Share)>;

/// A cable seen from below: the upper vertex, the link up and the link down.
type Cable = (Vertex, LinkId, LinkId);

/// Part of one unit of traffic on each link.
type LinkShares = BTreeMap<LinkId, f64>;

/// Why a fabric is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    #[error("the links form a cycle through `{0}`; a link leads from its lower end to its upper end")]
    Cycle(String),
    #[error("a link leads from `{0}` to itself")]
    Loop(String),
    #[error("the link from `{0}` has no rate")]
    NoRate(String),
    #[error("two links lead from `{0}` to `{1}`")]
    Duplicate(String, String),
    #[error("{given} rates are given for {expected} levels")]
    RateCount { given: usize, expected: usize },
}

/// How precisely links enforce traffic policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Keeping {
    /// Classes are strict at all times and rates exact, as on a switch with one queue per class.
    #[default]
    Exactly,
    /// Like the HTB queues of a host: classes that change within an iteration become weights, and rates are accurate
    /// within a few percent.
    Roughly,
}

impl Keeping {
    /// Whether the value is the default, which serde omits.
    fn is_exact(&self) -> bool {
        *self == Self::Exactly
    }
}

/// Switches, links and how precisely the links enforce traffic policies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SerializedFabric")]
pub struct Fabric {
    switches: Vec<Name>,
    links: IdVec<LinkId, Link>,
    #[serde(skip_serializing_if = "Keeping::is_exact")]
    keeping: Keeping,
    /// Cables upwards from each vertex, derived from the links.
    #[serde(skip)]
    above: BTreeMap<Vertex, Vec<Cable>>,
}

impl Fabric {
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    pub fn links(&self) -> &IdVec<LinkId, Link> {
        &self.links
    }

    pub fn keeping(&self) -> Keeping {
        self.keeping
    }

    pub fn is_kept(&mut self, keeping: Keeping) {
        self.keeping = keeping;
    }

    pub fn add_switch(&mut self, name: &str) -> Vertex {
        self.switches.push(Name::from(name));
        Vertex::Switch((self.switches.len() - 1) as u32)
    }

    /// Names of the switches in the order of their creation.
    pub fn switches(&self) -> impl Iterator<Item = &str> {
        self.switches.iter().map(|name| &**name)
    }

    pub fn find_switch(&self, name: &str) -> Option<Vertex> {
        self.switches.iter().position(|known| &**known == name).map(|index| Vertex::Switch(index as u32))
    }

    pub fn switch_name(&self, vertex: Vertex) -> Option<&str> {
        match vertex {
            Vertex::Node(_) => None,
            Vertex::Switch(index) => self.switches.get(index as usize).map(|name| &**name),
        }
    }

    /// Height of each vertex above the nodes: zero for a node, one for its switch.
    pub fn elevations(&self) -> BTreeMap<Vertex, u32> {
        let nodes = self.above.keys().copied().filter(|vertex| matches!(vertex, Vertex::Node(_)));
        self.heights(nodes)
    }

    /// Adds a cable: a link up and a link down, each with the full rate. Rejects a cable that closes a cycle.
    pub fn connect(
        &mut self,
        below: Vertex,
        above: Vertex,
        rate: Bandwidth,
        name: impl Fn(Vertex) -> String,
    ) -> Result<(), FabricError> {
        if below == above {
            return Err(FabricError::Loop(name(below)));
        }
        if rate.is_zero() {
            return Err(FabricError::NoRate(name(below)));
        }
        if self.cables_up(below).any(|(top, _, _)| *top == above) {
            return Err(FabricError::Duplicate(name(below), name(above)));
        }
        if self.is_below(above, below) {
            return Err(FabricError::Cycle(name(below)));
        }
        self.add_cable(below, above, rate);
        Ok(())
    }

    /// Adds a cable that closes no cycle.
    pub(super) fn add_cable(&mut self, below: Vertex, above: Vertex, rate: Bandwidth) {
        let up = self.links.push(Link { from: below, to: above, rate });
        let down = self.links.push(Link { from: above, to: below, rate });
        self.above.entry(below).or_default().push((above, up, down));
    }

    /// Adds the only cable of a vertex, or reconnects its present one to another vertex above. The links keep their
    /// ids.
    pub(super) fn reconnect(&mut self, below: Vertex, above: Vertex, rate: Bandwidth) {
        let Some(cable) = self.above.get_mut(&below).and_then(|cables| cables.first_mut()) else {
            return self.add_cable(below, above, rate);
        };
        cable.0 = above;
        self.links[cable.1].to = above;
        self.links[cable.2].from = above;
    }

    /// Copies switches, cables and the position of a node that changed in another fabric since both were equal.
    pub(crate) fn catch_up(&mut self, with: &Self, node: NodeId) {
        self.switches.extend_from_slice(&with.switches[self.switches.len()..]);
        let new = with.links.ids().skip(self.links.len()).step_by(2);
        for Link { from, to, rate } in new.map(|up| &with.links[up]) {
            self.add_cable(*from, *to, *rate);
        }
        if let Some((above, up, _)) = with.cables_up(Vertex::Node(node)).next() {
            self.reconnect(Vertex::Node(node), *above, with.links[*up].rate);
        }
    }

    /// Changes the rate of a link; zero means down. Returns false if the link does not exist or has this rate
    /// already. Paths do not change: flows that cross a link that is down wait for it.
    pub(crate) fn set_rate(&mut self, link: LinkId, rate: Bandwidth) -> bool {
        match self.links.get_mut(link) {
            Some(link) => std::mem::replace(&mut link.rate, rate) != rate,
            None => false,
        }
    }

    /// Cables upwards from a vertex.
    fn cables_up(&self, vertex: Vertex) -> impl Iterator<Item = &Cable> {
        self.above.get(&vertex).into_iter().flatten()
    }

    /// Whether a path upwards leads from one vertex to another.
    fn is_below(&self, from: Vertex, goal: Vertex) -> bool {
        self.heights([from]).contains_key(&goal)
    }

    /// All vertices above any of `from`, with the smallest number of steps to them.
    fn heights(&self, from: impl IntoIterator<Item = Vertex>) -> BTreeMap<Vertex, u32> {
        let mut frontier: Vec<Vertex> = from.into_iter().collect();
        let mut heights: BTreeMap<Vertex, u32> = frontier.iter().map(|vertex| (*vertex, 0)).collect();
        let mut height = 0;
        while !frontier.is_empty() {
            height += 1;
            let mut next = Vec::new();
            for vertex in frontier {
                for (above, _, _) in self.cables_up(vertex) {
                    if !heights.contains_key(above) {
                        heights.insert(*above, height);
                        next.push(*above);
                    }
                }
            }
            frontier = next;
        }
        heights
    }

    /// Path from one node to another: up to the nearest common vertices and down again, spread equally at every fork.
    /// Empty from a node to itself; `None` if no links join the nodes.
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Path> {
        if from == to {
            return Some(Path::new());
        }
        let (start, end) = (Vertex::Node(from), Vertex::Node(to));
        let (rise, fall) = (self.heights([start]), self.heights([end]));
        let total = |vertex: &Vertex| Some(rise.get(vertex)? + fall.get(vertex)?);
        let shortest = rise.keys().filter_map(total).min()?;
        let tops: Vec<Vertex> =
            rise.keys().copied().filter(|vertex| total(vertex) == Some(shortest)).collect();

        let mut link_shares = LinkShares::new();
        let arrived = self.spread_up(start, &tops, &mut link_shares);
        self.spread_down(arrived, end, &tops, &mut link_shares);
        let whole = f64::from(Share::WHOLE.0);
        Some(
            link_shares
                .into_iter()
                .map(|(link, part)| (link, Share((part * whole).round() as u32)))
                .collect(),
        )
    }

    /// Sends one unit from `start` up to `tops`, spread equally at every fork; returns the amount that arrives at
    /// each.
    fn spread_up(
        &self,
        start: Vertex,
        tops: &[Vertex],
        link_shares: &mut LinkShares,
    ) -> BTreeMap<Vertex, f64> {
        let mut load = BTreeMap::from([(start, 1.0)]);
        for (vertex, cables) in self.shortest_ways_up(start, tops) {
            let each = load.remove(&vertex).unwrap_or(0.0) / cables.len() as f64;
            for (above, up, _) in cables {
                *link_shares.entry(up).or_default() += each;
                *load.entry(above).or_default() += each;
            }
        }
        load
    }

    /// Sends the amounts at the tops down to `end`: each vertex spreads its amount equally over the vertices below it
    /// that lead there.
    fn spread_down(
        &self,
        mut load: BTreeMap<Vertex, f64>,
        end: Vertex,
        tops: &[Vertex],
        link_shares: &mut LinkShares,
    ) {
        let mut below: BTreeMap<Vertex, Vec<(Vertex, LinkId)>> = BTreeMap::new();
        let ways = self.shortest_ways_up(end, tops);
        for (low, cables) in &ways {
            for (above, _, down) in cables {
                below.entry(*above).or_default().push((*low, *down));
            }
        }
        let lower = ways.iter().rev().map(|(vertex, _)| *vertex);
        for vertex in tops.iter().copied().chain(lower) {
            let forks = below.get(&vertex).map_or(&[][..], |forks| forks);
            let each = load.get(&vertex).copied().unwrap_or(0.0) / forks.len().max(1) as f64;
            for (low, down) in forks {
                *link_shares.entry(*down).or_default() += each;
                *load.entry(*low).or_default() += each;
            }
        }
    }

    /// Vertices on a shortest path from `start` up to one of `tops`, lowest first and without the tops, each with the
    /// cables that lead on.
    fn shortest_ways_up(&self, start: Vertex, tops: &[Vertex]) -> Vec<(Vertex, Vec<Cable>)> {
        let heights = self.heights([start]);
        let mut useful: BTreeMap<Vertex, u32> =
            tops.iter().filter_map(|top| Some((*top, *heights.get(top)?))).collect();
        let mut highest_first: Vec<(u32, Vertex)> = heights.iter().map(|(vertex, h)| (*h, *vertex)).collect();
        highest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut ways = Vec::new();
        for (height, vertex) in highest_first {
            let leads_on = |(above, _, _): &&Cable| useful.get(above) == Some(&(height + 1));
            let cables: Vec<Cable> = self.cables_up(vertex).filter(leads_on).copied().collect();
            if !cables.is_empty() && !tops.contains(&vertex) {
                useful.insert(vertex, height);
                ways.push((vertex, cables));
            }
        }
        ways.reverse();
        ways
    }
}

/// Serialized form of a fabric: the cables follow from the links.
#[derive(Deserialize)]
struct SerializedFabric {
    switches: Vec<Name>,
    links: IdVec<LinkId, Link>,
    #[serde(default)]
    keeping: Keeping,
}

impl From<SerializedFabric> for Fabric {
    fn from(SerializedFabric { switches, links, keeping }: SerializedFabric) -> Self {
        let mut above: BTreeMap<Vertex, Vec<Cable>> = BTreeMap::new();
        let ids: Vec<LinkId> = links.ids().collect();
        for pair in ids.chunks_exact(2) {
            let (up, down) = (pair[0], pair[1]);
            above.entry(links[up].from).or_default().push((links[up].to, up, down));
        }
        Self { switches, links, keeping, above }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(vertex: Vertex) -> String {
        format!("{vertex:?}")
    }

    const RATE: Bandwidth = Bandwidth(100_000_000_000);

    /// Two racks of two nodes under two spines.
    fn clos() -> Fabric {
        let mut fabric = Fabric::default();
        let racks = [fabric.add_switch("rack-0"), fabric.add_switch("rack-1")];
        let spines = [fabric.add_switch("spine-0"), fabric.add_switch("spine-1")];
        for node in 0..4 {
            fabric.connect(Vertex::Node(NodeId(node)), racks[node as usize / 2], RATE, named).unwrap();
        }
        for rack in racks {
            for spine in spines {
                fabric.connect(rack, spine, RATE, named).unwrap();
            }
        }
        fabric
    }

    #[test]
    fn a_path_inside_a_rack_is_up_and_down() {
        let fabric = clos();
        let path = fabric.path(NodeId(0), NodeId(1)).unwrap();
        assert_eq!(path, vec![(LinkId(0), Share::WHOLE), (LinkId(3), Share::WHOLE)]);
        assert_eq!(fabric.path(NodeId(0), NodeId(0)), Some(Path::new()));
    }

    #[test]
    fn equal_cost_paths_share_the_traffic() {
        let fabric = clos();
        let path = fabric.path(NodeId(0), NodeId(3)).unwrap();
        let half = Share(500_000);
        let ends = path.iter().filter(|(_, share)| *share == Share::WHOLE).count();
        let middle = path.iter().filter(|(_, share)| *share == half).count();
        assert_eq!((ends, middle, path.len()), (2, 4, 6));
    }

    #[test]
    fn traffic_that_leaves_a_node_arrives_at_the_other() {
        let fabric = clos();
        for (from, to) in [(0, 2), (1, 3), (3, 0)] {
            let path = fabric.path(NodeId(from), NodeId(to)).unwrap();
            for (vertex, sign) in [(from, 1), (to, -1)] {
                let balance: i64 = path
                    .iter()
                    .map(|(link, share)| (&fabric.links()[*link], i64::from(share.0)))
                    .map(|(link, share)| {
                        let here = Vertex::Node(NodeId(vertex));
                        i64::from(link.from == here) * share - i64::from(link.to == here) * share
                    })
                    .sum();
                assert_eq!(balance, sign * i64::from(Share::WHOLE.0));
            }
        }
    }

    #[test]
    fn a_fabric_read_back_has_the_same_paths() {
        let fabric = clos();
        let read: Fabric = serde_json::from_str(&serde_json::to_string(&fabric).unwrap()).unwrap();
        assert_eq!(read, fabric);
        assert_eq!(read.path(NodeId(0), NodeId(3)), fabric.path(NodeId(0), NodeId(3)));
    }

    #[test]
    fn cycles_and_loops_are_rejected() {
        let mut fabric = Fabric::default();
        let (a, b) = (fabric.add_switch("a"), fabric.add_switch("b"));
        fabric.connect(a, b, RATE, named).unwrap();
        assert!(matches!(fabric.connect(b, a, RATE, named), Err(FabricError::Cycle(_))));
        assert!(matches!(fabric.connect(a, a, RATE, named), Err(FabricError::Loop(_))));
        assert!(matches!(fabric.connect(a, b, RATE, named), Err(FabricError::Duplicate(..))));
    }

    #[test]
    fn unconnected_nodes_have_no_path() {
        let mut fabric = Fabric::default();
        let (a, b) = (fabric.add_switch("a"), fabric.add_switch("b"));
        fabric.connect(Vertex::Node(NodeId(0)), a, RATE, named).unwrap();
        fabric.connect(Vertex::Node(NodeId(1)), b, RATE, named).unwrap();
        assert_eq!(fabric.path(NodeId(0), NodeId(1)), None);
    }
}
