//! The whole intended state, and the steps that lead to it.

mod assignment;
mod step;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::deadlines::{DeadlineEntry, Timetable};
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::{JobId, NodeId};
use crate::model::units::{Instant, Resources, Share};
use crate::traffic::TrafficPolicy;

pub use assignment::{Assignment, NotWhole, Part};
pub(crate) use step::action_towards;
pub use step::{Action, Step, StepId};

/// The number of a plan, which rises with every change of what a world is to make true: a step of a lower generation is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

/// Everything that a world is to make true. Jobs without an assignment hold nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub(crate) generation: Generation,
    assignments: BTreeMap<JobId, Arc<Assignment>>,
    /// Traffic policies of running jobs; the default policy is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) traffic: BTreeMap<JobId, TrafficPolicy>,
    /// CPU weights of running jobs; the default weight is left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) weights: BTreeMap<JobId, CpuWeight>,
    /// Predicted slowdowns of highest-priority jobs whose links have a traffic policy ([`Plan::slowdown_vs_fair`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) slowdowns: BTreeMap<JobId, Share>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reservations: Vec<Reservation>,
    /// Bookings of jobs with deadlines, and what the next timetable is made from.
    #[serde(default, skip_serializing_if = "Timetable::is_empty")]
    pub(crate) timetable: Timetable,
}

impl Plan {
    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn get(&self, job: JobId) -> Option<&Arc<Assignment>> {
        self.assignments.get(&job)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (JobId, &Arc<Assignment>)> {
        self.assignments.iter().map(|(job, held)| (*job, held))
    }

    pub fn len(&self) -> usize {
        self.assignments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.assignments.is_empty()
    }

    /// Traffic policies other than the default.
    pub fn traffic(&self) -> &BTreeMap<JobId, TrafficPolicy> {
        &self.traffic
    }

    pub fn traffic_policy(&self, job: JobId) -> TrafficPolicy {
        self.traffic.get(&job).copied().unwrap_or_default()
    }

    /// CPU weights other than the default.
    pub fn weights(&self) -> &BTreeMap<JobId, CpuWeight> {
        &self.weights
    }

    pub fn weight(&self, job: JobId) -> CpuWeight {
        self.weights.get(&job).copied().unwrap_or_default()
    }

    /// The iteration time of a highest-priority job under the traffic policies on its links, relative to fair sharing, as predicted
    /// when these policies were decided. `None` where its links are shared fairly, and for every job of a lower priority.
    pub fn slowdown_vs_fair(&self, job: JobId) -> Option<Share> {
        self.slowdowns.get(&job).copied()
    }

    /// All predicted slowdowns against fair sharing.
    pub(crate) fn slowdowns(&self) -> &BTreeMap<JobId, Share> {
        &self.slowdowns
    }

    /// Backfill reservations: jobs that wait for a time at which there is room.
    pub fn reservations(&self) -> &[Reservation] {
        &self.reservations
    }

    /// Bookings of jobs with deadlines.
    pub fn timetable(&self) -> &Timetable {
        &self.timetable
    }

    /// Sets or removes an assignment, and returns the previous one.
    pub(crate) fn set(&mut self, job: JobId, to: Option<Arc<Assignment>>) -> Option<Arc<Assignment>> {
        set(&mut self.assignments, job, to)
    }

    /// Adopts everything in an amendment but its assignments: those change indexes beside the plan.
    pub(crate) fn adopt_all_but_assignments(&mut self, amendment: Amendment) {
        let Amendment { generation, assignments: _, traffic, weights, slowdowns, reservations, bookings } =
            amendment;
        self.generation = generation;
        for (job, policy) in traffic {
            set(&mut self.traffic, job, (!policy.is_default()).then_some(policy));
        }
        for (job, weight) in weights {
            set(&mut self.weights, job, (!weight.is_default()).then_some(weight));
        }
        for (job, slowdown) in slowdowns {
            set(&mut self.slowdowns, job, slowdown);
        }
        for (job, entry) in bookings {
            set(&mut self.timetable.entries, job, entry);
        }
        if let Some(reservations) = reservations {
            self.reservations = reservations;
        }
    }

    /// A job is over: it has no directives any more.
    pub(crate) fn withdraw_directives(&mut self, job: JobId) {
        self.traffic.remove(&job);
        self.weights.remove(&job);
        self.slowdowns.remove(&job);
    }
}

fn set<T>(all: &mut BTreeMap<JobId, T>, job: JobId, to: Option<T>) -> Option<T> {
    match to {
        Some(to) => all.insert(job, to),
        None => all.remove(&job),
    }
}

/// What a decision changes in the plan: the difference of two plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Amendment {
    pub generation: Generation,
    /// The new assignment of each job whose assignment changes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assignments: BTreeMap<JobId, Option<Arc<Assignment>>>,
    /// Traffic policies that change; the default policy withdraws one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub traffic: BTreeMap<JobId, TrafficPolicy>,
    /// CPU weights that change; the default weight withdraws one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<JobId, CpuWeight>,
    /// Predicted slowdowns against fair sharing that change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slowdowns: BTreeMap<JobId, Option<Share>>,
    /// All reservations from now on, if any changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservations: Option<Vec<Reservation>>,
    /// Entries of the timetable that change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bookings: BTreeMap<JobId, Option<DeadlineEntry>>,
}

impl Amendment {
    /// An amendment of assignments alone.
    pub fn of_assignments(
        generation: Generation,
        assignments: BTreeMap<JobId, Option<Arc<Assignment>>>,
    ) -> Self {
        Self { generation, assignments, ..Self::default() }
    }

    /// Whether the plan stays as it is.
    pub fn is_empty(&self) -> bool {
        *self == Self { generation: self.generation, ..Self::default() }
    }
}

/// What changes from one map to the other.
pub(crate) fn difference<T: Clone + PartialEq>(
    before: &BTreeMap<JobId, T>,
    after: &BTreeMap<JobId, T>,
) -> BTreeMap<JobId, Option<T>> {
    let removed = before.keys().filter(|job| !after.contains_key(job)).map(|job| (*job, None));
    let changed = after.iter().filter(|(job, value)| before.get(job) != Some(value));
    removed.chain(changed.map(|(job, value)| (*job, Some(value.clone())))).collect()
}

/// Room kept for a job that does not fit now, from the time from which there is expected to be enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub job: JobId,
    pub from: Instant,
    /// How much of each of its nodes jobs may take that will still be there then.
    pub spare: BTreeMap<NodeId, Resources>,
}
