//! Divisions of the nodes into domains, under the ids the engine gave.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::groups::Domain;
use metronome_core::model::id::{NodeId, PartitionId};

use super::Border;
use super::pool::{Hold, Pool};
use super::wire::Wire;
use crate::objects::Node;
use crate::rules::division::Division;

#[derive(Debug, Default)]
pub(super) struct Divisions {
    pool: Pool<PartitionId, Division>,
    domains: BTreeMap<PartitionId, Domains>,
}

/// The domains of one division by number. A number is given again once nobody lies in its domain.
#[derive(Debug, Default)]
struct Domains {
    numbers: BTreeMap<Arc<str>, (Domain, u32)>,
    free: Vec<Domain>,
    of: BTreeMap<NodeId, Arc<str>>,
}

impl Domains {
    /// Puts a node into the domain of that name, or into none. Returns its number, if that is a change.
    fn place(&mut self, node: NodeId, domain: Option<&str>) -> Option<Option<Domain>> {
        if self.of.get(&node).map(|name| &**name) == domain {
            return None;
        }
        if let Some(left) = self.of.remove(&node) {
            self.leave(&left);
        }
        Some(domain.map(|name| self.enter(node, name)))
    }

    fn leave(&mut self, name: &str) {
        let (number, nodes) = self.numbers.get_mut(name).expect("the domain of a node that was in it");
        *nodes -= 1;
        if *nodes == 0 {
            self.free.push(*number);
            self.numbers.remove(name);
        }
    }

    fn enter(&mut self, node: NodeId, name: &str) -> Domain {
        let name = match self.numbers.get_key_value(name) {
            Some((name, _)) => name.clone(),
            None => Arc::from(name),
        };
        let next = self.numbers.len() as Domain;
        let (number, nodes) =
            self.numbers.entry(name.clone()).or_insert_with(|| (self.free.pop().unwrap_or(next), 0));
        *nodes += 1;
        self.of.insert(node, name);
        *number
    }
}

impl Border {
    /// The engine's id of a division, new if need be.
    pub(super) fn division(&mut self, wire: &mut Wire<'_>, division: Division) -> Hold<PartitionId> {
        if let Some(hold) = self.divisions.pool.find(&division) {
            return hold;
        }
        self.sweep_divisions();
        let mut domains = Domains::default();
        let of_node =
            |(id, node): (NodeId, &Node)| Some((id, domains.place(id, division.domain(node)).flatten()?));
        let numbered = self.nodes.present().filter_map(of_node).collect();
        let id = match self.divisions.pool.vacant() {
            Some(partition) => {
                wire.tell(Event::Partition { partition, domains: numbered });
                partition
            }
            None => wire.engine.add_partition(wire.now, numbered),
        };
        self.divisions.domains.insert(id, domains);
        self.divisions.pool.put(id, Arc::new(division))
    }

    fn sweep_divisions(&mut self) {
        for (id, _) in self.divisions.pool.sweep() {
            self.divisions.domains.remove(&id);
        }
    }

    /// A node has come, changed or gone: finds its domain in every division.
    pub(super) fn divide(&mut self, wire: &mut Wire<'_>, id: NodeId) {
        let node = self.nodes.get(id);
        for (partition, division) in self.divisions.pool.iter() {
            let domains = self.divisions.domains.get_mut(&partition).expect("every division has its domains");
            let domain = node.and_then(|node| division.domain(node));
            if let Some(domain) = domains.place(id, domain) {
                wire.tell(Event::PartitionChanged { partition, node: id, domain });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_keeps_its_number_while_somebody_lies_in_it() {
        let mut domains = Domains::default();
        let [a, b, c] = [NodeId(0), NodeId(1), NodeId(2)];
        assert_eq!(domains.place(a, Some("x")), Some(Some(0)));
        assert_eq!(domains.place(b, Some("x")), Some(Some(0)));
        assert_eq!(domains.place(c, Some("y")), Some(Some(1)));
        assert_eq!(domains.place(a, Some("x")), None, "nothing has changed");
        assert_eq!(domains.place(a, None), Some(None));
        assert_eq!(domains.place(b, Some("z")), Some(Some(0)), "nobody is in x any more");
        assert_eq!(domains.place(a, Some("w")), Some(Some(2)));
    }
}
