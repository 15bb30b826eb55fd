//! Learning curve `1 / (a k + b) + c` through the points that a job reported: it falls fast at first, then ever more
//! slowly towards `c`.
//!
//! For a given `c` the rest is a straight line through `1 / (y - c)`, so the fit tries a fixed number of asymptotes
//! and takes the one with the smallest error. Newer points have a larger weight. A point far from both neighbours is
//! an outlier and left out.

use super::history::CurvePoint;
use crate::tuning::ObserveTuning;

/// A fitted curve of a falling metric; the caller negates a rising one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LearningCurve {
    a: f64,
    b: f64,
    c: f64,
    /// Root mean square of the residuals.
    rms_residual: f64,
    points: usize,
}

impl LearningCurve {
    /// Fits a curve; `None` if there are too few points or they do not fall.
    pub(crate) fn fit(points: &[CurvePoint], tuning: &ObserveTuning) -> Option<Self> {
        let points = without_outliers(points, tuning);
        if points.len() < tuning.min_curve_points {
            return None;
        }
        let (lowest, highest) = bounds(&points);
        let range = highest - lowest;
        if range <= 0.0 {
            return None;
        }
        let ratio = tuning.asymptote_ratio;
        let asymptote = |nearer: u32| lowest - range * ratio * ratio.powi(nearer as i32);
        let asymptotes = (0..tuning.curve_asymptotes).map(asymptote);
        let fitted = asymptotes.filter_map(|c| Self::fit_with_asymptote(&points, c));
        fitted.min_by(|one, other| one.rms_residual.total_cmp(&other.rms_residual))
    }

    /// Best curve for one asymptote by weighted least squares. A value of `1 / (y - c)` is less certain the nearer
    /// `y` is to `c`.
    fn fit_with_asymptote(points: &[CurvePoint], c: f64) -> Option<Self> {
        let mut sums = RegressionSums::default();
        for (point, new) in weighted(points) {
            let above = point.value - c;
            sums.add(new * above.powi(4), point.at, 1.0 / above);
        }
        let (a, b) = sums.line()?;
        let curve = Self { a, b, c, rms_residual: 0.0, points: points.len() };
        let falls = a > 0.0 && points.iter().all(|point| a * point.at + b > 0.0);
        let (mut square, mut weight) = (0.0, 0.0);
        for (point, new) in weighted(points) {
            square += new * (point.value - curve.at(point.at)).powi(2);
            weight += new;
        }
        falls.then(|| Self { rms_residual: (square / weight).sqrt(), ..curve }).filter(Self::is_finite)
    }

    fn is_finite(&self) -> bool {
        [self.a, self.b, self.c, self.rms_residual].into_iter().all(f64::is_finite)
    }

    /// Value after `iterations`.
    pub(crate) fn at(&self, iterations: f64) -> f64 {
        1.0 / (self.a * iterations + self.b) + self.c
    }

    /// Iterations after which the curve falls to `value`; `None` if it never does.
    pub(crate) fn iterations_to(&self, value: f64) -> Option<f64> {
        let above = value - self.c;
        let iterations = (1.0 / above - self.b) / self.a;
        (above > 0.0 && iterations.is_finite()).then(|| iterations.max(0.0))
    }

    /// Confidence from 0 to 1: the fall of the metric relative to the residuals, less with few points.
    pub(crate) fn confidence(&self, points: &[CurvePoint], tuning: &ObserveTuning) -> f64 {
        let (lowest, highest) = bounds(points);
        let seen = (self.points as f64 / tuning.full_confidence_points).min(1.0);
        let fallen = (highest - lowest).max(0.0);
        if fallen > 0.0 {
            seen * fallen / (fallen + tuning.confidence_residuals * self.rms_residual)
        } else {
            0.0
        }
    }

    /// Whether the last two points lie below the curve by more than noise explains, as after a learning-rate step.
    pub(crate) fn is_left_by(&self, points: &[CurvePoint], tuning: &ObserveTuning) -> bool {
        let far = tuning.noise_residuals * self.rms_residual.max(1e-12);
        let last = points.iter().rev().take(2);
        points.len() > tuning.min_curve_points
            && last.clone().all(|point| self.at(point.at) - point.value > far)
    }
}

/// Points with their weights, which rise linearly to twice that of the first.
fn weighted(points: &[CurvePoint]) -> impl Iterator<Item = (&CurvePoint, f64)> {
    let many = points.len() as f64;
    points.iter().enumerate().map(move |(place, point)| (point, 0.5 + 0.5 * (place as f64 + 1.0) / many))
}

/// Smallest and largest value.
fn bounds(points: &[CurvePoint]) -> (f64, f64) {
    let values = points.iter().map(|point| point.value);
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Points without outliers: those far above or below both neighbours, relative to the median step.
fn without_outliers(points: &[CurvePoint], tuning: &ObserveTuning) -> Vec<CurvePoint> {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| (pair[1].value - pair[0].value).abs()).collect();
    steps.sort_unstable_by(f64::total_cmp);
    let far = tuning.outlier_median_steps * steps.get(steps.len() / 2).copied().unwrap_or_default();
    let is_outlier = |place: usize| {
        let inner = place > 0 && place + 1 < points.len();
        inner && distance_outside(points[place].value, points[place - 1].value, points[place + 1].value) > far
    };
    (0..points.len()).filter(|place| !is_outlier(*place)).map(|place| points[place]).collect()
}

/// Distance of a value from the interval between two others.
fn distance_outside(value: f64, one: f64, other: f64) -> f64 {
    (value - one.max(other)).max(one.min(other) - value).max(0.0)
}

/// Sums of a weighted linear regression.
#[derive(Clone, Copy, Debug, Default)]
struct RegressionSums {
    w: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl RegressionSums {
    fn add(&mut self, weight: f64, x: f64, y: f64) {
        self.w += weight;
        self.x += weight * x;
        self.y += weight * y;
        self.xx += weight * x * x;
        self.xy += weight * x * y;
    }

    /// Slope and intercept; `None` if all points have the same `x`.
    fn line(&self) -> Option<(f64, f64)> {
        let spread = self.w * self.xx - self.x * self.x;
        if spread <= self.w * self.xx * 1e-12 {
            return None;
        }
        let slope = (self.w * self.xy - self.x * self.y) / spread;
        Some((slope, (self.y - slope * self.x) / self.w))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNING: ObserveTuning = ObserveTuning::DEFAULT;

    fn points(count: u32, value: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let at = |place: u32| f64::from(place) * 100.0;
        (1..=count).map(|place| CurvePoint { at: at(place), value: value(at(place)), reports: 1 }).collect()
    }

    /// Deterministic substitute for noise.
    fn noise(at: f64) -> f64 {
        (at * 12.9898).sin()
    }

    fn typical(at: f64) -> f64 {
        1.0 / (0.01 * at + 0.5) + 0.2
    }

    #[test]
    fn a_fit_recovers_a_curve_of_its_own_form() {
        let curve = LearningCurve::fit(&points(20, typical), &TUNING).unwrap();
        let reached = curve.iterations_to(typical(6000.0)).unwrap();
        assert!((reached / 6000.0 - 1.0).abs() < 0.1, "{reached}");
        assert!(curve.iterations_to(0.1).is_none());
    }

    #[test]
    fn noise_changes_a_prediction_little() {
        let curve =
            LearningCurve::fit(&points(30, |at| typical(at) * (1.0 + 0.01 * noise(at))), &TUNING).unwrap();
        let reached = curve.iterations_to(typical(6000.0)).unwrap();
        assert!((reached / 6000.0 - 1.0).abs() < 0.4, "{reached}");
    }

    #[test]
    fn an_outlier_changes_a_prediction_little() {
        let mut spiked = points(24, typical);
        spiked[15].value = 9.0;
        let (with, without) = (
            LearningCurve::fit(&spiked, &TUNING).unwrap(),
            LearningCurve::fit(&points(24, typical), &TUNING).unwrap(),
        );
        assert!((with.at(6000.0) - without.at(6000.0)).abs() < 0.02, "{with:?} {without:?}");
    }

    #[test]
    fn a_metric_that_rises_or_stands_still_has_no_curve() {
        assert_eq!(LearningCurve::fit(&points(20, |at| at), &TUNING), None);
        assert_eq!(LearningCurve::fit(&points(20, |_| 1.0), &TUNING), None);
        assert_eq!(LearningCurve::fit(&points(3, typical), &TUNING), None);
    }

    #[test]
    fn a_drop_below_the_curve_is_detected() {
        let mut lowered = points(20, typical);
        let curve = LearningCurve::fit(&lowered, &TUNING).unwrap();
        assert!(!curve.is_left_by(&lowered, &TUNING));
        for point in &mut lowered[18..] {
            point.value -= 0.1;
        }
        assert!(curve.is_left_by(&lowered, &TUNING));
    }
}
