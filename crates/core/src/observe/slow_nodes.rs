//! Nodes on which members of jobs are slower than their peers on other nodes.
//!
//! One job whose members on a node are slower than its other members at the same time is sufficient evidence, because
//! the whole gang waits for them. Where a job can be compared with its own past only, several jobs are needed. A node
//! counts as slow until an hour has passed without such evidence, or the members on it keep up again. A wrong report
//! harms the reporting job most: only that job is migrated because of it. Other jobs prefer healthy nodes and use
//! slow ones where no others are free.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::id::{JobId, NodeId};
use crate::model::units::Instant;
use crate::observe::node_failures::max_excluded_nodes;
use crate::observe::progress::PeerBasis;
use crate::observe::scaling::Speed;
use crate::tuning::ObserveTuning;

/// Evidence of slowness per node and job, and the nodes that count as slow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowNodes {
    /// Slow jobs per node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    said: BTreeMap<NodeId, BTreeMap<JobId, SlownessEvidence>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    slow: BTreeMap<NodeId, Slow>,
}

/// One job's evidence that a node is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlownessEvidence {
    at: Instant,
    speed: Speed,
    at_once: bool,
}

/// Speed of a slow node, and end of its time unless there is new evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    pub until: Instant,
    /// Fraction of their peers' speed that members reach on the node.
    pub speed: Speed,
}

impl SlowNodes {
    /// Whether the value is the default, which serde omits.
    pub(crate) fn is_nothing(&self) -> bool {
        self.said.is_empty() && self.slow.is_empty()
    }

    pub fn slow(&self) -> &BTreeMap<NodeId, Slow> {
        &self.slow
    }

    /// Time at which the next node no longer counts as slow.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.slow.values().map(|slow| slow.until).min()
    }

    /// Records that a job is slow on a node; `nodes` is the size of the cluster. Returns whether that is news about a
    /// node that counts as slow.
    pub(crate) fn note_slow(
        &mut self,
        now: Instant,
        (node, job): (NodeId, JobId),
        (speed, beside): (Speed, PeerBasis),
        nodes: usize,
        tuning: &ObserveTuning,
    ) -> bool {
        let here = self.said.entry(node).or_default();
        here.retain(|_, said| said.at + tuning.slowness_window > now);
        let is_new = here
            .insert(job, SlownessEvidence { at: now, speed, at_once: beside == PeerBasis::Concurrent })
            .is_none();
        let was_slow = self.slow.contains_key(&node);
        let may_be = was_slow || self.slow.len() < max_excluded_nodes(nodes, tuning);
        if !may_be || !is_sufficient(here, tuning) {
            return false;
        }
        // The highest reported speed: an exaggerated report has no more effect than others.
        let speed = here.values().map(|said| said.speed).max().unwrap_or(speed);
        self.slow.insert(node, Slow { until: now + tuning.slowness_window, speed });
        is_new || !was_slow
    }

    /// Records that a job keeps up with its peers on a node. Returns whether the node no longer counts as slow.
    pub(crate) fn keeps_up(&mut self, node: NodeId, job: JobId, tuning: &ObserveTuning) -> bool {
        let was_said = self.said.get_mut(&node).is_some_and(|here| here.remove(&job).is_some());
        was_said && self.remove_unless_sufficient(node, tuning)
    }

    /// Withdraws all evidence from a job that is slow on every node. Returns whether a node no longer counts as slow.
    pub(crate) fn withdraw_evidence(&mut self, job: JobId, tuning: &ObserveTuning) -> bool {
        let nodes: Vec<NodeId> =
            self.said.iter().filter(|(_, here)| here.contains_key(&job)).map(|(node, _)| *node).collect();
        nodes.into_iter().fold(false, |any, node| self.keeps_up(node, job, tuning) | any)
    }

    /// Removes a node that counts as slow if the evidence no longer suffices; returns whether it did.
    fn remove_unless_sufficient(&mut self, node: NodeId, tuning: &ObserveTuning) -> bool {
        let is_sufficient = self.said.get(&node).is_some_and(|here| is_sufficient(here, tuning));
        self.said.retain(|_, here| !here.is_empty());
        !is_sufficient && self.slow.remove(&node).is_some()
    }

    /// Removes nodes whose time is over. Returns whether there were any.
    pub(crate) fn end(&mut self, now: Instant) -> bool {
        let over: Vec<NodeId> =
            self.slow.iter().filter(|(_, slow)| slow.until <= now).map(|(node, _)| *node).collect();
        over.iter().for_each(|node| {
            self.forget(*node);
        });
        !over.is_empty()
    }

    /// Forgets all evidence about a node. Returns whether it counted as slow.
    pub(crate) fn forget(&mut self, node: NodeId) -> bool {
        self.said.remove(&node);
        self.slow.remove(&node).is_some()
    }
}

/// Whether the evidence suffices.
fn is_sufficient(said: &BTreeMap<JobId, SlownessEvidence>, tuning: &ObserveTuning) -> bool {
    said.len() >= tuning.min_jobs_by_past || said.values().any(|said| said.at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(0);
    const HALF: Speed = Speed(500_000);

    fn at(minutes: u64) -> Instant {
        Instant::from_secs(60 * minutes)
    }

    fn says(slow_nodes: &mut SlowNodes, minutes: u64, node: NodeId, job: u32, beside: PeerBasis) -> bool {
        slow_nodes.note_slow(at(minutes), (node, JobId(job)), (HALF, beside), 10, &ObserveTuning::DEFAULT)
    }

    #[test]
    fn evidence_against_a_node_counts_for_an_hour() {
        let mut slow_nodes = SlowNodes::default();
        assert!(says(&mut slow_nodes, 0, NODE, 1, PeerBasis::Concurrent));
        assert!(!says(&mut slow_nodes, 30, NODE, 1, PeerBasis::Concurrent), "the node is slow already");
        assert!(!slow_nodes.end(at(89)));
        assert!(slow_nodes.end(at(90)));
        assert!(slow_nodes.is_nothing());
    }

    #[test]
    fn two_jobs_are_needed_if_each_is_compared_with_its_past() {
        let mut slow_nodes = SlowNodes::default();
        assert!(!says(&mut slow_nodes, 0, NODE, 1, PeerBasis::OwnPast));
        assert!(!says(&mut slow_nodes, 61, NODE, 2, PeerBasis::OwnPast), "the first was too long ago");
        assert!(says(&mut slow_nodes, 62, NODE, 1, PeerBasis::OwnPast));
    }

    #[test]
    fn a_job_that_keeps_up_or_is_slow_everywhere_withdraws_its_evidence() {
        let mut slow_nodes = SlowNodes::default();
        says(&mut slow_nodes, 0, NODE, 1, PeerBasis::Concurrent);
        assert!(!slow_nodes.keeps_up(NODE, JobId(2), &ObserveTuning::DEFAULT), "job 2 gave no evidence");
        assert!(slow_nodes.keeps_up(NODE, JobId(1), &ObserveTuning::DEFAULT));
        says(&mut slow_nodes, 1, NODE, 1, PeerBasis::Concurrent);
        assert!(slow_nodes.withdraw_evidence(JobId(1), &ObserveTuning::DEFAULT));
        assert!(slow_nodes.is_nothing());
    }

    #[test]
    fn few_nodes_are_slow_at_once_and_exaggeration_has_no_effect() {
        let mut slow_nodes = SlowNodes::default();
        assert!(says(&mut slow_nodes, 0, NODE, 1, PeerBasis::Concurrent));
        assert!(!says(&mut slow_nodes, 0, NodeId(1), 1, PeerBasis::Concurrent), "one of ten already is");
        slow_nodes.note_slow(
            at(1),
            (NODE, JobId(2)),
            (Speed(1), PeerBasis::Concurrent),
            10,
            &ObserveTuning::DEFAULT,
        );
        assert_eq!(slow_nodes.slow()[&NODE].speed, HALF);
    }
}
