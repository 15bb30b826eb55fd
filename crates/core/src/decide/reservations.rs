//! Backfill reservations: job, start time, spare capacity per node.
//!
//! Running jobs are expected to leave when their work is done. Released one after the other in a trial, at some time
//! they leave capacity for the waiting job: from then on it is reserved. A job that ends before may use it until then;
//! other jobs only what the reservation leaves of its nodes. So a large gang starts no later than if no job came after
//! it, and small jobs fill the capacity meanwhile. A job gets a reservation only once it has waited for as long as
//! counts in its priority (`Weights::window`): most get a place without one, and a reservation costs other jobs.

use super::draft::{Draft, Reach};
use super::estimates::{end_if_started, expected_end};
use super::member_fits::Fits;
use super::order::Ranker;
use super::placement;
use super::view::View;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::{Assignment, Reservation};
use crate::model::units::{Duration, Instant};

/// The time from which a waiting job is owed a reservation. A job that can be suspended for the gain of others gets
/// none before it is exempt from that: the place would be taken from it again.
pub(super) fn owed_from(job: &Job, ranker: &Ranker<'_>, now: Instant) -> Instant {
    let window = ranker.window(job.spec.queue);
    let alone = job.spec.work.alone.unwrap_or(Duration::ZERO);
    let lengths = if job.spec.capabilities.suspend {
        ranker.tuning().min_wait_before_exemption
    } else {
        ranker.tuning().min_wait_before_reservation
    };
    job.submitted + job.progress.useful_run_time(now) + window.max(alone.times(lengths))
}

/// Finds the time from which a job is expected to fit, and what other jobs may take of its nodes until then and after.
pub(super) fn reserve<'a>(view: &View<'a>, draft: &Draft<'a>, id: JobId) -> Option<Reservation> {
    let job = &view.snapshot.jobs[id];
    let leaving = in_order_of_leaving(view, draft);
    let mut trial = draft.trial();
    let counted = Fits::of(job);
    let mut fit = counted.map(|fits| fits.everywhere(&trial));
    let max_tries = view.snapshot.tuning.decide.max_reservation_tries;
    let (mut tries, mut next_try) = (0, 0);
    for (at, (end, who, assignment)) in leaving.iter().enumerate() {
        let before = counted.map_or(0, |fits| fits.around(&trial, assignment));
        trial.release(who, assignment);
        let after = counted.map_or(0, |fits| fits.around(&trial, assignment));
        fit = fit.map(|fit| fit - before + after);
        let together = leaving.get(at + 1).is_some_and(|(next, _, _)| next == end);
        let may_fit = counted.is_none_or(|fits| fit.is_some_and(|fit| fit >= fits.wanted));
        if together || !may_fit || at < next_try {
            continue;
        }
        if let Some(found) = placement::fit_released(view, &mut trial, job) {
            let spare = found.takes().iter();
            let spare = spare.map(|(node, taken)| (*node, trial.free_on(*node, Reach::Claimed) - *taken));
            return Some(Reservation { job: id, from: *end, spare: spare.collect() });
        }
        tries += 1;
        next_try = at + leaving.len() / max_tries + 1;
        if tries >= max_tries {
            break;
        }
    }
    None
}

type Leaving<'d> = (Instant, &'d Job, &'d Assignment);

/// Jobs in the plan and jobs that this draft starts, in the order of their expected ends.
fn in_order_of_leaving<'d, 'a: 'd>(view: &View<'a>, draft: &'d Draft<'a>) -> Vec<Leaving<'d>> {
    let (jobs, now) = (view.snapshot.jobs, view.snapshot.now);
    let planned = view.snapshot.plan.iter().filter(|(id, _)| !draft.is_changed(*id));
    let running = planned.map(|(id, held)| (expected_end(view.snapshot, &jobs[id]), &jobs[id], &**held));
    let starting = draft.starting().map(|(id, held)| {
        let job = &jobs[id];
        let end = match job.life.is_waiting() {
            true => {
                end_if_started(job, now).unwrap_or(now + view.snapshot.tuning.decide.least_expected_duration)
            }
            false => expected_end(view.snapshot, job),
        };
        (end, job, &**held)
    });
    let mut leaving: Vec<Leaving<'d>> = running.chain(starting).collect();
    leaving.sort_by_key(|(end, _, _)| *end);
    leaving
}
