//! Links as a tree over the domains of a cluster: one switch per domain and a root above. The tree grows as nodes
//! join; a node that moves to another domain is reconnected there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fabric::{Fabric, FabricError, Vertex};
use super::{Cluster, Name};
use crate::model::id::{DomainId, NodeId};
use crate::model::units::Bandwidth;

/// Rates and switches of a tree of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tree {
    root: Vertex,
    /// Rate of the cable upwards from each level, outermost first; the last is the rate of a node's own cable.
    rates: Vec<Bandwidth>,
    switches: BTreeMap<DomainId, Vertex>,
}

impl Cluster {
    /// Creates the links as a tree, for present and future nodes. `rates` are the rates of the cables upwards from
    /// each level, outermost first; the last is that of the nodes.
    pub fn connect_as_tree(&mut self, rates: &[Bandwidth]) -> Result<(), FabricError> {
        let expected = usize::from(self.depth().0) + 1;
        if rates.len() != expected {
            return Err(FabricError::RateCount { given: rates.len(), expected });
        }
        if let Some(level) = (0u8..).zip(rates).find_map(|(level, rate)| rate.is_zero().then_some(level)) {
            return Err(FabricError::NoRate(self.level_name(super::Level(level)).to_owned()));
        }
        self.fabric = Fabric::default();
        let root = self.fabric.add_switch("root");
        self.tree = Some(Tree { root, rates: rates.to_vec(), switches: BTreeMap::new() });
        let nodes: Vec<NodeId> = self.nodes.ids().collect();
        nodes.into_iter().for_each(|node| self.connect_node(node));
        Ok(())
    }

    /// Connects a node that is new or changed its domain.
    pub(super) fn connect_node(&mut self, node: NodeId) {
        let Some(tree) = &mut self.tree else { return };
        let domains = self.nodes[node].domains.iter();
        let named = domains.map(|domain| (*domain, self.domains[domain.0 as usize].name.clone()));
        tree.connect_node(&mut self.fabric, node, named);
    }
}

impl Tree {
    /// Connects a node; `domains` are its domains, outermost first.
    fn connect_node(
        &mut self,
        fabric: &mut Fabric,
        node: NodeId,
        domains: impl Iterator<Item = (DomainId, Name)>,
    ) {
        let mut above = self.root;
        for ((domain, name), rate) in domains.zip(&self.rates) {
            above = *self.switches.entry(domain).or_insert_with(|| {
                let switch = fabric.add_switch(&name);
                fabric.add_cable(switch, above, *rate);
                switch
            });
        }
        let rate = *self.rates.last().expect("every tree has the rate of its nodes");
        fabric.reconnect(Vertex::Node(node), above, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::super::NodeSpec;
    use super::*;
    use crate::model::id::LinkId;

    const RACK: Bandwidth = Bandwidth(60_000_000_000);
    const NODE: Bandwidth = Bandwidth(100_000_000_000);

    fn spec(name: &str, rack: &str) -> NodeSpec {
        NodeSpec { name: name.into(), domains: vec![rack.into()], ..NodeSpec::default() }
    }

    fn with(nodes: &[(&str, &str)]) -> Cluster {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        cluster.connect_as_tree(&[RACK, NODE]).unwrap();
        for (name, rack) in nodes {
            cluster.add_node(&spec(name, rack)).unwrap();
        }
        cluster
    }

    fn crossed(cluster: &Cluster, from: u32, to: u32) -> Vec<Bandwidth> {
        let path = cluster.fabric.path(NodeId(from), NodeId(to)).unwrap();
        path.iter().map(|(link, _)| cluster.fabric.links()[*link].rate).collect()
    }

    #[test]
    fn new_nodes_are_connected_to_their_rack() {
        let cluster = with(&[("a", "r1"), ("b", "r1"), ("c", "r2")]);
        assert_eq!(crossed(&cluster, 0, 1), [NODE, NODE]);
        assert_eq!(crossed(&cluster, 0, 2), [RACK, NODE, RACK, NODE]);
    }

    #[test]
    fn nodes_may_join_before_or_after_the_tree_is_created() {
        let nodes = [("a", "r1"), ("b", "r2"), ("c", "r1")];
        let mut before = Cluster::new(&["rack"]).unwrap();
        for (name, rack) in nodes {
            before.add_node(&spec(name, rack)).unwrap();
        }
        before.connect_as_tree(&[RACK, NODE]).unwrap();
        assert_eq!(before, with(&nodes));
    }

    #[test]
    fn a_node_that_changes_its_rack_keeps_its_cable() {
        let mut cluster = with(&[("a", "r1"), ("b", "r2")]);
        let links = cluster.fabric.links().len();
        cluster.change_node(NodeId(0), &spec("a", "r2")).unwrap();
        assert_eq!(crossed(&cluster, 0, 1), [NODE, NODE]);
        assert_eq!(cluster.fabric.links().len(), links);
        let read: Cluster = serde_json::from_str(&serde_json::to_string(&cluster).unwrap()).unwrap();
        assert_eq!(read, cluster);
        assert_eq!(read.fabric.path(NodeId(0), NodeId(1)), cluster.fabric.path(NodeId(0), NodeId(1)));
    }

    #[test]
    fn a_copy_catches_up_with_cables_added_since() {
        let mut cluster = with(&[("a", "r1"), ("b", "r2")]);
        let mut copy = cluster.fabric.clone();
        cluster.add_node(&spec("c", "r3")).unwrap();
        copy.catch_up(&cluster.fabric, NodeId(2));
        cluster.change_node(NodeId(1), &spec("b", "r1")).unwrap();
        copy.catch_up(&cluster.fabric, NodeId(1));
        assert_eq!(copy, cluster.fabric);
        assert_eq!(copy.links()[LinkId(0)].rate, RACK);
    }

    #[test]
    fn every_level_has_a_rate() {
        let mut cluster = Cluster::new(&["rack"]).unwrap();
        let refused = cluster.connect_as_tree(&[NODE]);
        assert_eq!(refused, Err(FabricError::RateCount { given: 1, expected: 2 }));
        let refused = cluster.connect_as_tree(&[Bandwidth(0), NODE]);
        assert_eq!(refused, Err(FabricError::NoRate("rack".into())));
    }
}
