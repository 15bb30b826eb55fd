//! Means over starts with 95 % intervals, by Student's t.

use serde::Serialize;

/// A mean, and how far its 95 % interval reaches to both sides; unknown for a single value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Interval {
    pub(super) mean: f64,
    pub(super) reach: Option<f64>,
}

impl Interval {
    /// None of no values.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let count = values.len();
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let reach = (count > 1).then(|| {
            let deviation = (squares / (count - 1) as f64).sqrt();
            quantile(count - 1) * deviation / (count as f64).sqrt()
        });
        Some(Self { mean, reach })
    }

    /// Of the sum of `parts` over the sum of `wholes`, which come in pairs: the ratio estimator. None where there is no whole.
    pub(super) fn of_ratio(parts: &[f64], wholes: &[f64]) -> Option<Self> {
        let whole = mean(wholes).filter(|whole| *whole > 0.0)?;
        let ratio = mean(parts)? / whole;
        let residuals: Vec<f64> =
            parts.iter().zip(wholes).map(|(part, of)| (part - ratio * of) / whole).collect();
        Some(Self { mean: ratio, reach: Self::of(&residuals)?.reach })
    }

    /// Whether the whole interval lies above a value. A single one may lie anywhere.
    pub(super) fn is_above(&self, value: f64) -> bool {
        self.reach.is_some_and(|reach| self.mean - reach > value)
    }

    pub(super) fn is_below(&self, value: f64) -> bool {
        self.reach.is_some_and(|reach| self.mean + reach < value)
    }

    pub(super) fn text(&self) -> String {
        match self.reach {
            Some(reach) => format!("{:.3} ± {reach:.3}", self.mean),
            None => format!("{:.3}", self.mean),
        }
    }
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of Student's t distribution: 97.5 % lie below, with so many degrees of freedom.
fn quantile(degrees: usize) -> f64 {
    const QUANTILES: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    QUANTILES.get(degrees.saturating_sub(1)).copied().unwrap_or(1.96)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_students_t() {
        // A deviation of 1, so 2.776 / √5.
        let spread =
            Interval::of(&[8.735_088_935_932_648, 10.0, 10.0, 10.0, 11.264_911_064_067_352]).unwrap();
        assert!((spread.mean - 10.0).abs() < 1e-9);
        let deviation = (2.0 * 1.264_911_064_067_352f64.powi(2) / 4.0).sqrt();
        assert!((spread.reach.unwrap() - 2.776 * deviation / 5f64.sqrt()).abs() < 1e-9);
        assert_eq!(Interval::of(&[3.0]), Some(Interval { mean: 3.0, reach: None }));
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn a_ratio_of_sums_is_sure_where_all_pairs_agree() {
        let sure = Interval::of_ratio(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).unwrap();
        assert!((sure.mean - 0.5).abs() < 1e-12 && sure.reach.unwrap() < 1e-12);
        let unsure = Interval::of_ratio(&[2.0, 1.0, 3.0], &[2.0, 4.0, 6.0]).unwrap();
        assert!((unsure.mean - 0.5).abs() < 1e-12 && unsure.reach.unwrap() > 0.3);
        assert_eq!(Interval::of_ratio(&[1.0], &[0.0]), None);
    }

    #[test]
    fn only_a_whole_interval_lies_above() {
        assert!(Interval { mean: 1.1, reach: Some(0.05) }.is_above(1.02));
        assert!(!Interval { mean: 1.1, reach: Some(0.09) }.is_above(1.02));
        assert!(!Interval { mean: 1.1, reach: None }.is_above(1.02));
        assert!(Interval { mean: 0.9, reach: Some(0.05) }.is_below(1.0));
    }
}
