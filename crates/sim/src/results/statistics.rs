//! Mean and percentiles. Sums are kept in integers where the values are times, so that a mean does not depend on
//! the order of its parts.

use metronome_core::model::units::Duration;

/// Values in ascending order, of which percentiles are read.
#[derive(Debug)]
pub(crate) struct Sorted<T>(Vec<T>);

impl Sorted<Duration> {
    pub(crate) fn times(values: impl IntoIterator<Item = Duration>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_unstable();
        Self(values)
    }

    /// In seconds.
    pub(crate) fn mean(&self) -> Option<f64> {
        let sum: u128 = self.0.iter().map(|value| u128::from(value.0)).sum();
        let per_second = self.0.len() as f64 * Duration::SECOND.0 as f64;
        (!self.0.is_empty()).then(|| sum as f64 / per_second)
    }

    pub(crate) fn seconds_at(&self, percent: usize) -> Option<f64> {
        self.percentile(percent).map(Duration::as_secs_f64)
    }
}

impl Sorted<f64> {
    pub(crate) fn ratios(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
}

impl<T: Copy> Sorted<T> {
    /// By nearest rank: the smallest value that at least `percent` of the values do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Option<T> {
        let rank = (percent * self.0.len()).div_ceil(100);
        self.0.get(rank.max(1) - 1).copied()
    }

    pub(crate) fn max(&self) -> Option<T> {
        self.0.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values = Sorted::ratios((1..=10).rev().map(f64::from));
        let at = |percent| values.percentile(percent);
        assert_eq!((at(50), at(90), at(91), at(99)), (Some(5.0), Some(9.0), Some(10.0), Some(10.0)));
        assert_eq!((at(0), at(100), values.max()), (Some(1.0), Some(10.0), Some(10.0)));
    }

    #[test]
    fn nothing_has_no_mean_and_no_percentile() {
        let none = Sorted::times([]);
        assert_eq!((none.mean(), none.seconds_at(50), none.max()), (None, None, None));
    }

    #[test]
    fn a_mean_of_times_is_in_seconds() {
        let times = Sorted::times([Duration::from_millis(1500), Duration::from_secs(2)]);
        assert_eq!((times.mean(), times.seconds_at(50)), (Some(1.75), Some(1.5)));
    }
}
