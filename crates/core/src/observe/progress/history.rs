//! Reported metric, thinned to a bounded number of points.

use serde::{Deserialize, Serialize};

use crate::tuning::ObserveTuning;

/// Mean of consecutive reports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurvePoint {
    /// Iterations.
    pub(crate) at: f64,
    /// Metric, negated if larger is better.
    pub(crate) value: f64,
    pub(crate) reports: u32,
}

/// Points of a learning curve, at most as many as [`ObserveTuning::max_curve_points`] says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MetricHistory {
    points: Vec<CurvePoint>,
    /// Reports per point; doubles when points are merged.
    each: u32,
    /// Consecutive reports that were taken for outliers.
    spikes: u8,
}

impl MetricHistory {
    pub(crate) fn points(&self) -> &[CurvePoint] {
        &self.points
    }

    /// Adds a value unless it is an outlier.
    pub(crate) fn add(&mut self, at: f64, value: f64, tuning: &ObserveTuning) {
        if self.is_outlier(value, tuning) {
            self.spikes += 1;
            if self.spikes < tuning.outliers_of_a_jump {
                return;
            }
            // The metric stays at its new value: earlier points do not predict later ones.
            self.points.clear();
        }
        self.spikes = 0;
        self.append(at, value, tuning);
    }

    fn append(&mut self, at: f64, value: f64, tuning: &ObserveTuning) {
        let each = self.each.max(1);
        match self.points.last_mut().filter(|last| last.reports < each) {
            Some(last) => *last = last.with(at, value),
            None => self.points.push(CurvePoint { at, value, reports: 1 }),
        }
        if self.points.len() > tuning.max_curve_points {
            self.points = self.points.chunks(2).map(mean).collect();
            self.each = each.saturating_mul(2);
        }
    }

    /// Drops all points but the last two.
    pub(crate) fn keep_last_points(&mut self) {
        let last = self.points.len().saturating_sub(2);
        self.points.drain(..last);
        self.each = 1;
    }

    /// Whether the step from the last point is an outlier among the last eight.
    fn is_outlier(&self, value: f64, tuning: &ObserveTuning) -> bool {
        let recent = &self.points[self.points.len().saturating_sub(8)..];
        let Some(last) = recent.last().filter(|_| recent.len() >= 4) else { return false };
        let steps = recent.windows(2).map(|pair| (pair[1].value - pair[0].value).abs());
        let widest = steps.fold(0.0, f64::max).max(last.value.abs() * 1e-3);
        (value - last.value).abs() > tuning.outlier_widest_steps * widest
    }
}

impl CurvePoint {
    fn with(self, at: f64, value: f64) -> Self {
        let (many, all) = (f64::from(self.reports), f64::from(self.reports) + 1.0);
        let mean = |before: f64, new: f64| (before * many + new) / all;
        Self { at: mean(self.at, at), value: mean(self.value, value), reports: self.reports + 1 }
    }
}

fn mean(pair: &[CurvePoint]) -> CurvePoint {
    let [one, other] = pair else { return pair[0] };
    let (first, second) = (f64::from(one.reports), f64::from(other.reports));
    let weigh = |of: fn(&CurvePoint) -> f64| (of(one) * first + of(other) * second) / (first + second);
    CurvePoint {
        at: weigh(|point| point.at),
        value: weigh(|point| point.value),
        reports: one.reports.saturating_add(other.reports),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNING: ObserveTuning = ObserveTuning::DEFAULT;

    #[test]
    fn many_reports_become_a_bounded_number_of_points() {
        let mut history = MetricHistory::default();
        (0..100_000).for_each(|at| history.add(f64::from(at), 1.0 / f64::from(at + 1), &TUNING));
        assert!(history.points().len() <= TUNING.max_curve_points);
        let sorted = history.points().windows(2).all(|pair| pair[0].at < pair[1].at);
        assert!(sorted);
    }

    #[test]
    fn an_outlier_is_left_out_and_a_jump_is_kept() {
        let mut history = MetricHistory::default();
        (0..10).for_each(|at| history.add(f64::from(at), 1.0 - 0.01 * f64::from(at), &TUNING));
        history.add(10.0, 50.0, &TUNING);
        assert_eq!(history.points().len(), 10);
        [11.0, 12.0, 13.0].into_iter().for_each(|at| history.add(at, 50.0, &TUNING));
        assert_eq!(history.points().last().map(|point| point.value), Some(50.0));
    }
}
