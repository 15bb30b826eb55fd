//! State of deadline bookings that persists from one decision to the next.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Booking, CapacityCost};
use crate::model::id::{JobId, NodeId};
use crate::model::job::Eligibility;
use crate::model::units::{Duration, Instant, Share};
use crate::tuning::DeadlinesTuning;

/// Capacity that jobs of one kind share. An allocation from a part is also an allocation from the whole if other jobs
/// draw from the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CapacityPool {
    /// GPUs of the nodes on which jobs with this eligibility may run.
    Gpus(Eligibility),
    /// Cores of these nodes.
    Cores(Eligibility),
    /// Cores of one node, for jobs whose cores change in place.
    CoresOf(NodeId),
    /// Memory of the same nodes, if it may be exhausted first.
    MemoryByGpus(Eligibility),
    MemoryByCores(Eligibility),
    MemoryOf(NodeId),
}

/// How certain a job is to meet its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DeadlineVerdict {
    /// Its capacity is reserved; later jobs cannot take it.
    Promised,
    /// Its capacity is booked, but may go to other jobs if more deadlines are met that way.
    Planned,
    /// No capacity is booked: the job runs on leftover capacity and is reconsidered at each decision.
    Pending,
}

/// State of one job with a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadlineEntry {
    pub verdict: DeadlineVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booking: Option<Booking>,
    /// Node of a job whose cores change in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Time since which the job was to have its present size.
    pub since: Instant,
    /// Predicted time until other jobs release the capacity.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub handover: Duration,
}

/// All bookings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timetable {
    /// Time at which the bookings were computed, and the capacity of the pools then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<Instant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) capacity: Vec<(CapacityPool, i64)>,
    pub(crate) entries: BTreeMap<JobId, DeadlineEntry>,
    /// Minimum costs of the most recent jobs, the newest last; they define an expensive job.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) recent: VecDeque<CapacityCost>,
    /// Relative errors of the predicted durations of recently completed jobs with deadlines, in millionths; the
    /// newest last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) errors: VecDeque<u32>,
    /// Time for which work without deadlines had less than its share, minus the time for which it had at least that.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(crate) owed: Duration,
}

impl Timetable {
    /// Whether the value is the default, which serde omits.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn get(&self, job: JobId) -> Option<&DeadlineEntry> {
        self.entries.get(&job)
    }

    pub fn iter(&self) -> impl Iterator<Item = (JobId, &DeadlineEntry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Whether the bookings determine the size of a job.
    pub fn governs(&self, job: JobId) -> bool {
        self.entries.get(&job).is_some_and(|entry| entry.verdict != DeadlineVerdict::Pending)
    }

    /// Everything but the entries: what the next timetable is made from.
    pub(crate) fn basis(self) -> Self {
        Self { entries: BTreeMap::new(), ..self }
    }

    /// Statistics that outlive the bookings.
    pub(crate) fn lessons(&self) -> Self {
        let Self { recent, errors, owed, .. } = self;
        Self { recent: recent.clone(), errors: errors.clone(), owed: *owed, ..Self::default() }
    }

    /// Records the predicted and the real duration of a completed job.
    pub(crate) fn record_prediction_error(
        &mut self,
        said: Duration,
        took: Duration,
        tuning: &DeadlinesTuning,
    ) {
        let off =
            u128::from(said.0.abs_diff(took.0)) * u128::from(Share::WHOLE.0) / u128::from(said.0.max(1));
        self.errors.push_back(u32::try_from(off).unwrap_or(u32::MAX));
        while self.errors.len() > tuning.recent_prediction_errors {
            self.errors.pop_front();
        }
    }

    /// Invalidates the bookings because the capacity changed: the next decision computes them anew.
    pub(crate) fn invalidate_bookings(&mut self) {
        self.capacity.clear();
    }

    /// Adds time for which work without deadlines had less than its share.
    pub(crate) fn record_shortage(&mut self, past: Duration, tuning: &DeadlinesTuning) {
        let limit = tuning.max_shortage.times(tuning.max_shortage_factor);
        self.owed = (self.owed + past).min(limit);
    }

    /// Adds time for which work without deadlines had its share, or all it could use.
    pub(crate) fn record_sufficient_share(&mut self, past: Duration) {
        self.owed -= past;
    }

    /// Whether work without deadlines lacked its share for so long that strict deadlines leave it alone.
    pub(crate) fn owes_best_effort(&self, tuning: &DeadlinesTuning) -> bool {
        self.owed >= tuning.max_shortage
    }

    /// High quantile of the recent prediction errors; zero before enough are known.
    pub fn error(&self, tuning: &DeadlinesTuning) -> Share {
        let mut sorted: Vec<u32> = self.errors.iter().copied().collect();
        sorted.sort_unstable();
        if sorted.len() < tuning.min_samples {
            return Share::NONE;
        }
        Share(at_rank(&sorted, tuning.prediction_error_rank).copied().unwrap_or(0))
    }

    /// Removes a job. Returns whether it had a booking.
    pub(crate) fn forget(&mut self, job: JobId) -> bool {
        self.entries.remove(&job).is_some_and(|entry| entry.booking.is_some())
    }

    /// Next time at which the size of any job changes.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let bookings = self.entries.values().filter_map(|entry| entry.booking.as_ref());
        bookings.filter_map(|booking| booking.next_change(now)).min()
    }

    /// Records the minimum cost of a new job.
    pub(crate) fn record_minimum_cost(&mut self, cost: CapacityCost, tuning: &DeadlinesTuning) {
        self.recent.push_back(cost);
        while self.recent.len() > tuning.recent_costs {
            self.recent.pop_front();
        }
    }

    /// High quantile of the recent minimum costs; a job above it is expensive.
    pub(crate) fn dear(&self, tuning: &DeadlinesTuning) -> CapacityCost {
        if self.recent.len() < tuning.min_samples {
            return CapacityCost::MAX;
        }
        let mut sorted: Vec<CapacityCost> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        at_rank(&sorted, tuning.promised_cost_rank).copied().unwrap_or(CapacityCost::MAX)
    }
}

/// The value at a rank of sorted values: zero is the first, the whole the last.
fn at_rank<T>(sorted: &[T], rank: Share) -> Option<&T> {
    let last = sorted.len().checked_sub(1)? as u64;
    sorted.get((last * u64::from(rank.0) / u64::from(Share::WHOLE.0)) as usize)
}

fn is_nothing(owed: &Duration) -> bool {
    owed.is_zero()
}
