//! What is kept of a plan for deadlines from one decision to the next.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::{Booking, Cost};
use crate::model::id::{JobId, NodeId};
use crate::model::job::Eligibility;
use crate::model::units::{Duration, Instant, Share};

/// What jobs of a kind share. Who takes from a part takes from the whole, too, where others take from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Pool {
    /// GPUs of the nodes on which somebody may run.
    Gpus(Eligibility),
    /// Cores of such nodes.
    Cores(Eligibility),
    /// Cores of one node, for jobs that are given more or fewer of them where they are.
    CoresOf(NodeId),
    /// The memory of the same nodes, where that may run out first.
    MemoryByGpus(Eligibility),
    MemoryByCores(Eligibility),
    MemoryOf(NodeId),
}

/// How sure it is that a job will be in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// What it needs is kept for it, whoever comes.
    Promised,
    /// What it needs is booked, and may go to others of whom more can be in time.
    Planned,
    /// Nothing is booked: it runs on what others leave, and is looked at again.
    Pending,
}

/// One job with a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booking: Option<Booking>,
    /// The node it is bound to, where it is given more or fewer cores in place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// Since when it was to have the size it has.
    pub since: Instant,
    /// How long it was thought to wait for others to make room for it.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub handover: Duration,
}

/// All that is booked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timetable {
    /// When it was made, and what there was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<Instant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) capacity: Vec<(Pool, i64)>,
    pub(crate) entries: BTreeMap<JobId, Entry>,
    /// What jobs that came lately would take at least, the newest last: what is dear is told by that.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) recent: VecDeque<Cost>,
    /// By how much jobs with deadlines that ended lately took longer or shorter than was said, in millionths; the newest
    /// last.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) errors: VecDeque<u32>,
    /// For how long work without deadlines waited with less than its part, less the time for which it did not.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(crate) owed: Duration,
}

/// So many newcomers are remembered.
const REMEMBERED: usize = 500;

/// Predictions are judged by so many jobs.
const JUDGED_BY: usize = 100;

/// Strict deadlines go below what is kept for work without deadlines until that has lacked it for so long; at most twice
/// that is made up for.
const PATIENCE: Duration = Duration::HOUR.times(12);

/// Before so many have come, nothing is dear, and predictions are believed.
const FEW: usize = 20;

impl Timetable {
    /// For serde: nothing is booked, and nobody has come.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.recent.is_empty() && self.errors.is_empty()
    }

    pub fn get(&self, job: JobId) -> Option<&Entry> {
        self.entries.get(&job)
    }

    pub fn iter(&self) -> impl Iterator<Item = (JobId, &Entry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Whether a job's size is a matter of the timetable.
    pub fn governs(&self, job: JobId) -> bool {
        self.entries.get(&job).is_some_and(|entry| entry.verdict != Verdict::Pending)
    }

    /// Everything but the entries: what the next timetable is made from.
    pub(crate) fn basis(self) -> Self {
        Self { entries: BTreeMap::new(), ..self }
    }

    /// What outlasts those who are booked.
    pub(crate) fn lessons(&self) -> Self {
        let Self { recent, errors, owed, .. } = self;
        Self { recent: recent.clone(), errors: errors.clone(), owed: *owed, ..Self::default() }
    }

    /// A job was done that was to take so long, and took as long as that.
    pub(crate) fn note_error(&mut self, said: Duration, took: Duration) {
        let off =
            u128::from(said.0.abs_diff(took.0)) * u128::from(Share::WHOLE.0) / u128::from(said.0.max(1));
        self.errors.push_back(u32::try_from(off).unwrap_or(u32::MAX));
        if self.errors.len() > JUDGED_BY {
            self.errors.pop_front();
        }
    }

    /// It was made for something else than there is: it is made anew in the next decision.
    pub(crate) fn no_longer_stands(&mut self) {
        self.capacity.clear();
    }

    /// For some time work without deadlines waited with less than its part.
    pub(crate) fn note_lack(&mut self, past: Duration) {
        self.owed = (self.owed + past).min(PATIENCE.times(2));
    }

    /// For some time it had that, or as much of it as it could use.
    pub(crate) fn note_plenty(&mut self, past: Duration) {
        self.owed -= past;
    }

    /// Whether it has lacked that for so long that strict deadlines leave it alone as well.
    pub(crate) fn owes_others(&self) -> bool {
        self.owed >= PATIENCE
    }

    /// What nine in ten of the last jobs were not off by; nothing before some are known.
    pub fn error(&self) -> Share {
        let mut sorted: Vec<u32> = self.errors.iter().copied().collect();
        sorted.sort_unstable();
        let ninth = sorted.len().checked_sub(1).map(|last| last * 9 / 10);
        Share(ninth.filter(|_| sorted.len() >= FEW).map_or(0, |ninth| sorted[ninth]))
    }

    /// Nothing is kept for a job any more; whether anything was.
    pub(crate) fn forget(&mut self, job: JobId) -> bool {
        self.entries.remove(&job).is_some_and(|entry| entry.booking.is_some())
    }

    /// The next time at which somebody's size changes.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let bookings = self.entries.values().filter_map(|entry| entry.booking.as_ref());
        bookings.filter_map(|booking| booking.next_change(now)).min()
    }

    pub(crate) fn note_newcomer(&mut self, cost: Cost) {
        self.recent.push_back(cost);
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }

    /// What four out of five who came lately would not exceed.
    pub(crate) fn dear(&self) -> Cost {
        if self.recent.len() < FEW {
            return Cost::MAX;
        }
        let mut sorted: Vec<Cost> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        sorted[(sorted.len() - 1) * 4 / 5]
    }
}

fn is_nothing(owed: &Duration) -> bool {
    owed.is_zero()
}
