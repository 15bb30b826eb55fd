//! Peak bandwidth as a resource: a job starts only where each link of its route has left what it sends at its peak.
//!
//! A job's peak on a link is what it takes of it while it sends by itself, so one that is narrower than the job's own
//! peak is taken whole. What is reserved is not lent, however seldom it is used.

use super::draft::Draft;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::report::Reason;
use crate::traffic::contention_graph::pattern_of;

/// A link is not overdrawn by rounding.
const ALL: f64 = 1.0 + 1e-9;

/// The nearest place at which its peak is left; an error where none is.
pub(super) fn choose(draft: &Draft<'_>, job: &Job, places: Vec<Assignment>) -> Result<Assignment, Reason> {
    let left = places.into_iter().find(|place| is_left(draft, job, place, &[]));
    left.ok_or(Reason::BandwidthContended { patience: None })
}

/// Whether all links have left what a job would take of them at a place from which these have gone.
pub(super) fn is_left(draft: &Draft<'_>, job: &Job, place: &Assignment, gone: &[JobId]) -> bool {
    let contention = &*draft.contention;
    let flow = pattern_of(&job.spec).and_then(|pattern| contention.flow_at(&job.spec, &pattern, place));
    let Some(flow) = flow else { return true };
    contention.demands(&flow).into_iter().all(|(link, peak)| contention.peaks_on(link, gone) + peak <= ALL)
}
