//! Measured speed of a job at the sizes that it has had.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Iterations, Share};
use crate::tuning::ObserveTuning;

/// Measurements per size in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    sizes: Vec<SizeMeasurement>,
    /// Times for a thousand iterations at the smallest and at the largest size when the scheduler last used the fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<(Duration, Duration)>,
}

/// Measurements at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SizeMeasurement {
    pub(super) members: u32,
    pub(super) iterations: Iterations,
    pub(super) time: Duration,
    /// Number of measurements, and mean relative deviation of a measurement from the earlier ones.
    looks: u32,
    off: Share,
}

/// Sizes that are remembered: a bound on memory.
const MAX_SIZES: usize = 16;

impl Measured {
    /// Whether the value is the default, which serde omits.
    pub fn is_nothing(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Adds `iterations` that were completed in `time` with `members` members.
    pub(crate) fn note(
        &mut self,
        members: u32,
        iterations: Iterations,
        time: Duration,
        tuning: &ObserveTuning,
    ) {
        let found = self.sizes.binary_search_by_key(&members, |size| size.members);
        let at = found.unwrap_or_else(|at| {
            self.sizes.insert(at, SizeMeasurement::empty(members));
            at
        });
        self.sizes[at].note(iterations, time, tuning);
        if self.sizes.len() > MAX_SIZES {
            self.forget_shortest_measurement(members);
        }
    }

    fn forget_shortest_measurement(&mut self, but: u32) {
        let others = (0..self.sizes.len()).filter(|at| self.sizes[*at].members != but);
        if let Some(least) = others.min_by_key(|at| self.sizes[*at].time) {
            self.sizes.remove(least);
        }
    }

    /// Sizes with at least one completed iteration.
    pub(super) fn seen(&self) -> impl Iterator<Item = &SizeMeasurement> {
        self.sizes.iter().filter(|size| size.iterations.0 > 0 && !size.time.is_zero())
    }

    /// Whether the fit differs from the one used last; if so, remembers it as used.
    pub(crate) fn is_news(&mut self, takes: (Duration, Duration), tuning: &ObserveTuning) -> bool {
        let differs = |told: Duration, takes: Duration| {
            let (off, most) = (
                u128::from(told.0.abs_diff(takes.0)),
                u128::from(told.0) * u128::from(tuning.min_scaling_change.0),
            );
            off * u128::from(Share::WHOLE.0) > most
        };
        let news = self.told.is_none_or(|told| differs(told.0, takes.0) || differs(told.1, takes.1));
        if news {
            self.told = Some(takes);
        }
        news
    }
}

impl SizeMeasurement {
    const fn empty(members: u32) -> Self {
        Self { members, iterations: Iterations(0), time: Duration::ZERO, looks: 0, off: Share::NONE }
    }

    fn note(&mut self, iterations: Iterations, time: Duration, tuning: &ObserveTuning) {
        if let Some(off) = self.relative_deviation(iterations, time) {
            let (before, now) = (u128::from(self.time.0), u128::from(time.0));
            let off = u128::from(self.off.0) * before + u128::from(off.0) * now;
            self.off = Share(u32::try_from(off / (before + now).max(1)).unwrap_or(Share::WHOLE.0));
        }
        self.looks = self.looks.saturating_add(1);
        self.iterations = Iterations(self.iterations.0.saturating_add(iterations.0));
        self.time += time;
        if self.time > tuning.measurement_halving_time {
            self.iterations = Iterations(self.iterations.0.div_ceil(2));
            self.time = Duration(self.time.0 / 2);
        }
    }

    /// Relative deviation from the earlier measurements.
    fn relative_deviation(&self, iterations: Iterations, time: Duration) -> Option<Share> {
        if self.time.is_zero() || self.iterations.0 == 0 {
            return None;
        }
        let expected = u128::from(self.iterations.0) * u128::from(time.0) / u128::from(self.time.0);
        let expected = u64::try_from(expected).unwrap_or(u64::MAX).max(1);
        Some(Share::ratio(iterations.0.abs_diff(expected), expected))
    }

    /// Standard error of the mean over all measurements.
    pub(super) fn uncertainty(&self) -> f64 {
        self.off.as_f64() / f64::from(self.looks.max(1)).sqrt()
    }
}
