//! Where members of jobs failed of late, and the nodes that are avoided for it.
//!
//! Whoever fails on several nodes fails for a reason of its own, and counts nowhere. Where several jobs failed that failed
//! nowhere else, it is the node.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::model::cluster::Name;
use crate::model::id::NodeId;
use crate::model::units::{Duration, Instant};

/// What failed longer ago does not count, and a node is avoided for so long.
const LATELY: Duration = Duration::HOUR;

/// So many jobs must have failed on a node.
const SEVERAL: usize = 3;

/// No more than one node in so many is avoided at once…
const ONE_IN: usize = 10;

/// …but one where there are more than this.
const FEW_NODES: usize = 3;

/// More than this is not remembered: the oldest go first.
const MOST_REMEMBERED: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFailures {
    /// Each job once on each node, the newest last.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    lately: VecDeque<Mishap>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    avoided: BTreeMap<NodeId, Avoided>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mishap {
    at: Instant,
    node: NodeId,
    of: Name,
}

/// Why a node is avoided, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoided {
    pub until: Instant,
    /// The jobs that failed there and nowhere else.
    pub failed: BTreeSet<Name>,
}

impl NodeFailures {
    /// For serde: what is left out means this.
    pub(crate) fn is_nothing(&self) -> bool {
        self.lately.is_empty() && self.avoided.is_empty()
    }

    /// The nodes that are avoided.
    pub fn avoided(&self) -> &BTreeMap<NodeId, Avoided> {
        &self.avoided
    }

    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.avoided.values().map(|avoided| avoided.until).min()
    }

    /// Somebody failed on a node, of so many: the nodes that are no longer to be avoided for it, as it failed there for a
    /// reason of its own.
    pub(crate) fn note(&mut self, now: Instant, node: NodeId, of: Name) -> Vec<NodeId> {
        self.lately.retain(|old| old.at + LATELY > now && !(old.node == node && old.of == of));
        let mut cleared = Vec::new();
        for (other, avoided) in self.avoided.iter_mut().filter(|(other, _)| **other != node) {
            if avoided.failed.remove(&of) && avoided.failed.len() < SEVERAL {
                cleared.push(*other);
            }
        }
        cleared.iter().for_each(|node| self.forget(*node));
        self.lately.push_back(Mishap { at: now, node, of });
        if self.lately.len() > MOST_REMEMBERED {
            self.lately.pop_front();
        }
        cleared
    }

    /// Whether a node is to be avoided from now on, in a cluster of so many; then it is.
    pub(crate) fn avoids(&mut self, now: Instant, node: NodeId, nodes: usize) -> bool {
        let failed = self.failed_only_on(node);
        let avoids = failed.len() >= SEVERAL
            && !self.avoided.contains_key(&node)
            && self.avoided.len() < most_of(nodes);
        if avoids {
            self.avoided.insert(node, Avoided { until: now + LATELY, failed });
        }
        avoids
    }

    fn failed_only_on(&self, node: NodeId) -> BTreeSet<Name> {
        let elsewhere: BTreeSet<&Name> =
            self.lately.iter().filter(|old| old.node != node).map(|old| &old.of).collect();
        let here = self.lately.iter().filter(|old| old.node == node && !elsewhere.contains(&old.of));
        here.map(|old| old.of.clone()).collect()
    }

    /// The nodes that were avoided for long enough. What failed there before is forgotten.
    pub(crate) fn end(&mut self, now: Instant) -> Vec<NodeId> {
        let over = self.avoided.iter().filter(|(_, avoided)| avoided.until <= now);
        let over: Vec<NodeId> = over.map(|(node, _)| *node).collect();
        over.iter().for_each(|node| self.forget(*node));
        over
    }

    /// Nothing is held against a node any more.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.avoided.remove(&node);
        self.lately.retain(|old| old.node != node);
    }
}

/// How many of so many nodes may be thought ill of at once.
pub(crate) fn most_of(nodes: usize) -> usize {
    (nodes / ONE_IN).max(usize::from(nodes > FEW_NODES))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: NodeId = NodeId(0);
    const OTHER: NodeId = NodeId(1);

    fn at(minutes: u64) -> Instant {
        Instant::from_secs(60 * minutes)
    }

    fn failed(node_failures: &mut NodeFailures, minutes: u64, node: NodeId, of: &str, nodes: usize) -> bool {
        node_failures.note(at(minutes), node, Name::from(of));
        node_failures.avoids(at(minutes), node, nodes)
    }

    #[test]
    fn a_node_on_which_three_jobs_fail_within_an_hour_is_avoided_for_another() {
        let mut node_failures = NodeFailures::default();
        assert!(!failed(&mut node_failures, 0, BAD, "a", 10));
        assert!(!failed(&mut node_failures, 70, BAD, "b", 10));
        assert!(!failed(&mut node_failures, 80, BAD, "b", 10), "one job twice is one");
        assert!(!failed(&mut node_failures, 90, BAD, "c", 10), "the first was too long ago");
        assert!(failed(&mut node_failures, 100, BAD, "d", 10));
        assert_eq!(node_failures.next_end(), Some(at(160)));
        assert_eq!(node_failures.end(at(159)), []);
        assert_eq!(node_failures.end(at(160)), [BAD]);
        assert!(!failed(&mut node_failures, 161, BAD, "e", 10), "it begins anew");
    }

    #[test]
    fn who_fails_everywhere_counts_nowhere() {
        let mut node_failures = NodeFailures::default();
        failed(&mut node_failures, 0, BAD, "a", 10);
        failed(&mut node_failures, 1, OTHER, "b", 10);
        failed(&mut node_failures, 2, BAD, "b", 10);
        assert!(!failed(&mut node_failures, 3, BAD, "c", 10));
        assert!(failed(&mut node_failures, 4, BAD, "d", 10));
        // It turns out that one of the three fails elsewhere as well.
        assert_eq!(node_failures.note(at(5), OTHER, Name::from("d")), [BAD]);
        assert!(node_failures.avoided().is_empty());
    }

    #[test]
    fn few_nodes_are_avoided_at_once() {
        for (nodes, most) in [(1, 0), (3, 0), (4, 1), (19, 1), (20, 2), (100, 10)] {
            let mut node_failures = NodeFailures::default();
            let bad = (0..nodes as u32).filter(|node| {
                let of = |job: u32| format!("{node}-{job}");
                (0..3).any(|job| failed(&mut node_failures, 0, NodeId(*node), &of(job), nodes))
            });
            assert_eq!(bad.count(), most, "of {nodes}");
        }
    }
}
