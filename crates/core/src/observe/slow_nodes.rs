//! Nodes on which members of jobs are slower than their peers elsewhere, as far as jobs report that.
//!
//! One job whose member there falls behind others at the same time is enough: the whole gang waits for it. Where a job can
//! be compared with its own past alone, it takes several. A node is slow until nobody has said so for an hour, or members
//! there keep up again. Whoever says something wrong harms itself most: it alone is moved for it, and others are kept from few
//! nodes, and from none where that is all the room there is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::id::{JobId, NodeId};
use crate::model::units::{Duration, Instant};
use crate::observe::node_failures::most_of;
use crate::observe::progress::Compared;
use crate::observe::scaling::Speed;

/// A node is slow for so long after somebody said so.
const LATELY: Duration = Duration::HOUR;

/// So many jobs must say so that can only be compared with their own past.
const SEVERAL: usize = 2;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlowNodes {
    /// Who was slow where.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    said: BTreeMap<NodeId, BTreeMap<JobId, Said>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    slow: BTreeMap<NodeId, Slow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    at: Instant,
    speed: Speed,
    at_once: bool,
}

/// How slow a node is, and until when that counts unless it is said again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    pub until: Instant,
    /// The part of the speed of their peers at which members go there.
    pub speed: Speed,
}

impl SlowNodes {
    /// For serde: what is left out means this.
    pub(crate) fn is_nothing(&self) -> bool {
        self.said.is_empty() && self.slow.is_empty()
    }

    pub fn slow(&self) -> &BTreeMap<NodeId, Slow> {
        &self.slow
    }

    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.slow.values().map(|slow| slow.until).min()
    }

    /// A job is slow on a node, of so many that there are. Whether that is news of a node that counts as slow.
    pub(crate) fn is_slow(
        &mut self,
        now: Instant,
        (node, job): (NodeId, JobId),
        (speed, beside): (Speed, Compared),
        nodes: usize,
    ) -> bool {
        let here = self.said.entry(node).or_default();
        here.retain(|_, said| said.at + LATELY > now);
        let is_new = here.insert(job, Said { at: now, speed, at_once: beside == Compared::AtOnce }).is_none();
        let was_slow = self.slow.contains_key(&node);
        let may_be = was_slow || self.slow.len() < most_of(nodes);
        if !may_be || !is_believed(here) {
            return false;
        }
        // The least that anybody says: whoever exaggerates is not believed more than others.
        let speed = here.values().map(|said| said.speed).max().unwrap_or(speed);
        self.slow.insert(node, Slow { until: now + LATELY, speed });
        is_new || !was_slow
    }

    /// A job keeps up with its peers on a node. Whether the node no longer counts as slow.
    pub(crate) fn keeps_up(&mut self, node: NodeId, job: JobId) -> bool {
        let was_said = self.said.get_mut(&node).is_some_and(|here| here.remove(&job).is_some());
        was_said && self.reconsider(node)
    }

    /// A job is slow wherever it is: what it said of nodes does not count. Whether any no longer counts as slow.
    pub(crate) fn takes_back(&mut self, job: JobId) -> bool {
        let nodes: Vec<NodeId> =
            self.said.iter().filter(|(_, here)| here.contains_key(&job)).map(|(node, _)| *node).collect();
        nodes.into_iter().fold(false, |any, node| self.keeps_up(node, job) | any)
    }

    fn reconsider(&mut self, node: NodeId) -> bool {
        let is_believed = self.said.get(&node).is_some_and(is_believed);
        self.said.retain(|_, here| !here.is_empty());
        !is_believed && self.slow.remove(&node).is_some()
    }

    /// Whether nodes no longer count as slow because nobody has said so for long enough.
    pub(crate) fn end(&mut self, now: Instant) -> bool {
        let over: Vec<NodeId> =
            self.slow.iter().filter(|(_, slow)| slow.until <= now).map(|(node, _)| *node).collect();
        over.iter().for_each(|node| {
            self.forget(*node);
        });
        !over.is_empty()
    }

    /// Nothing is held against a node any more; whether something was.
    pub(crate) fn forget(&mut self, node: NodeId) -> bool {
        self.said.remove(&node);
        self.slow.remove(&node).is_some()
    }
}

fn is_believed(said: &BTreeMap<JobId, Said>) -> bool {
    said.len() >= SEVERAL || said.values().any(|said| said.at_once)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(0);
    const HALF: Speed = Speed(500_000);

    fn at(minutes: u64) -> Instant {
        Instant::from_secs(60 * minutes)
    }

    fn says(slow_nodes: &mut SlowNodes, minutes: u64, node: NodeId, job: u32, beside: Compared) -> bool {
        slow_nodes.is_slow(at(minutes), (node, JobId(job)), (HALF, beside), 10)
    }

    #[test]
    fn who_falls_behind_others_is_believed_for_an_hour() {
        let mut slow_nodes = SlowNodes::default();
        assert!(says(&mut slow_nodes, 0, NODE, 1, Compared::AtOnce));
        assert!(!says(&mut slow_nodes, 30, NODE, 1, Compared::AtOnce), "it is slow already");
        assert!(!slow_nodes.end(at(89)));
        assert!(slow_nodes.end(at(90)));
        assert!(slow_nodes.is_nothing());
    }

    #[test]
    fn beside_the_past_alone_it_takes_two() {
        let mut slow_nodes = SlowNodes::default();
        assert!(!says(&mut slow_nodes, 0, NODE, 1, Compared::WithThePast));
        assert!(!says(&mut slow_nodes, 61, NODE, 2, Compared::WithThePast), "the first was too long ago");
        assert!(says(&mut slow_nodes, 62, NODE, 1, Compared::WithThePast));
    }

    #[test]
    fn who_keeps_up_or_is_slow_everywhere_takes_it_back() {
        let mut slow_nodes = SlowNodes::default();
        says(&mut slow_nodes, 0, NODE, 1, Compared::AtOnce);
        assert!(!slow_nodes.keeps_up(NODE, JobId(2)), "it had said nothing");
        assert!(slow_nodes.keeps_up(NODE, JobId(1)));
        says(&mut slow_nodes, 1, NODE, 1, Compared::AtOnce);
        assert!(slow_nodes.takes_back(JobId(1)));
        assert!(slow_nodes.is_nothing());
    }

    #[test]
    fn few_nodes_are_slow_at_once_and_nobody_is_believed_to_exaggerate() {
        let mut slow_nodes = SlowNodes::default();
        assert!(says(&mut slow_nodes, 0, NODE, 1, Compared::AtOnce));
        assert!(!says(&mut slow_nodes, 0, NodeId(1), 1, Compared::AtOnce), "one of ten already is");
        slow_nodes.is_slow(at(1), (NODE, JobId(2)), (Speed(1), Compared::AtOnce), 10);
        assert_eq!(slow_nodes.slow()[&NODE].speed, HALF);
    }
}
