//! What one iteration costs: compute by GPU type and size, and traffic in phases on a period.

use serde::{Deserialize, Serialize};

use crate::id::GpuTypeId;
use crate::units::{Bandwidth, Bytes, Duration};

/// A burst: `rate` for `length`, beginning `offset` into the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    pub offset: Duration,
    pub length: Duration,
    pub rate: Bandwidth,
}

/// What a job sends in one iteration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    period: Duration,
    phases: Vec<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    #[error("a period lasts longer than nothing")]
    NoPeriod,
    #[error("phase {0} lasts longer than nothing and no longer than the period")]
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
    /// Hybrid-parallel jobs have up to six; the rest is room to learn.
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

    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// What one iteration sends.
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

/// Compute time of one iteration on `members` members of one GPU type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compute {
    /// On any type, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GpuTypeId>,
    pub members: u32,
    pub time: Duration,
}

/// What one iteration costs, as declared or measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    compute: Vec<Compute>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

impl Profile {
    pub fn new(mut compute: Vec<Compute>, traffic: Option<Traffic>) -> Result<Self, ProfileError> {
        if compute.iter().any(|point| point.time.is_zero() || point.members == 0) {
            return Err(ProfileError::NoCompute);
        }
        compute.sort_by_key(|point| (point.gpu_type, point.members));
        Ok(Self { compute, traffic })
    }

    /// The compute time measured nearest to `members` on that type, or on any type where that one was not measured;
    /// the declared period where nothing was.
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
    fn phases_lie_on_the_period_and_apart() {
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
    fn compute_is_taken_from_the_nearest_measurement() {
        let at = |gpu_type, members, ms| Compute { gpu_type, members, time: Duration::from_millis(ms) };
        let h200 = Some(GpuTypeId(1));
        let profile = Profile::new(vec![at(h200, 8, 50), at(h200, 1, 40), at(None, 1, 90)], None).unwrap();
        assert_eq!(profile.compute(h200, 6), Some(Duration::from_millis(50)));
        assert_eq!(profile.compute(Some(GpuTypeId(7)), 4), Some(Duration::from_millis(90)));
    }
}
