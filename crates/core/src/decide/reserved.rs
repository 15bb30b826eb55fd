//! Peak bandwidth as a resource: a job starts only where each link of its route has left what it sends at its peak.
//!
//! A job's peak on a link is what it takes of it while it sends by itself, so one that is narrower than the job's own
//! peak is taken whole. What is reserved is not lent, however seldom it is used.

use super::admit::Rules;
use super::draft::Draft;
use crate::id::JobId;
use crate::job::Job;
use crate::meetings::pattern_of;
use crate::plan::Assignment;
use crate::report::Reason;

/// A link is not overdrawn by rounding.
const ALL: f64 = 1.0 + 1e-9;

/// The nearest place at which its peak is left; an error where none is.
pub(super) fn choose<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId) -> Result<Assignment, Reason> {
    let job = &rules.snapshot.jobs[id];
    let places = rules.placer.alternatives(draft, job, rules.sizes)?;
    let left = places.into_iter().find(|place| is_left(draft, job, place, &[]));
    left.ok_or(Reason::BandwidthContended { patience: None })
}

/// Whether all links have left what a job would take of them at a place from which these have gone.
pub(super) fn is_left(draft: &Draft<'_>, job: &Job, place: &Assignment, gone: &[JobId]) -> bool {
    let meetings = &*draft.meetings;
    let flow = pattern_of(&job.spec).and_then(|pattern| meetings.flow_at(&job.spec, &pattern, place));
    let Some(flow) = flow else { return true };
    meetings.demands(&flow).into_iter().all(|(link, peak)| meetings.peaks_on(link, gone) + peak <= ALL)
}
