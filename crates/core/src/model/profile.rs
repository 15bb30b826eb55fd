//! Cost of one iteration: compute time by GPU type and size, and traffic in phases on a period.

use serde::{Deserialize, Serialize};

use crate::model::id::GpuTypeId;
use crate::model::units::{Bandwidth, Bytes, Duration};

/// A burst: `rate` for `length`, beginning `offset` into the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    pub offset: Duration,
    pub length: Duration,
    pub rate: Bandwidth,
}

/// Traffic of one iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    period: Duration,
    phases: Vec<Phase>,
}

/// Why a profile is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("the period must be greater than zero")]
    NoPeriod,
    #[error("phase {0} must be longer than zero and no longer than the period")]
    PhaseLength(usize),
    #[error("phase {0} begins after the period has ended")]
    PhaseOffset(usize),
    #[error("a pattern has at most {} phases", Traffic::MOST_PHASES)]
    TooManyPhases,
    #[error("phases {0} and {1} overlap")]
    Overlap(usize, usize),
    #[error("there is no compute time")]
    NoCompute,
}

impl Traffic {
    /// Hybrid-parallel jobs have up to six phases; the rest is margin for measured profiles.
    pub const MOST_PHASES: usize = 16;

    pub fn new(period: Duration, phases: Vec<Phase>) -> Result<Self, ProfileError> {
        if period.is_zero() {
            return Err(ProfileError::NoPeriod);
        }
        if phases.len() > Self::MOST_PHASES {
            return Err(ProfileError::TooManyPhases);
        }
        for (index, phase) in phases.iter().enumerate() {
            if phase.length.is_zero() || phase.length > period {
                return Err(ProfileError::PhaseLength(index));
            }
            if phase.offset >= period {
                return Err(ProfileError::PhaseOffset(index));
            }
        }
        let overlap = |a: &Phase, b: &Phase| {
            let gap = (b.offset.0 + period.0 - a.offset.0) % period.0;
            gap < a.length.0
        };
        for second in 1..phases.len() {
            for first in 0..second {
                let (a, b) = (&phases[first], &phases[second]);
                if overlap(a, b) || overlap(b, a) {
                    return Err(ProfileError::Overlap(first, second));
                }
            }
        }
        Ok(Self { period, phases })
    }

    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns the profile shifted so that it begins with its longest pause.
    #[must_use]
    pub fn starting_with_longest_pause(&self) -> Self {
        let period = self.period.0;
        let pause_after = |phase: &Phase| {
            let end = phase.offset.0 + phase.length.0;
            let ahead = |other: &Phase| (other.offset.0 + 2 * period - end) % period;
            // A single phase is followed by itself.
            self.phases.iter().map(ahead).min().unwrap_or(0)
        };
        let Some(last) = self.phases.iter().max_by_key(|phase| (pause_after(phase), phase.offset)) else {
            return self.clone();
        };
        let begins = last.offset.0 + last.length.0;
        let turned = |phase: &Phase| Phase {
            offset: Duration((phase.offset.0 + 2 * period - begins) % period),
            ..*phase
        };
        let mut phases: Vec<Phase> = self.phases.iter().map(turned).collect();
        phases.sort_by_key(|phase| phase.offset);
        Self { period: self.period, phases }
    }

    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Bytes that one iteration sends.
    pub fn bytes(&self) -> Bytes {
        let bits = |phase: &Phase| u128::from(phase.rate.0) * u128::from(phase.length.0) / 1_000_000_000;
        Bytes(
            self.phases
                .iter()
                .map(|phase| u64::try_from(bits(phase) / 8).unwrap_or(u64::MAX))
                .map(Bytes)
                .sum::<Bytes>()
                .0,
        )
    }
}

/// One iteration: compute, during which gradients become ready bucket by bucket and are sent in order; the
/// optimiser's step follows when compute and communication are complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    /// Forward and backward pass.
    pub compute: Duration,
    pub buckets: Vec<Bucket>,
    /// The optimiser's step.
    pub finish: Duration,
}

/// Gradients that become ready at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Since the beginning of the iteration.
    pub ready: Duration,
    pub bytes: Bytes,
}

impl Iteration {
    pub fn bytes(&self) -> Bytes {
        self.buckets.iter().map(|bucket| bucket.bytes).sum()
    }

    /// Duration of an iteration without contention, where each byte of gradient puts `load` bytes on the bottleneck
    /// link of its route, which has this rate. With load zero, nothing is sent.
    pub fn alone(&self, load: f64, rate: Bandwidth) -> Duration {
        let mut sent = 0.0_f64;
        if load > 0.0 {
            for bucket in &self.buckets {
                let nanos = bucket.bytes.0 as f64 * load * 8e9 / rate.0 as f64;
                sent = sent.max(bucket.ready.0 as f64) + nanos;
            }
        }
        Duration(self.compute.0.max(sent.round() as u64)) + self.finish
    }
}

/// Bytes per hop that a ring all-reduce over `nodes` nodes sends per byte of gradient.
pub fn ring_load(nodes: u32) -> f64 {
    if nodes < 2 { 0.0 } else { 2.0 * f64::from(nodes - 1) / f64::from(nodes) }
}

/// Data exchange of a job in each iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange<'a> {
    /// Gradients of a model, all-reduced over the job's nodes or sent to its parameter servers.
    Gradients(&'a Iteration),
    /// Bursts at declared offsets of a declared period.
    Phases(&'a Traffic),
}

/// Compute time of one iteration on `members` members of one GPU type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compute {
    /// Any type if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GpuTypeId>,
    pub members: u32,
    pub time: Duration,
}

/// Cost of one iteration, declared or measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    compute: Vec<Compute>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Gradients of one iteration, if declared: they determine the traffic more precisely than phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gradients: Option<Iteration>,
}

impl Profile {
    pub fn new(mut compute: Vec<Compute>, traffic: Option<Traffic>) -> Result<Self, ProfileError> {
        if compute.iter().any(|point| point.time.is_zero() || point.members == 0) {
            return Err(ProfileError::NoCompute);
        }
        compute.sort_by_key(|point| (point.gpu_type, point.members));
        Ok(Self { compute, traffic, gradients: None })
    }

    /// Adds the gradients of one iteration.
    pub fn reducing(self, iteration: Iteration) -> Self {
        Self { gradients: Some(iteration), ..self }
    }

    /// Data exchange of its iterations; `None` if unknown.
    pub fn exchange(&self) -> Option<Exchange<'_>> {
        let declared = || self.traffic.as_ref().map(Exchange::Phases);
        self.gradients.as_ref().map(Exchange::Gradients).or_else(declared)
    }

    /// Compute time of the measurement nearest to `members` on this GPU type, on any type if there is none on this
    /// one; the declared period if nothing was measured.
    pub fn compute(&self, gpu_type: Option<GpuTypeId>, members: u32) -> Option<Duration> {
        let nearest = |wanted: Option<GpuTypeId>| {
            let measured = self.compute.iter().filter(|point| point.gpu_type == wanted);
            measured
                .min_by_key(|point| (point.members.abs_diff(members), point.members))
                .map(|point| point.time)
        };
        nearest(gpu_type).or_else(|| nearest(None)).or_else(|| self.traffic.as_ref().map(Traffic::period))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(offset: u64, length: u64) -> Phase {
        Phase {
            offset: Duration::from_millis(offset),
            length: Duration::from_millis(length),
            rate: Bandwidth(40_000_000_000),
        }
    }

    #[test]
    fn phases_lie_within_the_period_and_do_not_overlap() {
        let period = Duration::from_millis(210);
        assert!(Traffic::new(period, vec![phase(80, 60), phase(150, 20)]).is_ok());
        assert!(Traffic::new(period, vec![phase(200, 30), phase(40, 20)]).is_ok(), "a burst may wrap");
        assert_eq!(Traffic::new(Duration::ZERO, vec![]), Err(ProfileError::NoPeriod));
        assert_eq!(Traffic::new(period, vec![phase(0, 211)]), Err(ProfileError::PhaseLength(0)));
        assert_eq!(Traffic::new(period, vec![phase(210, 1)]), Err(ProfileError::PhaseOffset(0)));
        assert_eq!(Traffic::new(period, vec![phase(0, 30), phase(20, 5)]), Err(ProfileError::Overlap(0, 1)));
        assert_eq!(
            Traffic::new(period, vec![phase(200, 30), phase(10, 5)]),
            Err(ProfileError::Overlap(0, 1))
        );
    }

    #[test]
    fn an_iteration_sends_rate_times_length() {
        let traffic = Traffic::new(Duration::from_millis(210), vec![phase(80, 60)]).unwrap();
        assert_eq!(traffic.bytes(), Bytes(300_000_000));
    }

    #[test]
    fn the_nearest_measurement_gives_the_compute_time() {
        let at = |gpu_type, members, ms| Compute { gpu_type, members, time: Duration::from_millis(ms) };
        let h200 = Some(GpuTypeId(1));
        let profile = Profile::new(vec![at(h200, 8, 50), at(h200, 1, 40), at(None, 1, 90)], None).unwrap();
        assert_eq!(profile.compute(h200, 6), Some(Duration::from_millis(50)));
        assert_eq!(profile.compute(Some(GpuTypeId(7)), 4), Some(Duration::from_millis(90)));
    }

    #[test]
    fn an_iteration_lasts_as_long_as_the_slower_of_compute_and_communication() {
        let ms = Duration::from_millis;
        let bucket = |ready, bytes| Bucket { ready: ms(ready), bytes: Bytes(bytes) };
        let iteration = Iteration {
            compute: ms(100),
            buckets: vec![bucket(50, 10_000_000), bucket(90, 10_000_000)],
            finish: ms(5),
        };
        // 10 MB take 20 ms at 4 Gbps and load 1.
        assert_eq!(iteration.alone(1.0, Bandwidth(4_000_000_000)), ms(115));
        assert_eq!(iteration.alone(0.0, Bandwidth(4_000_000_000)), ms(105));
        assert_eq!(ring_load(1), 0.0);
        assert_eq!(ring_load(4), 1.5);
    }
}
