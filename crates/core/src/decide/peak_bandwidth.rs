//! Peak bandwidth as a resource: a job starts only where each link of its route has left what the job sends at its
//! peak.
//!
//! The peak of a job on a link is what it takes of the link while it sends alone, so a link that is narrower than the
//! peak is taken whole. Reserved bandwidth is not lent, however seldom it is used.

use super::draft::Draft;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::report::Reason;
use crate::traffic::contention_graph::pattern_of;

/// The tolerance for rounding when peaks are added up.
const ALL: f64 = 1.0 + 1e-9;

/// The nearest place at which the peak of a job is left on all links; an error where there is none.
pub(super) fn choose(draft: &Draft<'_>, job: &Job, places: Vec<Assignment>) -> Result<Assignment, Reason> {
    let left = places.into_iter().find(|place| is_left(draft, job, place, &[]));
    left.ok_or(Reason::BandwidthContended { patience: None })
}

/// Whether all links have left the peak of a job at a place, once these jobs have gone.
pub(super) fn is_left(draft: &Draft<'_>, job: &Job, place: &Assignment, gone: &[JobId]) -> bool {
    let contention = &*draft.contention;
    let flow = pattern_of(&job.spec).and_then(|pattern| contention.flow_at(&job.spec, &pattern, place));
    let Some(flow) = flow else { return true };
    contention.demands(&flow).into_iter().all(|(link, peak)| contention.peaks_on(link, gone) + peak <= ALL)
}
