//! The figures of one run.

use metronome_core::model::job::{Binding, Priority};
use metronome_core::model::units::{Duration, Instant, Share};

use super::figures::{
    Allocated, BestEffort, Bound, ByPriority, Class, CpuUtilisation, Deadlines, Decisions, ExchangeSeconds,
    Figures, JctSeconds, Jobs, LinkAnswerSeconds, QualitySeconds, QueueingSeconds, Reconfigurations,
    Slowdown, Utilisation,
};
use super::statistics::Sorted;
use crate::outcome::{Fate, JobOutcome, Outcome, Reconfigured, Taken};

pub(super) fn figures(outcome: &Outcome) -> Figures<u64> {
    let accepted = || outcome.jobs.iter().filter(|job| job.fate != Fate::Refused);
    let total = |count: fn(&JobOutcome) -> u32| outcome.jobs.iter().map(|job| u64::from(count(job))).sum();
    let jct = Sorted::times(accepted().map(|job| completion_time(job, outcome.ended)));
    let queueing = Sorted::times(accepted().map(|job| queueing_time(job, outcome.ended)));
    let slowdown = Sorted::ratios(accepted().filter_map(slowdown));
    let completed = accepted().filter(|job| job.fate == Fate::Completed);
    let exchange = Sorted::ratios(completed.filter_map(|job| job.exchange));
    Figures {
        jobs: jobs(outcome),
        jct_s: JctSeconds {
            mean: jct.mean(),
            median: jct.seconds_at(50),
            p90: jct.seconds_at(90),
            p99: jct.seconds_at(99),
        },
        makespan_s: makespan(outcome).map(Duration::as_secs_f64),
        quality_s: quality(outcome),
        queueing_s: QueueingSeconds { mean: queueing.mean(), p99: queueing.seconds_at(99) },
        slowdown: Slowdown { mean: slowdown.mean(), p99: slowdown.percentile(99), max: slowdown.max() },
        exchange_s: ExchangeSeconds { mean: exchange.mean(), p99: exchange.percentile(99) },
        link_utilisation: Utilisation { mean: link_utilisation(outcome) },
        gpu_utilisation: Utilisation { mean: gpu_utilisation(outcome) },
        gpu_allocated: Allocated { peak: gpu_allocated(outcome) },
        cpu_allocated_utilisation: cpu_utilisation(outcome),
        deadlines: deadlines(outcome),
        best_effort: best_effort(outcome),
        by_priority: by_priority(outcome),
        moves: total(|job| job.moves),
        resizes: total(|job| job.resizes),
        resizes_in_place: total(|job| job.resizes_in_place),
        preemptions: total(|job| job.preemptions),
        reconfigurations: reconfigurations(outcome.reconfigured),
        link_answer_s: link_answer(&outcome.link_answers),
        decisions: decisions(&outcome.decision_nanos),
    }
}

fn jobs(outcome: &Outcome) -> Jobs<u64> {
    let count = |fate: Fate| outcome.jobs.iter().filter(|job| job.fate == fate).count() as u64;
    let deadlocked = count(Fate::Deadlocked);
    Jobs {
        submitted: outcome.jobs.len() as u64,
        completed: count(Fate::Completed),
        refused: count(Fate::Refused),
        failed: count(Fate::Failed),
        deadlocked,
        unfinished: count(Fate::Unfinished) + deadlocked,
    }
}

/// When the job was over, or the run.
fn end(job: &JobOutcome, ended: Instant) -> Instant {
    job.end.unwrap_or(ended)
}

fn completion_time(job: &JobOutcome, ended: Instant) -> Duration {
    match job.fate {
        Fate::Completed => end(job, ended).since(job.submit),
        _ => ended.since(job.submit),
    }
}

pub(crate) fn queueing_time(job: &JobOutcome, ended: Instant) -> Duration {
    end(job, ended).since(job.submit) - job.ran
}

/// As the network had it, else training time over time alone.
pub(super) fn slowdown(job: &JobOutcome) -> Option<f64> {
    let trained = (!job.alone.is_zero()).then(|| job.ran.0 as f64 / job.alone.0 as f64);
    job.slowdown.or(trained).filter(|_| job.fate == Fate::Completed)
}

fn quality(outcome: &Outcome) -> QualitySeconds {
    let accepted = outcome.jobs.iter().filter(|job| job.fate != Fate::Refused);
    let known: Vec<_> = accepted.filter_map(|job| Some((job.submit, job.reached?))).collect();
    let mean = |milestone: usize| {
        let times =
            known.iter().map(|(submit, reached)| reached[milestone].unwrap_or(outcome.ended).since(*submit));
        Sorted::times(times).mean()
    };
    let [to_90, to_95, to_99] = std::array::from_fn(mean);
    QualitySeconds { to_90, to_95, to_99 }
}

fn makespan(outcome: &Outcome) -> Option<Duration> {
    let first = outcome.jobs.iter().map(|job| job.submit).min()?;
    Some(last_end(outcome)?.since(first))
}

/// The last end of a job that was not refused.
fn last_end(outcome: &Outcome) -> Option<Instant> {
    let accepted = outcome.jobs.iter().filter(|job| job.fate != Fate::Refused);
    accepted.map(|job| end(job, outcome.ended)).max()
}

fn gpu_utilisation(outcome: &Outcome) -> Option<f64> {
    let offered = outcome.gpu_capacity.0 as f64 * active_time(outcome)?.0 as f64;
    (offered > 0.0).then(|| outcome.gpu_busy.0 as f64 / offered)
}

fn gpu_allocated(outcome: &Outcome) -> Option<f64> {
    outcome.jobs.iter().find_map(|job| job.start)?;
    let (peak, all) = (outcome.gpu_peak?.0, outcome.gpu_capacity.0);
    (all > 0).then(|| peak as f64 / all as f64)
}

/// From the first start to the last end.
fn active_time(outcome: &Outcome) -> Option<Duration> {
    let first_start = outcome.jobs.iter().filter_map(|job| job.start).min()?;
    Some(last_end(outcome)?.since(first_start))
}

/// Over the links that carried anything.
fn link_utilisation(outcome: &Outcome) -> Option<f64> {
    let used = || outcome.links.iter().filter(|link| link.carried > 0.0);
    let bytes_a_second: f64 = used().map(|link| link.rate.0 as f64 / 8.0).sum();
    let offered = bytes_a_second * active_time(outcome)?.as_secs_f64();
    (offered > 0.0).then(|| used().map(|link| link.carried).sum::<f64>() / offered)
}

/// Core-time in which cores computed over core-time in which jobs had them.
fn cpu_utilisation(outcome: &Outcome) -> CpuUtilisation {
    let share = |most: Share| {
        let used = outcome.jobs.iter().filter_map(|job| job.cpu).filter(|cpu| cpu.serial <= most);
        let (used, held) = used.fold((0.0, 0.0), |(used, held), cpu| (used + cpu.used, held + cpu.held));
        (held > 0.0).then(|| used / held)
    };
    CpuUtilisation { mean: share(Share::WHOLE), nearly_parallel: share(NEARLY_PARALLEL) }
}

/// One core does at most a hundredth.
const NEARLY_PARALLEL: Share = Share(Share::WHOLE.0 / 100);

fn deadlines(outcome: &Outcome) -> Deadlines<u64> {
    let all = bound(outcome, |_| true);
    let bound_by = |binding| bound(outcome, move |job| job.binding.unwrap_or_default() == binding);
    Deadlines {
        share: (all.total > 0).then(|| all.met as f64 / all.total as f64),
        total: all.total,
        met: all.met,
        strict: bound_by(Binding::Strict),
        soft: bound_by(Binding::Soft),
        best_effort: bound_by(Binding::BestEffort),
        admitted: bound(outcome, |job| job.taken.is_some()),
        promised: bound(outcome, |job| job.taken == Some(Taken::Promised)),
    }
}

fn bound(outcome: &Outcome, of: impl Fn(&JobOutcome) -> bool) -> Bound<u64> {
    let meant = |job: &&JobOutcome| job.deadline.is_some() && of(job);
    let total = outcome.jobs.iter().filter(meant).count() as u64;
    let met = outcome.jobs.iter().filter(meant).filter(|job| is_in_time(job)).count() as u64;
    Bound { total, met, missed: total - met }
}

pub(super) fn is_in_time(job: &JobOutcome) -> bool {
    let in_time = job.end.zip(job.deadline).is_some_and(|(end, deadline)| end <= deadline);
    job.fate == Fate::Completed && in_time
}

fn best_effort(outcome: &Outcome) -> BestEffort<u64> {
    let binds = |job: &JobOutcome| job.deadline.is_some() && job.binding != Some(Binding::BestEffort);
    let jobs = || outcome.jobs.iter().filter(|job| job.fate != Fate::Refused && !binds(job));
    let times = jobs().map(|job| completion_time(job, outcome.ended));
    BestEffort { jobs: jobs().count() as u64, jct_mean_s: Sorted::times(times).mean() }
}

fn by_priority(outcome: &Outcome) -> ByPriority {
    let class = |of: fn(Priority) -> bool| {
        let jobs = || outcome.jobs.iter().filter(move |job| job.fate != Fate::Refused && of(job.priority));
        let slowdown = Sorted::ratios(jobs().filter_map(slowdown));
        Class {
            jct_mean_s: Sorted::times(jobs().map(|job| completion_time(job, outcome.ended))).mean(),
            slowdown_mean: slowdown.mean(),
            slowdown_p99: slowdown.percentile(99),
        }
    };
    ByPriority {
        high: class(|priority| priority >= Priority::HIGH),
        normal: class(|priority| Priority::LOW < priority && priority < Priority::HIGH),
        low: class(|priority| priority <= Priority::LOW),
    }
}

fn reconfigurations(made: Reconfigured) -> Reconfigurations<u64> {
    let Reconfigured {
        arrival,
        departure,
        link,
        profile,
        drift,
        priorities,
        room,
        fragmentation,
        slow_node,
        drained,
    } = made;
    Reconfigurations {
        arrival,
        departure,
        link,
        profile,
        drift,
        priorities,
        room,
        fragmentation,
        slow_node,
        drained,
    }
}

fn link_answer(answers: &[Duration]) -> LinkAnswerSeconds {
    let answers = Sorted::times(answers.iter().copied());
    LinkAnswerSeconds { mean: answers.mean(), max: answers.seconds_at(100) }
}

fn decisions(nanos: &[u64]) -> Decisions<u64> {
    let times = Sorted::times(nanos.iter().map(|nanos| Duration(*nanos)));
    let millis = |percent| times.seconds_at(percent).map(|seconds| seconds * 1000.0);
    Decisions { count: nanos.len() as u64, p50_ms: millis(50), p99_ms: millis(99) }
}
