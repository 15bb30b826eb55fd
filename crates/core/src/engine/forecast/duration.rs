//! How long a job will still take once it runs, and how that is known.

use super::{LEAST_GUESS, OVERDUE_PART};
use crate::model::job::Job;
use crate::model::units::{Duration, Instant};

/// How it is known how long a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Its owner said so.
    Said,
    /// It reports its iterations, and goes on at their pace.
    Measured,
    /// It is past its time: a guess.
    Overdue,
    /// Nobody said, or it seems to hang: a guess.
    Guessed,
}

/// The time left, and how it is known.
pub(super) fn left(job: &Job, now: Instant) -> (Duration, Length) {
    let ran = job.progress.executed(now);
    if job.progress.silent_since(now).is_some() {
        return (ran.max(LEAST_GUESS), Length::Guessed);
    }
    let measured = at_its_pace(job, now).map(|time| (time, Length::Measured));
    let known = measured.or_else(|| job.remaining(now).map(|time| (time, Length::Said)));
    match known {
        Some((time, how)) if !time.is_zero() => (time, how),
        Some(_) => (Duration(ran.0 / OVERDUE_PART).max(Duration::SECOND), Length::Overdue),
        None => (ran.max(LEAST_GUESS), Length::Guessed),
    }
}

/// The iterations that are left, each as long as those reported took in the mean.
fn at_its_pace(job: &Job, now: Instant) -> Option<Duration> {
    let (all, latest) = (job.spec.work.iterations?, job.progress.latest?);
    let (done, took) = (latest.iterations, job.progress.executed(latest.at));
    if done.is_zero() || took.is_zero() {
        return None;
    }
    let left = u128::from((all - done).0) * u128::from(took.0) / u128::from(done.0);
    let since = job.progress.executed(now) - took;
    Some(Duration(u64::try_from(left).unwrap_or(u64::MAX)) - since)
}
