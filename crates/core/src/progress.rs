//! What was observed of a job: the time it has run, the iterations it has done, what its training gains.

use serde::{Deserialize, Serialize};

use crate::job::JobSpec;
use crate::plan::Assignment;
use crate::scaling::Speed;
use crate::units::{Duration, GpuTime, Gpus, Instant, Iterations};

/// One report from training code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Instant,
    pub iterations: Iterations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
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

    /// Takes a report unless it is older than the newest, or says nothing that is a number.
    pub(crate) fn reported(&mut self, sample: Sample) {
        let newer =
            self.latest.is_none_or(|latest| sample.at >= latest.at && sample.iterations >= latest.iterations);
        if newer {
            let loss = sample.loss.filter(|loss| loss.is_finite());
            self.believed = self.executed(sample.at);
            self.latest = Some(Sample { loss, ..sample });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        };
        progress.reported(sample(10, 100, 0.5));
        progress.reported(sample(9, 200, 0.1));
        progress.reported(sample(11, 50, 0.1));
        assert_eq!(progress.latest, Some(sample(10, 100, 0.5)));
        progress.reported(sample(12, 120, f64::NAN));
        assert_eq!(progress.latest.unwrap().loss, None);
    }
}
