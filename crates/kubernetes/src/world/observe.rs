//! Observe-only: when each pod would have been bound, against when the scheduler in charge did.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use metronome_core::model::id::JobId;
use metronome_core::model::units::{Duration, Instant};

use super::World;
use super::crew::Stage;
use super::describe::full_name;
use super::pods::Uid;

/// How many single comparisons are kept for whoever asks.
const REMEMBERED: usize = 1000;
/// Closer than this counts as the same moment: the API's own times are whole seconds.
const SAME: Duration = Duration::SECOND;

#[derive(Debug, Default)]
pub(super) struct Observed {
    would: BTreeMap<Uid, (Instant, String)>,
    last: VecDeque<Comparison>,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    pub pods: u64,
    pub earlier: u64,
    pub same: u64,
    /// Bound by the scheduler in charge before we would have: how much later we would have been is not known.
    pub later: u64,
    pub earlier_seconds: f64,
    pub other_node: u64,
}

/// One pod under both schedulers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub pod: String,
    pub node: String,
    /// Where it would have gone; none if it was still waiting here.
    pub would_be_on: Option<String>,
    /// By how much it would have started earlier; none if it would have started later.
    pub earlier_by_seconds: Option<f64>,
}

impl World {
    pub(super) fn would_start(&mut self, now: Instant, job: JobId) {
        let seats = self.seats(job);
        for seat in seats {
            self.observed.would.entry(seat.pod.uid).or_insert_with(|| (now, seat.node.to_string()));
        }
    }

    /// The scheduler in charge has bound a pod: from here on it is where it is, not where it would be.
    pub(super) fn note_real_start(&mut self, now: Instant, uid: &Uid) {
        let known = &self.pods[uid];
        let Some(node) = known.pod.spec.node_name.clone() else { return };
        if self.settings.mode == super::Mode::Bind || known.pod.metadata.deletion_timestamp.is_some() {
            return;
        }
        let pod = full_name(&known.pod);
        let job = known.job;
        self.compare(now, uid, pod, node);
        if let Some(job) =
            job.filter(|job| self.crews.get(job).is_some_and(|crew| crew.stage == Stage::Running))
        {
            self.dissolve(now, job);
        }
    }

    fn compare(&mut self, now: Instant, uid: &Uid, pod: String, node: String) {
        let would = self.observed.would.remove(uid);
        let earlier_by = would.as_ref().map(|(at, _)| now.since(*at));
        let totals = &mut self.observed.totals;
        totals.pods += 1;
        match earlier_by {
            None => totals.later += 1,
            Some(by) if by < SAME => totals.same += 1,
            Some(by) => {
                totals.earlier += 1;
                totals.earlier_seconds += by.as_secs_f64();
            }
        }
        let would_be_on = would.map(|(_, node)| node);
        totals.other_node += u64::from(would_be_on.as_ref().is_some_and(|would| *would != node));
        let earlier_by_seconds = earlier_by.map(Duration::as_secs_f64);
        self.observed.last.push_back(Comparison { pod, node, would_be_on, earlier_by_seconds });
        if self.observed.last.len() > REMEMBERED {
            self.observed.last.pop_front();
        }
    }

    /// What observing has shown so far: the totals and the last comparisons.
    pub fn observed(&self) -> (Totals, impl Iterator<Item = &Comparison>) {
        (self.observed.totals, self.observed.last.iter())
    }
}
