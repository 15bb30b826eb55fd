//! What was observed of a job: the time it has run, the iterations it has done, what its training gains.

use serde::{Deserialize, Serialize};

use crate::units::{Duration, GpuTime, Gpus, Instant, Iterations};

/// One report from training code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Instant,
    pub iterations: Iterations,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
}

/// What a job has done so far. While it runs it is believed to go on at full speed from the last observation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    executed: Duration,
    attained: GpuTime,
    /// Since when it has run, on how many GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<(Instant, Gpus)>,
    /// The newest report, if the job reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Sample>,
}

impl Progress {
    /// Work done, as time alone at the size asked for.
    pub fn executed(&self, now: Instant) -> Duration {
        match self.running {
            Some((since, _)) => self.executed + now.since(since),
            None => self.executed,
        }
    }

    /// Service received: GPUs times time.
    pub fn attained(&self, now: Instant) -> GpuTime {
        match self.running {
            Some((since, gpus)) => self.attained + GpuTime::of(gpus, now.since(since)),
            None => self.attained,
        }
    }

    /// The GPUs it runs on; none while it does not.
    pub fn gpus(&self) -> Gpus {
        self.running.map_or(Gpus::ZERO, |(_, gpus)| gpus)
    }

    pub(crate) fn starts(&mut self, now: Instant, gpus: Gpus) {
        self.stops(now);
        self.running = Some((now, gpus));
    }

    pub(crate) fn stops(&mut self, now: Instant) {
        self.executed = self.executed(now);
        self.attained = self.attained(now);
        self.running = None;
    }

    /// The world knows better how much work is done: after a fault, what was saved.
    pub(crate) fn corrected(&mut self, now: Instant, executed: Duration) {
        self.attained = self.attained(now);
        self.executed = executed;
        self.running = self.running.map(|(_, gpus)| (now, gpus));
    }

    /// Takes a report unless it is older than the newest, or says nothing that is a number.
    pub(crate) fn reported(&mut self, sample: Sample) {
        let newer =
            self.latest.is_none_or(|latest| sample.at >= latest.at && sample.iterations >= latest.iterations);
        if newer {
            let loss = sample.loss.filter(|loss| loss.is_finite());
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
        progress.starts(Instant::from_secs(10), Gpus::whole(4));
        progress.stops(Instant::from_secs(20));
        progress.starts(Instant::from_secs(50), Gpus::whole(4));
        let now = Instant::from_secs(55);
        assert_eq!(progress.executed(now), Duration::from_secs(15));
        assert_eq!(progress.attained(now), GpuTime::gpu_seconds(60));
    }

    #[test]
    fn lost_work_is_not_done_but_was_served() {
        let mut progress = Progress::default();
        progress.starts(Instant::START, Gpus::whole(1));
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
