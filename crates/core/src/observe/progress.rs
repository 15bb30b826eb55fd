//! Progress of a job: run time, completed iterations, learning curve, stalls and stragglers.

mod category;
mod curve;
mod history;
mod learning;
mod stall_detector;
mod stragglers;

use serde::{Deserialize, Serialize};

use crate::model::id::NodeId;
use crate::model::job::JobSpec;
use crate::model::plan::Assignment;
use crate::model::units::{Cpu, Duration, GpuTime, Gpus, Instant, Iterations};
use crate::observe::scaling::Speed;
use crate::tuning::ObserveTuning;

pub use category::Category;
pub(crate) use category::CategoryBounds;
pub use learning::{Learning, Predicted};
use stall_detector::ReportRhythm;
use stragglers::MemberTimes;
pub(crate) use stragglers::{PeerBasis, StragglerVerdict};

/// One progress report of training code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Instant,
    pub iterations: Iterations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// CPU time that all members have used so far, where the world measures it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Duration>,
}

/// Context for evaluating a report: CPU capacity of the job's nodes, and the bounds between learning categories.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportContext<'a> {
    pub(crate) of: Cpu,
    pub(crate) bounds: CategoryBounds,
    pub(crate) tuning: &'a ObserveTuning,
}

/// Speed of a gang as a fraction: it does `does` seconds of work in the time in which the requested size does `of`.
/// Without a declared scaling, the speed is proportional to the number of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPace {
    #[serde(alias = "members")]
    does: u64,
    #[serde(alias = "least")]
    of: u64,
}

impl Default for WorkPace {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl WorkPace {
    /// Speed at the requested size.
    pub const PLAIN: Self = Self { does: 1, of: 1 };

    /// Speed of a job on its nodes: only roles that may have more members than requested count.
    pub fn of(spec: &JobSpec, held: &Assignment) -> Self {
        let elastic = |role: u8| spec.roles.get(usize::from(role)).is_some_and(|role| role.gang.is_elastic());
        let members: u32 =
            held.parts().iter().filter(|part| elastic(part.role)).map(|part| part.members).sum();
        let least: u32 =
            spec.roles.iter().filter(|role| role.gang.is_elastic()).map(|role| role.gang.min()).sum();
        match &spec.scaling {
            _ if members == 0 || members == least => Self::PLAIN,
            Some(scaling) => Self::at(scaling.speed(members)),
            None => Self { does: u64::from(members), of: u64::from(least) },
        }
    }

    /// Pace of a job that runs at `speed` times the speed of the requested size.
    pub fn at(speed: Speed) -> Self {
        if speed == Speed::PLAIN { Self::PLAIN } else { Self { does: speed.0, of: Speed::PLAIN.0 } }
    }

    /// Speed relative to the requested size, in millionths.
    pub fn speed(self) -> Speed {
        let times = u128::from(self.does) * u128::from(Speed::PLAIN.0) / u128::from(self.of.max(1));
        Speed(u64::try_from(times).unwrap_or(u64::MAX).max(1))
    }

    /// Work done in `time`, in time at the requested size.
    pub fn work(self, time: Duration) -> Duration {
        self.scaled(time, self.does, self.of, u128::div_euclid)
    }

    /// Time for `work`, which is given in time at the requested size.
    pub fn time(self, work: Duration) -> Duration {
        self.scaled(work, self.of, self.does, u128::div_ceil)
    }

    fn scaled(self, time: Duration, by: u64, of: u64, divide: fn(u128, u128) -> u128) -> Duration {
        let scaled = divide(u128::from(time.0) * u128::from(by), u128::from(of.max(1)));
        Duration(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// Whether the value is the default, which serde omits.
    fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }
}

/// Work that a job has done so far. Between observations, a running job is assumed to proceed at its full pace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    executed: Duration,
    attained: GpuTime,
    /// Work done minus time run: positive for a job that had more members than requested.
    #[serde(default, skip_serializing_if = "is_nothing")]
    hastened: Duration,
    /// Start time and GPUs of the present run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<(Instant, Gpus)>,
    #[serde(default, skip_serializing_if = "WorkPace::is_plain")]
    pace: WorkPace,
    /// Newest report, if the job reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Sample>,
    /// Estimated work at the time of the newest report.
    #[serde(default, skip_serializing_if = "is_nothing")]
    believed: Duration,
    /// Learning curve and category, if the job reports a metric.
    #[serde(default, skip_serializing_if = "Learning::is_nothing")]
    pub learning: Learning,
    /// Rhythm of the job's reports, for stall detection.
    #[serde(default, skip_serializing_if = "ReportRhythm::is_nothing")]
    pulse: ReportRhythm,
    /// Iteration times of the job's members relative to their peers, for straggler detection.
    #[serde(default, skip_serializing_if = "MemberTimes::is_nothing")]
    peers: MemberTimes,
}

/// Whether the value is the default, which serde omits.
fn is_nothing(time: &Duration) -> bool {
    time.is_zero()
}

impl Progress {
    /// Work done, in time without contention at the requested size.
    pub fn executed(&self, now: Instant) -> Duration {
        match self.running {
            Some((since, _)) => self.executed + self.pace.work(now.since(since)),
            None => self.executed,
        }
    }

    /// Work done that predictions may rely on: for a stalled job, the work at its last sign of life.
    pub fn reliable_work(&self, now: Instant) -> Duration {
        self.executed(self.silent_since(now).unwrap_or(now))
    }

    /// Time of the last sign of life of a running job that seems to be stalled; `None` for other jobs.
    pub fn silent_since(&self, now: Instant) -> Option<Instant> {
        self.running.and_then(|_| self.pulse.silent_since(now))
    }

    /// Records the compute time per iteration of a role's members on a node, and returns the straggler verdict.
    pub(crate) fn record_member_time(
        &mut self,
        now: Instant,
        members: (u8, NodeId),
        iteration: Duration,
        alike: impl Fn(NodeId) -> bool,
        tuning: &ObserveTuning,
    ) -> StragglerVerdict {
        self.peers.record(now, members, iteration, alike, tuning)
    }

    /// The slowest of the members on the given nodes and its speed relative to its peers: the whole gang has this
    /// speed.
    pub(crate) fn held_up(&self, on: impl Fn(NodeId) -> bool, now: Instant) -> Option<(NodeId, Speed)> {
        self.peers.held_up(on, now)
    }

    /// Records that the job runs on these nodes from now on.
    pub(crate) fn record_nodes(&mut self, now: Instant, on: &Assignment) {
        self.peers.restart(now, |node| on.touches(node));
    }

    /// Time from which the job counts as stalled unless it shows a sign of life before.
    pub(crate) fn stalled_from(&self) -> Option<Instant> {
        self.running.and_then(|_| self.pulse.stalled_from())
    }

    /// Restarts stall detection when reports stop reaching the scheduler: silence then means nothing, unless the job
    /// is stalled already.
    pub(crate) fn stop_expecting_reports(&mut self, now: Instant) {
        if self.silent_since(now).is_none() {
            self.pulse.restart();
        }
    }

    /// Estimated work of `all` iterations, extrapolated from the completed ones; `None` before the first report.
    pub fn extrapolated_work(&self, all: Iterations) -> Option<Duration> {
        let done = self.latest.map(|sample| sample.iterations).filter(|done| done.0 > 0)?;
        let work = u128::from(self.believed.0) * u128::from(all.0) / u128::from(done.0);
        Some(Duration(u64::try_from(work).unwrap_or(u64::MAX)))
    }

    /// Time that the done work took, without time whose work was lost.
    pub fn useful_run_time(&self, now: Instant) -> Duration {
        self.executed(now) - self.hastened(now)
    }

    fn hastened(&self, now: Instant) -> Duration {
        let time = self.running.map_or(Duration::ZERO, |(since, _)| now.since(since));
        self.hastened + (self.pace.work(time) - time)
    }

    /// Attained service: GPUs times time.
    pub fn attained(&self, now: Instant) -> GpuTime {
        match self.running {
            Some((since, gpus)) => self.attained + GpuTime::of(gpus, now.since(since)),
            None => self.attained,
        }
    }

    /// Present pace; [`WorkPace::PLAIN`] while the job does not run.
    pub fn pace(&self) -> WorkPace {
        self.pace
    }

    /// GPUs that the job runs on; zero while it does not run.
    pub fn gpus(&self) -> Gpus {
        self.running.map_or(Gpus::ZERO, |(_, gpus)| gpus)
    }

    pub(crate) fn start(&mut self, now: Instant, gpus: Gpus, pace: WorkPace) {
        self.stop(now);
        self.running = Some((now, gpus));
        self.pace = pace;
        self.pulse.restart();
    }

    pub(crate) fn stop(&mut self, now: Instant) {
        self.hastened = self.hastened(now);
        self.executed = self.executed(now);
        self.attained = self.attained(now);
        self.running = None;
        self.pace = WorkPace::PLAIN;
    }

    /// Replaces the estimate of done work by the world's: after a fault, the work that was saved.
    pub(crate) fn correct(&mut self, now: Instant, executed: Duration) {
        self.attained = self.attained(now);
        self.hastened = self.hastened(now);
        self.executed = executed;
        self.running = self.running.map(|(_, gpus)| (now, gpus));
    }

    /// Replaces the estimate by the work `done` at the newest report, and assumes `pace` since.
    pub(crate) fn set_from_measurement(&mut self, now: Instant, done: Duration, pace: WorkPace) {
        let since = self.latest.map_or(Duration::ZERO, |latest| now.since(latest.at));
        self.correct(now, done + pace.work(since));
        (self.pace, self.believed) = (pace, done);
    }

    /// Evaluates a report. A report that is older than the newest, or whose loss is not a number, counts as odd; a
    /// report from the future counts as one of now.
    pub(crate) fn record_report(
        &mut self,
        now: Instant,
        sample: Sample,
        spec: &JobSpec,
        context: ReportContext<'_>,
    ) {
        // Progress in iterations is a sign of life, whatever the job's own clock says.
        self.pulse.record(now, sample.iterations, context.tuning);
        let sample = Sample { at: sample.at.min(now), ..sample };
        let newer =
            self.latest.is_none_or(|latest| sample.at >= latest.at && sample.iterations >= latest.iterations);
        if !newer {
            return self.learning.count_odd();
        }
        let loss = sample.loss.filter(|loss| loss.is_finite());
        if loss.is_none() && sample.loss.is_some() {
            self.learning.count_odd();
        }
        let before = self.latest.replace(Sample { loss, ..sample });
        self.estimate_from_cpu_time(now, sample, before, spec);
        self.believed = self.executed(sample.at);
        if let Some(loss) = loss {
            self.learning.add_metric(sample.iterations, loss, spec.work.target, context.tuning);
            let used = sample.used.unwrap_or_default();
            self.learning.evaluate_category(sample.at, loss, used, context);
        }
        if let Some(all) = self.all_work(spec) {
            self.learning.record_prediction(all);
        }
    }

    /// Estimates the work of a job that shares cores from the CPU time that it has used, and its pace from the CPU
    /// time since the last report.
    fn estimate_from_cpu_time(
        &mut self,
        now: Instant,
        sample: Sample,
        before: Option<Sample>,
        spec: &JobSpec,
    ) {
        let (Some(used), Some(most)) = (sample.used, spec.work.cpu.filter(|most| !most.is_zero())) else {
            return;
        };
        let alone = |used: Duration| WorkPace { does: Cpu::cores(1).0, of: most.0 }.work(used);
        // The world reports the work of a stopped job exactly.
        let Some((since, _)) = self.running else { return };
        // A job cannot have used more than its maximum of cores for the time it has run.
        self.correct(now, alone(used).min(self.executed + now.since(since)));
        let since = before.and_then(|before| Some((before.at, before.used?)));
        let (time, more) = since.map_or((Duration::ZERO, Duration::ZERO), |(at, by_then)| {
            (sample.at.since(at), alone(used - by_then))
        });
        if !time.is_zero() && !more.is_zero() && more <= time {
            self.pace = WorkPace { does: more.0, of: time.0 };
        }
    }

    /// Iterations that the job completes in `time` without contention; `None` before the first report with progress.
    pub(crate) fn iterations_in(&self, time: Duration) -> Option<Iterations> {
        let done = self.latest.map(|sample| sample.iterations).filter(|done| done.0 > 0)?;
        let work = Some(u128::from(self.believed.0)).filter(|work| *work > 0)?;
        Some(Iterations(u64::try_from(u128::from(done.0) * u128::from(time.0) / work).unwrap_or(u64::MAX)))
    }

    /// Total work of the job by its reports and its learning curve, in time without contention.
    pub(crate) fn all_work(&self, spec: &JobSpec) -> Option<Duration> {
        let most = spec.work.iterations;
        let predicted = self.learning.predicted();
        let iterations = predicted.map(|predicted| predicted.iterations);
        let all = most.into_iter().chain(iterations).min()?;
        self.extrapolated_work(all).filter(|work| !work.is_zero())
    }

    /// Whether the job has long exceeded the smallest total that its learning curve predicted.
    pub(crate) fn is_doubted(&self, now: Instant, tuning: &ObserveTuning) -> bool {
        self.learning.is_doubted(self.executed(now), tuning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::{Gang, Work};
    use crate::model::units::Resources;

    #[test]
    fn service_adds_up_over_stops_and_starts() {
        let mut progress = Progress::default();
        progress.start(Instant::from_secs(10), Gpus::whole(4), WorkPace::PLAIN);
        progress.stop(Instant::from_secs(20));
        progress.start(Instant::from_secs(50), Gpus::whole(4), WorkPace::PLAIN);
        let now = Instant::from_secs(55);
        assert_eq!(progress.executed(now), Duration::from_secs(15));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(60));
    }

    #[test]
    fn a_larger_gang_does_more_in_the_same_time() {
        let pace = WorkPace { does: 5, of: 2 };
        let mut progress = Progress::default();
        progress.start(Instant::START, Gpus::whole(5), pace);
        let now = Instant::from_secs(10);
        assert_eq!(progress.executed(now), Duration::from_secs(25));
        assert_eq!(progress.useful_run_time(now), Duration::from_secs(10));
        assert_eq!(pace.time(Duration::from_secs(25)), Duration::from_secs(10));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(50));
    }

    #[test]
    fn lost_work_counts_as_attained_service_and_not_as_done() {
        let mut progress = Progress::default();
        progress.start(Instant::START, Gpus::whole(1), WorkPace::PLAIN);
        let now = Instant::from_secs(100);
        progress.stop(now);
        progress.correct(now, Duration::from_secs(60));
        assert_eq!(progress.executed(now), Duration::from_secs(60));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(100));
    }

    #[test]
    fn reports_out_of_order_or_without_a_number_have_no_effect() {
        let mut progress = Progress::default();
        let sample = |at, iterations, loss| Sample {
            at: Instant::from_secs(at),
            iterations: Iterations(iterations),
            loss: Some(loss),
            used: None,
        };
        let spec = spec(Work::default());
        let mut report = |sample| progress.record_report(Instant::from_secs(12), sample, &spec, CONTEXT);
        report(sample(10, 100, 0.5));
        report(sample(9, 200, 0.1));
        report(sample(11, 50, 0.1));
        assert_eq!(progress.latest, Some(sample(10, 100, 0.5)));
        assert_eq!(progress.learning.odd(), 2);
        let mut report = |sample| progress.record_report(Instant::from_secs(12), sample, &spec, CONTEXT);
        report(sample(90, 120, f64::NAN));
        let latest = progress.latest.unwrap();
        assert_eq!((latest.loss, latest.at), (None, Instant::from_secs(12)));
    }

    /// Reports every ten seconds up to two minutes, and `next` at three minutes.
    fn fallen_silent(next: Option<Sample>) -> Progress {
        let (spec, mut progress) = (spec(Work::default()), Progress::default());
        progress.start(Instant::START, Gpus::ZERO, WorkPace::PLAIN);
        let mut report =
            |now, sample| progress.record_report(Instant::from_secs(now), sample, &spec, CONTEXT);
        (1..=12).for_each(|k| report(k * 10, sample(k * 10, k)));
        if let Some(next) = next {
            report(180, next);
        }
        progress
    }

    fn sample(at: u64, iterations: u64) -> Sample {
        Sample { at: Instant::from_secs(at), iterations: Iterations(iterations), loss: None, used: None }
    }

    #[test]
    fn a_job_without_a_sign_of_life_for_ten_iterations_is_stalled() {
        let progress = fallen_silent(None);
        assert_eq!(progress.stalled_from(), Some(Instant::from_secs(220)));
        assert_eq!(progress.silent_since(Instant::from_secs(219)), None);
        let later = Instant::from_secs(1000);
        assert_eq!(progress.silent_since(later), Some(Instant::from_secs(120)));
        assert_eq!(progress.reliable_work(later), Duration::from_secs(120));
        let mut stopped = progress.clone();
        stopped.stop(later);
        assert_eq!(stopped.silent_since(later), None, "a job that does not run is not stalled");
    }

    #[test]
    fn only_progress_in_iterations_is_a_sign_of_life() {
        let hangs = |next| fallen_silent(Some(next)).stalled_from() == Some(Instant::from_secs(220));
        assert!(hangs(sample(180, 12)), "the same again");
        assert!(hangs(sample(180, 5)), "something old");
        assert!(hangs(sample(9_999, 12)), "the same from the future");
        assert!(!hangs(sample(3, 13)), "its clock was set back");
        assert!(!hangs(sample(9_999, 13)), "its clock was set forward");
        assert!(!hangs(Sample { loss: Some(f64::NAN), ..sample(180, 13) }), "its loss is no number");
    }

    const CONTEXT: ReportContext<'static> = ReportContext {
        of: Cpu::cores(16),
        bounds: CategoryBounds { little: 0.1, much: 0.1 },
        tuning: &ObserveTuning::DEFAULT,
    };

    fn spec(work: Work) -> JobSpec {
        let mut spec = JobSpec::workers("job", Gang::rigid(1).unwrap(), Resources::NONE);
        spec.work = work;
        spec
    }

    #[test]
    fn the_work_of_a_job_that_shares_cores_follows_its_cpu_time() {
        let work = Work { iterations: Some(Iterations(1000)), cpu: Some(Cpu::cores(4)), ..Work::default() };
        let (spec, mut progress) = (spec(work), Progress::default());
        progress.start(Instant::START, Gpus::ZERO, WorkPace::PLAIN);
        for at in [10, 20] {
            let used = Some(Duration::from_secs(at));
            let sample =
                Sample { at: Instant::from_secs(at), iterations: Iterations(at * 10), loss: None, used };
            progress.record_report(sample.at, sample, &spec, CONTEXT);
        }
        // One core of four for twenty seconds.
        assert_eq!(progress.executed(Instant::from_secs(20)), Duration::from_secs(5));
        assert_eq!(progress.executed(Instant::from_secs(28)), Duration::from_secs(7));
        assert_eq!(progress.all_work(&spec), Some(Duration::from_secs(25)));
    }

    #[test]
    fn a_reported_cpu_time_is_limited_by_the_run_time() {
        let work = Work { iterations: Some(Iterations(1000)), cpu: Some(Cpu::cores(4)), ..Work::default() };
        let (spec, mut progress) = (spec(work), Progress::default());
        progress.start(Instant::START, Gpus::ZERO, WorkPace::PLAIN);
        let at = Instant::from_secs(10);
        let used = Some(Duration::HOUR);
        progress.record_report(
            at,
            Sample { at, iterations: Iterations(999), loss: None, used },
            &spec,
            CONTEXT,
        );
        assert_eq!(progress.executed(at), Duration::from_secs(10));
    }
}
