//! Which running job may be evicted for a waiting one of its own queue.

use super::order::Ranker;
use super::view::View;
use crate::model::job::Job;
use crate::model::units::{Duration, GpuTime, Instant};

/// Whether a job has waited so long that it is exempt from preemption within its queue: neither a stream of short jobs
/// nor one of urgent ones keeps it from ending. A job of unknown length is never exempt.
pub(super) fn is_exempt(job: &Job, ranker: &Ranker<'_>, now: Instant) -> bool {
    let waited = now.since(job.submitted) - job.progress.useful_run_time(now);
    let enough = |alone: Duration| {
        ranker.window(job.spec.queue).max(alone.times(ranker.tuning().min_wait_before_exemption))
    };
    job.spec.work.alone.is_some_and(|alone| waited >= enough(alone))
}

/// Whether `first` had better go before `later`: a job of no higher priority that has far more left to do, and loses
/// only time by it.
pub(super) fn gains(view: &View<'_>, first: &Job, later: &Job) -> bool {
    let (now, min_gain) = (view.snapshot.now, view.snapshot.tuning.decide.min_preemption_gain);
    let (Some(left), Some(margin)) = (first.remaining(now), margin(later, now, min_gain)) else {
        return false;
    };
    later.spec.priority <= first.spec.priority
        && later.spec.user <= first.spec.user
        && margin > service(first, left) as Margin * min_gain as Margin
}

/// The margin of a job: what it has left to do beyond what stopping it costs. A job whose service times the gain is
/// less goes first. None for a job that loses more than time, or of unknown length.
pub(super) type Margin = i128;

pub(super) fn margin(later: &Job, now: Instant, min_gain: u128) -> Option<Margin> {
    let left = later.remaining(now).filter(|_| later.spec.capabilities.suspend)?;
    let cost = service(later, loss(later, now)) * min_gain;
    Some(service(later, left) as Margin * 10 - cost as Margin)
}

pub(super) fn service(job: &Job, time: Duration) -> u128 {
    GpuTime::of(job.spec.gpus(), time).0
}

/// The time that stopping a job costs: work since its last checkpoint, and saving and resuming.
pub(super) fn loss(job: &Job, now: Instant) -> Duration {
    match job.spec.checkpointing {
        Some(saving) if job.spec.capabilities.suspend => saving.takes + saving.restart,
        _ if job.spec.capabilities.suspend => Duration::ZERO,
        _ => job.runs_since.map_or(Duration::ZERO, |since| now.since(since)),
    }
}

/// Whether one job has a lower priority or user priority than another, and neither is higher.
pub(super) fn is_below(one: &Job, other: &Job) -> bool {
    let (one, other) = (&one.spec, &other.spec);
    let neither_higher = one.priority <= other.priority && one.user <= other.user;
    neither_higher && (one.priority < other.priority || one.user < other.user)
}
