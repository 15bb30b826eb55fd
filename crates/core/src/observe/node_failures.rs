//! Nodes on which members of several jobs failed recently; the scheduler avoids them.
//!
//! A job that fails on several nodes fails for a reason of its own and is evidence against no node. Several jobs that
//! failed on one node and on no other are evidence against the node.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::model::cluster::Name;
use crate::model::id::NodeId;
use crate::model::units::Instant;
use crate::tuning::ObserveTuning;

/// Failures that are kept, a bound on memory; the oldest are dropped first.
const MAX_FAILURES: usize = 10_000;

/// Recent failures per node, and the nodes that are avoided because of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFailures {
    /// At most one failure per job and node, the newest last.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    lately: VecDeque<MemberFailure>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    avoided: BTreeMap<NodeId, Avoided>,
}

/// A member of a job failed on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MemberFailure {
    at: Instant,
    node: NodeId,
    of: Name,
}

/// Why a node is avoided, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Avoided {
    pub until: Instant,
    /// Jobs that failed on this node and on no other.
    pub failed: BTreeSet<Name>,
}

impl NodeFailures {
    /// Whether the value is the default, which serde omits.
    pub(crate) fn is_nothing(&self) -> bool {
        self.lately.is_empty() && self.avoided.is_empty()
    }

    /// Nodes that are avoided now.
    pub fn avoided(&self) -> &BTreeMap<NodeId, Avoided> {
        &self.avoided
    }

    /// Time at which the next node is no longer avoided.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.avoided.values().map(|avoided| avoided.until).min()
    }

    /// Records that a member of job `of` failed on a node. Returns the nodes that are no longer avoided, because the
    /// job has now failed on another node too and is no evidence against them.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        node: NodeId,
        of: Name,
        tuning: &ObserveTuning,
    ) -> Vec<NodeId> {
        self.lately.retain(|old| old.at + tuning.failure_window > now && !(old.node == node && old.of == of));
        let mut cleared = Vec::new();
        for (other, avoided) in self.avoided.iter_mut().filter(|(other, _)| **other != node) {
            if avoided.failed.remove(&of) && avoided.failed.len() < tuning.min_failed_jobs {
                cleared.push(*other);
            }
        }
        cleared.iter().for_each(|node| self.forget(*node));
        self.lately.push_back(MemberFailure { at: now, node, of });
        if self.lately.len() > MAX_FAILURES {
            self.lately.pop_front();
        }
        cleared
    }

    /// Avoids a node from now on if enough jobs failed on it alone and few nodes are avoided. Returns whether it
    /// does; `nodes` is the size of the cluster.
    pub(crate) fn avoids(
        &mut self,
        now: Instant,
        node: NodeId,
        nodes: usize,
        tuning: &ObserveTuning,
    ) -> bool {
        let failed = self.failed_only_on(node);
        let avoids = failed.len() >= tuning.min_failed_jobs
            && !self.avoided.contains_key(&node)
            && self.avoided.len() < max_excluded_nodes(nodes, tuning);
        if avoids {
            self.avoided.insert(node, Avoided { until: now + tuning.failure_window, failed });
        }
        avoids
    }

    /// Jobs that failed on this node and on no other.
    fn failed_only_on(&self, node: NodeId) -> BTreeSet<Name> {
        let elsewhere: BTreeSet<&Name> =
            self.lately.iter().filter(|old| old.node != node).map(|old| &old.of).collect();
        let here = self.lately.iter().filter(|old| old.node == node && !elsewhere.contains(&old.of));
        here.map(|old| old.of.clone()).collect()
    }

    /// Ends the avoidance of nodes whose time is over, forgets their failures and returns them.
    pub(crate) fn end(&mut self, now: Instant) -> Vec<NodeId> {
        let over = self.avoided.iter().filter(|(_, avoided)| avoided.until <= now);
        let over: Vec<NodeId> = over.map(|(node, _)| *node).collect();
        over.iter().for_each(|node| self.forget(*node));
        over
    }

    /// Forgets all failures on a node.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.avoided.remove(&node);
        self.lately.retain(|old| old.node != node);
    }
}

/// Largest number of nodes, of `nodes` in the cluster, that failures or slowness may exclude at once.
pub(crate) fn max_excluded_nodes(nodes: usize, tuning: &ObserveTuning) -> usize {
    (nodes / tuning.nodes_per_excluded_node).max(usize::from(nodes > tuning.max_nodes_without_exclusion))
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
        node_failures.note(at(minutes), node, Name::from(of), &ObserveTuning::DEFAULT);
        node_failures.avoids(at(minutes), node, nodes, &ObserveTuning::DEFAULT)
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
        assert!(!failed(&mut node_failures, 161, BAD, "e", 10), "earlier failures are forgotten");
    }

    #[test]
    fn a_job_that_fails_on_several_nodes_is_evidence_against_none() {
        let mut node_failures = NodeFailures::default();
        failed(&mut node_failures, 0, BAD, "a", 10);
        failed(&mut node_failures, 1, OTHER, "b", 10);
        failed(&mut node_failures, 2, BAD, "b", 10);
        assert!(!failed(&mut node_failures, 3, BAD, "c", 10));
        assert!(failed(&mut node_failures, 4, BAD, "d", 10));
        // One of the three jobs fails on another node as well.
        assert_eq!(node_failures.note(at(5), OTHER, Name::from("d"), &ObserveTuning::DEFAULT), [BAD]);
        assert!(node_failures.avoided().is_empty());
    }

    #[test]
    fn at_most_a_tenth_of_the_nodes_is_avoided_at_once() {
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
