//! A row for each job of a run: its iteration times, what was learned of it and what it was told.

use serde::Serialize;
use serde_json::Value;

use super::runs::{JobRun, Run};

/// Buckets are rebuilt in the first iteration, after the weights were broadcast: it does not count.
const FIRST_COUNTED: usize = 1;

/// Settling lasts so many iterations from the first directive on.
const SETTLING: usize = 20;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) job: String,
    pub(super) start: u64,
    pub(super) policy: String,
    pub(super) delay_ms: f64,
    /// Iterations that count: all but the first, until the first job of the run ended.
    pub(super) iterations: usize,
    pub(super) mean_ms: f64,
    pub(super) second_half_ms: f64,
    /// What the simulator says of the same run.
    pub(super) simulated_ms: Option<f64>,
    /// The part of the machine's processor time that was used during the run.
    pub(super) busy: Option<f64>,
    /// After how many iterations decisions were first made with a profile of it.
    pub(super) first_used: Option<usize>,
    pub(super) learned: Option<Learned>,
    /// After how many iterations it was given traffic directives, and how long after the run began to train.
    pub(super) directives: Vec<Directive>,
    /// The mean of the iterations after the first directive.
    pub(super) settling_ms: Option<f64>,
    /// The same iterations under fair sharing, from the same start.
    pub(super) settling_fair_ms: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Directive {
    pub(super) iteration: usize,
    pub(super) at_ms: f64,
    /// None where the job shares its links fairly from then on.
    pub(super) what: Option<String>,
}

/// The last profile: the period and the bytes of an iteration, without what contention adds where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Learned {
    pub(super) period_ms: f64,
    pub(super) bytes: f64,
    /// The period as it was seen, with what contention adds.
    pub(super) seen_period_ms: f64,
    pub(super) confidence: f64,
}

impl Learned {
    pub(super) fn read(said: &Value) -> Option<Self> {
        let confidence = said["confidence"].as_f64()?;
        let seen_period_ms = said["period_ns"].as_f64()? / 1e6;
        let of = &said["uncontended"];
        let sent = |phase: &Value| Some(phase["rate_bps"].as_f64()? * phase["length_ns"].as_f64()? / 8e9);
        let (period_ms, bytes) = match (of["period_ns"].as_f64(), of["bytes"].as_f64()) {
            (Some(period), Some(bytes)) => (period / 1e6, bytes),
            _ => (seen_period_ms, said["phases"].as_array()?.iter().map(sent).sum::<Option<f64>>()?),
        };
        Some(Self { period_ms, bytes, seen_period_ms, confidence })
    }
}

/// The rows of a run; `fair` is the run under fair sharing from the same start.
pub(super) fn rows(run: &Run, fair: Option<&Run>) -> Vec<Row> {
    let ends = |job: &JobRun| job.times.last().copied().unwrap_or_default();
    let first_end = run.jobs.iter().map(ends).fold(f64::INFINITY, f64::min);
    let row = |(place, job): (usize, &JobRun)| {
        let counted = job.times.partition_point(|end| *end <= first_end).saturating_sub(1);
        let middle = FIRST_COUNTED + counted.saturating_sub(FIRST_COUNTED) / 2;
        let directives: Vec<Directive> = job.directives.iter().map(|told| directive(job, told)).collect();
        let settling = directives
            .iter()
            .find(|told| told.what.is_some())
            .map(|told| told.iteration.max(FIRST_COUNTED))
            .map(|first| [first, (first + SETTLING).min(counted)]);
        let fair = fair.and_then(|fair| fair.jobs.get(place));
        Some(Row {
            job: job.job.clone(),
            start: run.start,
            policy: run.policy.clone(),
            delay_ms: job.delay_ms,
            iterations: counted.checked_sub(FIRST_COUNTED)?,
            mean_ms: job.mean(FIRST_COUNTED, counted)?,
            second_half_ms: job.mean(middle, counted)?,
            simulated_ms: None,
            busy: run.busy,
            first_used: job.first_used_at.map(|at| job.iterations_before(at)),
            learned: job.learned.as_ref().and_then(Learned::read),
            directives,
            settling_ms: settling.and_then(|[from, until]| job.mean(from, until)),
            settling_fair_ms: settling.and_then(|[from, until]| fair?.mean(from, until)),
        })
    };
    run.jobs.iter().enumerate().filter_map(row).collect()
}

fn directive(job: &JobRun, (at, what): &(f64, Option<Value>)) -> Directive {
    let what = what.as_ref().map(|what| match what.as_object() {
        Some(of) => of.keys().cloned().collect::<Vec<_>>().join(" "),
        None => what.to_string(),
    });
    Directive { iteration: job.iterations_before(*at), at_ms: *at, what }
}

impl JobRun {
    /// How many iterations had ended by then.
    fn iterations_before(&self, at: f64) -> usize {
        self.times.partition_point(|end| *end <= at).saturating_sub(1)
    }

    /// The mean time of the iterations from one to before another. None if there are none.
    pub(super) fn mean(&self, from: usize, until: usize) -> Option<f64> {
        let (from, until, count) = (self.times.get(from)?, self.times.get(until)?, until.checked_sub(from)?);
        (count > 0).then(|| (until - from) / count as f64)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::super::runs::tests::run;
    use super::*;

    /// A job whose first iteration takes 500 ms and each of the others so long.
    pub(in super::super) fn job(place: usize, iterations: usize, each: f64) -> JobRun {
        let times = (0..=iterations).map(|end| if end == 0 { 0.0 } else { 500.0 + (end - 1) as f64 * each });
        JobRun { job: format!("job-{place}"), times: times.collect(), ..JobRun::default() }
    }

    #[test]
    fn iterations_count_from_the_second_until_the_first_job_ends() {
        let run = Run { jobs: vec![job(0, 11, 100.0), job(1, 11, 300.0)], ..run("twins", 1, "fair") };
        let rows = rows(&run, None);
        assert_eq!((rows[0].iterations, rows[0].mean_ms), (10, 100.0));
        // The first job ends at 1500 ms: three iterations of the second have ended since 500 ms.
        assert_eq!((rows[1].iterations, rows[1].mean_ms), (3, 300.0));
        assert_eq!((rows[0].first_used, rows[0].settling_ms), (None, None));
    }

    #[test]
    fn settling_is_compared_with_the_same_iterations_under_fair_sharing() {
        let mut told = job(0, 40, 100.0);
        told.times.iter_mut().skip(11).for_each(|end| *end += 50.0);
        told.first_used_at = Some(1200.0);
        told.directives = vec![
            (1450.0, Some(json!({"rotation": {}}))),
            (1900.0, None),
            (2000.0, Some(json!({"turn": {}}))),
        ];
        let other = job(1, 40, 120.0);
        let run_of = |policy, first| Run { jobs: vec![first, other.clone()], ..run("twins", 1, policy) };
        let fair = run_of("fair", job(0, 40, 110.0));
        let rows = rows(&run_of("metronome", told), Some(&fair));
        let directives: Vec<(usize, Option<&str>)> =
            rows[0].directives.iter().map(|told| (told.iteration, told.what.as_deref())).collect();
        assert_eq!(rows[0].first_used, Some(8));
        assert_eq!(directives, [(10, Some("rotation")), (14, None), (15, Some("turn"))]);
        assert!((rows[0].settling_ms.unwrap() - 102.5).abs() < 1e-9);
        assert!((rows[0].settling_fair_ms.unwrap() - 110.0).abs() < 1e-9);
    }

    #[test]
    fn a_profile_without_contention_is_read_from_its_phases() {
        let alone = json!({"confidence": 0.9, "period_ns": 100_000_000u64, "phases": [
            {"offset_ns": 0, "length_ns": 20_000_000, "rate_bps": 200_000_000},
            {"offset_ns": 50_000_000, "length_ns": 10_000_000, "rate_bps": 100_000_000}]});
        let read = Learned::read(&alone).unwrap();
        assert_eq!((read.period_ms, read.bytes), (100.0, 625_000.0));
        let mut beside = alone.clone();
        beside["uncontended"] = json!({"period_ns": 90_000_000u64, "bytes": 600_000});
        assert_eq!(
            Learned::read(&beside).unwrap(),
            Learned { period_ms: 90.0, bytes: 600_000.0, seen_period_ms: 100.0, confidence: 0.9 }
        );
    }
}
