//! What was observed of a job: the time it has run, the iterations it has done, what its training gains.

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

pub use category::Category;
pub(crate) use category::{Bounds, CHECKED_EVERY};
pub use learning::{Learning, Predicted};
use stall_detector::Pulse;
use stragglers::Peers;
pub(crate) use stragglers::{Compared, Verdict};

/// One report from training code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Instant,
    pub iterations: Iterations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The CPU time that all its members have used so far, where somebody counts that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Duration>,
}

/// What a report is looked at beside: the CPU of the nodes that the job is on, and what counts as learning much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beside {
    pub(crate) of: Cpu,
    pub(crate) bounds: Bounds,
}

/// How fast a gang works: so much is done where so much would be at the size asked for. Unless it is known how it scales,
/// that is in proportion to its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    #[serde(alias = "members")]
    does: u64,
    #[serde(alias = "least")]
    of: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self::PLAIN
    }
}

impl Pace {
    /// At the size asked for.
    pub const PLAIN: Self = Self { does: 1, of: 1 };

    /// That of a job where it is: only roles that may have more members than they ask for count.
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

    /// So many times as fast as at the size asked for.
    pub fn at(speed: Speed) -> Self {
        if speed == Speed::PLAIN { Self::PLAIN } else { Self { does: speed.0, of: Speed::PLAIN.0 } }
    }

    /// How many times as fast that is, in millionths.
    pub fn speed(self) -> Speed {
        let times = u128::from(self.does) * u128::from(Speed::PLAIN.0) / u128::from(self.of.max(1));
        Speed(u64::try_from(times).unwrap_or(u64::MAX).max(1))
    }

    /// What is done in a time, as time at the size asked for.
    pub fn work(self, time: Duration) -> Duration {
        self.scaled(time, self.does, self.of, u128::div_euclid)
    }

    /// How long that takes which takes so long at the size asked for.
    pub fn time(self, work: Duration) -> Duration {
        self.scaled(work, self.of, self.does, u128::div_ceil)
    }

    fn scaled(self, time: Duration, by: u64, of: u64, divide: fn(u128, u128) -> u128) -> Duration {
        let scaled = divide(u128::from(time.0) * u128::from(by), u128::from(of.max(1)));
        Duration(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// For serde: what is left out means this.
    fn is_plain(&self) -> bool {
        *self == Self::PLAIN
    }
}

/// What a job has done so far. While it runs it is believed to go on at full speed from the last observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    executed: Duration,
    attained: GpuTime,
    /// By how much more that is than the time it has run, because it had more members than asked for.
    #[serde(default, skip_serializing_if = "is_nothing")]
    hastened: Duration,
    /// Since when it has run, on how many GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<(Instant, Gpus)>,
    #[serde(default, skip_serializing_if = "Pace::is_plain")]
    pace: Pace,
    /// The newest report, if the job reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Sample>,
    /// The work that was believed to be done when that came.
    #[serde(default, skip_serializing_if = "is_nothing")]
    believed: Duration,
    /// What it learns, if it says so.
    #[serde(default, skip_serializing_if = "Learning::is_nothing")]
    pub learning: Learning,
    /// How often it is heard of.
    #[serde(default, skip_serializing_if = "Pulse::is_nothing")]
    pulse: Pulse,
    /// How long its members take beside each other.
    #[serde(default, skip_serializing_if = "Peers::is_nothing")]
    peers: Peers,
}

/// For serde: what is left out means this.
fn is_nothing(time: &Duration) -> bool {
    time.is_zero()
}

impl Progress {
    /// Work done, as time alone at the size asked for.
    pub fn executed(&self, now: Instant) -> Duration {
        match self.running {
            Some((since, _)) => self.executed + self.pace.work(now.since(since)),
            None => self.executed,
        }
    }

    /// Work done as far as it is counted on: of a job that hangs, what was done when it was last heard of.
    pub fn counted_on(&self, now: Instant) -> Duration {
        self.executed(self.silent_since(now).unwrap_or(now))
    }

    /// Since when nothing was heard of it, if it runs and was silent for so long that it seems to hang.
    pub fn silent_since(&self, now: Instant) -> Option<Instant> {
        self.running.and_then(|_| self.pulse.silent_since(now))
    }

    /// Members of a role on a node took so long for their own part of an iteration.
    pub(crate) fn took(
        &mut self,
        now: Instant,
        members: (u8, NodeId),
        iteration: Duration,
        alike: impl Fn(NodeId) -> bool,
    ) -> Verdict {
        self.peers.hears(now, members, iteration, alike)
    }

    /// The slowest of its members on such nodes, and at which part of the speed of its peers it goes: so does the whole gang.
    pub(crate) fn held_up(&self, on: impl Fn(NodeId) -> bool, now: Instant) -> Option<(NodeId, Speed)> {
        self.peers.held_up(on, now)
    }

    /// It runs on these nodes from now on.
    pub(crate) fn is_among_peers(&mut self, now: Instant, on: &Assignment) {
        self.peers.begin_anew(now, |node| on.touches(node));
    }

    /// From when on it seems to hang, unless it is heard of before.
    pub(crate) fn hangs_from(&self) -> Option<Instant> {
        self.running.and_then(|_| self.pulse.hangs_from())
    }

    /// Nobody will hear of it from now on: its silence means nothing, unless it hangs already.
    pub(crate) fn is_out_of_earshot(&mut self, now: Instant) {
        if self.silent_since(now).is_none() {
            self.pulse.begins_anew();
        }
    }

    /// How much work all its iterations are, judged by those that are done; unknown before the first report.
    pub fn judged(&self, all: Iterations) -> Option<Duration> {
        let done = self.latest.map(|sample| sample.iterations).filter(|done| done.0 > 0)?;
        let work = u128::from(self.believed.0) * u128::from(all.0) / u128::from(done.0);
        Some(Duration(u64::try_from(work).unwrap_or(u64::MAX)))
    }

    /// The time that took, as far as it was not in vain.
    pub fn ran(&self, now: Instant) -> Duration {
        self.executed(now) - self.hastened(now)
    }

    fn hastened(&self, now: Instant) -> Duration {
        let time = self.running.map_or(Duration::ZERO, |(since, _)| now.since(since));
        self.hastened + (self.pace.work(time) - time)
    }

    /// Service received: GPUs times time.
    pub fn attained(&self, now: Instant) -> GpuTime {
        match self.running {
            Some((since, gpus)) => self.attained + GpuTime::of(gpus, now.since(since)),
            None => self.attained,
        }
    }

    /// How fast it works where it runs.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The GPUs it runs on; none while it does not.
    pub fn gpus(&self) -> Gpus {
        self.running.map_or(Gpus::ZERO, |(_, gpus)| gpus)
    }

    pub(crate) fn starts(&mut self, now: Instant, gpus: Gpus, pace: Pace) {
        self.stops(now);
        self.running = Some((now, gpus));
        self.pace = pace;
        self.pulse.begins_anew();
    }

    pub(crate) fn stops(&mut self, now: Instant) {
        self.hastened = self.hastened(now);
        self.executed = self.executed(now);
        self.attained = self.attained(now);
        self.running = None;
        self.pace = Pace::PLAIN;
    }

    /// The world knows better how much work is done: after a fault, what was saved.
    pub(crate) fn corrected(&mut self, now: Instant, executed: Duration) {
        self.attained = self.attained(now);
        self.hastened = self.hastened(now);
        self.executed = executed;
        self.running = self.running.map(|(_, gpus)| (now, gpus));
    }

    /// By the newest report so much is done, and it goes on like that.
    pub(crate) fn counted(&mut self, now: Instant, done: Duration, pace: Pace) {
        let since = self.latest.map_or(Duration::ZERO, |latest| now.since(latest.at));
        self.corrected(now, done + pace.work(since));
        (self.pace, self.believed) = (pace, done);
    }

    /// Takes a report unless it is older than the newest, or says nothing that is a number. One from the future is of now.
    pub(crate) fn reported(&mut self, now: Instant, sample: Sample, spec: &JobSpec, beside: Beside) {
        // Whatever its own clock says, who has come further is alive.
        self.pulse.hears(now, sample.iterations);
        let sample = Sample { at: sample.at.min(now), ..sample };
        let newer =
            self.latest.is_none_or(|latest| sample.at >= latest.at && sample.iterations >= latest.iterations);
        if !newer {
            return self.learning.is_odd();
        }
        let loss = sample.loss.filter(|loss| loss.is_finite());
        if loss.is_none() && sample.loss.is_some() {
            self.learning.is_odd();
        }
        let before = self.latest.replace(Sample { loss, ..sample });
        self.count_cores(now, sample, before, spec);
        self.believed = self.executed(sample.at);
        if let Some(loss) = loss {
            self.learning.note(sample.iterations, loss, spec.work.target);
            self.learning.look(sample.at, loss, sample.used.unwrap_or_default(), beside.of, beside.bounds);
        }
        if let Some(all) = self.all_work(spec) {
            self.learning.was_predicted(all);
        }
    }

    /// Where it shares cores with others, what it has done is what it has used of them, and it goes on as it did since the
    /// last report.
    fn count_cores(&mut self, now: Instant, sample: Sample, before: Option<Sample>, spec: &JobSpec) {
        let (Some(used), Some(most)) = (sample.used, spec.work.cpu.filter(|most| !most.is_zero())) else {
            return;
        };
        let alone = |used: Duration| Pace { does: Cpu::cores(1).0, of: most.0 }.work(used);
        // What it had done when it was stopped is known better.
        let Some((since, _)) = self.running else { return };
        // Nobody uses more than all it can use for as long as it has run.
        self.corrected(now, alone(used).min(self.executed + now.since(since)));
        let since = before.and_then(|before| Some((before.at, before.used?)));
        let (time, more) = since.map_or((Duration::ZERO, Duration::ZERO), |(at, by_then)| {
            (sample.at.since(at), alone(used - by_then))
        });
        if !time.is_zero() && !more.is_zero() && more <= time {
            self.pace = Pace { does: more.0, of: time.0 };
        }
    }

    /// How many iterations it does in such a time alone, judged by those that are done; unknown before the first.
    pub(crate) fn iterations_in(&self, time: Duration) -> Option<Iterations> {
        let done = self.latest.map(|sample| sample.iterations).filter(|done| done.0 > 0)?;
        let work = Some(u128::from(self.believed.0)).filter(|work| *work > 0)?;
        Some(Iterations(u64::try_from(u128::from(done.0) * u128::from(time.0) / work).unwrap_or(u64::MAX)))
    }

    /// How much work it is in all as far as its reports tell, as time alone.
    pub(crate) fn all_work(&self, spec: &JobSpec) -> Option<Duration> {
        let most = spec.work.iterations;
        let predicted = self.learning.predicted();
        let iterations = predicted.map(|predicted| predicted.iterations);
        let all = most.into_iter().chain(iterations).min()?;
        self.judged(all).filter(|work| !work.is_zero())
    }

    /// Whether it was said to be nearly done for far longer than that takes.
    pub(crate) fn is_doubted(&self, now: Instant) -> bool {
        self.learning.is_doubted(self.executed(now))
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
        progress.starts(Instant::from_secs(10), Gpus::whole(4), Pace::PLAIN);
        progress.stops(Instant::from_secs(20));
        progress.starts(Instant::from_secs(50), Gpus::whole(4), Pace::PLAIN);
        let now = Instant::from_secs(55);
        assert_eq!(progress.executed(now), Duration::from_secs(15));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(60));
    }

    #[test]
    fn a_larger_gang_does_more_in_the_same_time() {
        let pace = Pace { does: 5, of: 2 };
        let mut progress = Progress::default();
        progress.starts(Instant::START, Gpus::whole(5), pace);
        let now = Instant::from_secs(10);
        assert_eq!(progress.executed(now), Duration::from_secs(25));
        assert_eq!(progress.ran(now), Duration::from_secs(10));
        assert_eq!(pace.time(Duration::from_secs(25)), Duration::from_secs(10));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(50));
    }

    #[test]
    fn lost_work_is_not_done_but_was_served() {
        let mut progress = Progress::default();
        progress.starts(Instant::START, Gpus::whole(1), Pace::PLAIN);
        let now = Instant::from_secs(100);
        progress.stops(now);
        progress.corrected(now, Duration::from_secs(60));
        assert_eq!(progress.executed(now), Duration::from_secs(60));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(100));
    }

    #[test]
    fn reports_out_of_order_or_without_a_number_change_nothing() {
        let mut progress = Progress::default();
        let sample = |at, iterations, loss| Sample {
            at: Instant::from_secs(at),
            iterations: Iterations(iterations),
            loss: Some(loss),
            used: None,
        };
        let spec = spec(Work::default());
        let mut report = |sample| progress.reported(Instant::from_secs(12), sample, &spec, BESIDE);
        report(sample(10, 100, 0.5));
        report(sample(9, 200, 0.1));
        report(sample(11, 50, 0.1));
        assert_eq!(progress.latest, Some(sample(10, 100, 0.5)));
        assert_eq!(progress.learning.odd(), 2);
        let mut report = |sample| progress.reported(Instant::from_secs(12), sample, &spec, BESIDE);
        report(sample(90, 120, f64::NAN));
        let latest = progress.latest.unwrap();
        assert_eq!((latest.loss, latest.at), (None, Instant::from_secs(12)));
    }

    /// Reports every ten seconds up to two minutes, and then what `next` says at three.
    fn fallen_silent(next: Option<Sample>) -> Progress {
        let (spec, mut progress) = (spec(Work::default()), Progress::default());
        progress.starts(Instant::START, Gpus::ZERO, Pace::PLAIN);
        let mut report = |now, sample| progress.reported(Instant::from_secs(now), sample, &spec, BESIDE);
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
    fn who_falls_silent_for_ten_iterations_seems_to_hang() {
        let progress = fallen_silent(None);
        assert_eq!(progress.hangs_from(), Some(Instant::from_secs(220)));
        assert_eq!(progress.silent_since(Instant::from_secs(219)), None);
        let later = Instant::from_secs(1000);
        assert_eq!(progress.silent_since(later), Some(Instant::from_secs(120)));
        assert_eq!(progress.counted_on(later), Duration::from_secs(120));
        let mut stopped = progress.clone();
        stopped.stops(later);
        assert_eq!(stopped.silent_since(later), None, "who does not run does not hang");
    }

    #[test]
    fn only_who_has_come_further_is_alive_whatever_its_clock_says() {
        let hangs = |next| fallen_silent(Some(next)).hangs_from() == Some(Instant::from_secs(220));
        assert!(hangs(sample(180, 12)), "the same again");
        assert!(hangs(sample(180, 5)), "something old");
        assert!(hangs(sample(9_999, 12)), "the same from the future");
        assert!(!hangs(sample(3, 13)), "its clock was set back");
        assert!(!hangs(sample(9_999, 13)), "its clock was set forward");
        assert!(!hangs(Sample { loss: Some(f64::NAN), ..sample(180, 13) }), "its loss is no number");
    }

    const BESIDE: Beside = Beside { of: Cpu::cores(16), bounds: Bounds::PUBLISHED };

    fn spec(work: Work) -> JobSpec {
        let mut spec = JobSpec::workers("job", Gang::rigid(1).unwrap(), Resources::NONE);
        spec.work = work;
        spec
    }

    #[test]
    fn who_shares_cores_has_done_what_it_has_used() {
        let work = Work { iterations: Some(Iterations(1000)), cpu: Some(Cpu::cores(4)), ..Work::default() };
        let (spec, mut progress) = (spec(work), Progress::default());
        progress.starts(Instant::START, Gpus::ZERO, Pace::PLAIN);
        for at in [10, 20] {
            let used = Some(Duration::from_secs(at));
            let sample =
                Sample { at: Instant::from_secs(at), iterations: Iterations(at * 10), loss: None, used };
            progress.reported(sample.at, sample, &spec, BESIDE);
        }
        // A core of four for twenty seconds.
        assert_eq!(progress.executed(Instant::from_secs(20)), Duration::from_secs(5));
        assert_eq!(progress.executed(Instant::from_secs(28)), Duration::from_secs(7));
        assert_eq!(progress.all_work(&spec), Some(Duration::from_secs(25)));
    }

    #[test]
    fn nobody_has_used_more_than_there_was_time_for() {
        let work = Work { iterations: Some(Iterations(1000)), cpu: Some(Cpu::cores(4)), ..Work::default() };
        let (spec, mut progress) = (spec(work), Progress::default());
        progress.starts(Instant::START, Gpus::ZERO, Pace::PLAIN);
        let at = Instant::from_secs(10);
        let used = Some(Duration::HOUR);
        progress.reported(at, Sample { at, iterations: Iterations(999), loss: None, used }, &spec, BESIDE);
        assert_eq!(progress.executed(at), Duration::from_secs(10));
    }
}
