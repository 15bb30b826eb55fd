//! When jobs are expected to end.

use crate::decide::snapshot::Snapshot;
use crate::model::job::Job;
use crate::model::units::{Duration, Instant};

/// The end of a job that starts now, restart included; `None` where its work is unknown.
pub(super) fn end_if_started(job: &Job, now: Instant) -> Option<Instant> {
    job.remaining(now).map(|left| now + left + restart_of(job))
}

fn restart_of(job: &Job) -> Duration {
    job.spec.checkpointing.map_or(Duration::ZERO, |checkpointing| checkpointing.restart)
}

/// The end of a running job. A job that should have ended already, or whose work is unknown, is expected to run as long
/// again as it has.
pub(super) fn expected_end(snapshot: &Snapshot<'_>, job: &Job) -> Instant {
    let now = snapshot.now;
    match job.time_left(now).filter(|left| !left.is_zero()) {
        Some(left) => now + left,
        None => now + job.progress.useful_run_time(now).max(snapshot.tuning.decide.least_expected_duration),
    }
}
