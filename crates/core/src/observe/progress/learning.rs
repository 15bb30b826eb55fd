//! Learning of a job: metric over iterations, predicted iterations to the target, and category.

use serde::{Deserialize, Serialize};

use super::ReportContext;
use super::category::{Category, CategoryEvaluation};
use super::curve::LearningCurve;
use super::history::MetricHistory;
use crate::model::job::Target;
use crate::model::units::{Cpu, Duration, Instant, Iterations, Share};
use crate::tuning::ObserveTuning;

/// Evaluated reports of a job's metric, in bounded memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Learning {
    history: MetricHistory,
    #[serde(skip_serializing_if = "Category::is_progressing")]
    category: Category,
    /// Time of the last change of category.
    changed: Option<Instant>,
    look: Option<CategoryEvaluation>,
    /// Predicted iterations to the target as of the last report.
    predicted: Option<Predicted>,
    largest: f64,
    /// Improvement per second for the whole CPU capacity of its node at the last evaluation.
    learns: Option<f64>,
    /// Reports without information: not a number, out of order, or from the future.
    odd: u32,
    /// Smallest predicted total work, in time without contention.
    least: Option<Duration>,
}

/// A predicted number of iterations and its confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    pub iterations: Iterations,
    pub confidence: Share,
}

impl Learning {
    /// Whether the value is the default, which serde omits.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub fn category(&self) -> Category {
        self.category
    }

    /// Time of the last change of category.
    pub fn changed(&self) -> Option<Instant> {
        self.changed
    }

    /// Improvement per second at the last evaluation, scaled to the whole CPU capacity of its node, in parts of the
    /// largest metric.
    pub(crate) fn learns(&self) -> Option<f64> {
        self.learns
    }

    /// Number of reports without information.
    pub fn odd(&self) -> u32 {
        self.odd
    }

    pub(super) fn count_odd(&mut self) {
        self.odd = self.odd.saturating_add(1);
    }

    /// Adds a value of the metric, negated if the target is a lower bound, and updates the prediction.
    pub(super) fn add_metric(
        &mut self,
        done: Iterations,
        metric: f64,
        target: Option<Target>,
        tuning: &ObserveTuning,
    ) {
        // Beyond any real metric, and far below the largest `f64`.
        let metric = metric.clamp(-1e100, 1e100);
        let value = if matches!(target, Some(Target::AtLeast(_))) { -metric } else { metric };
        self.largest = self.largest.max(metric.abs());
        self.history.add(done.0 as f64, value, tuning);
        let points = self.history.points();
        let left = LearningCurve::fit(points, tuning).is_some_and(|curve| curve.is_left_by(points, tuning));
        if left {
            self.history.keep_last_points();
            self.category = Category::Progressing;
        }
        self.predicted = target.and_then(|target| self.predict(target, tuning));
    }

    /// Evaluates the improvement since the last evaluation if [`ObserveTuning::evaluation_interval`] has passed; the CPU
    /// capacity of the job's node.
    pub(super) fn evaluate_category(
        &mut self,
        at: Instant,
        metric: f64,
        used: Duration,
        context: ReportContext<'_>,
    ) {
        let ReportContext { of, bounds, tuning } = context;
        let value = if self.largest > 0.0 { metric / self.largest } else { 0.0 };
        let new = CategoryEvaluation { at, value, used };
        let Some(before) = self.look else {
            self.look = Some(new);
            return;
        };
        let time = at.since(before.at);
        if time < tuning.evaluation_interval {
            return;
        }
        self.look = Some(new);
        let cores = (used - before.used).as_secs_f64() / time.as_secs_f64();
        let part = cores * Cpu::cores(1).0 as f64 / of.0.max(1) as f64;
        let gained = (value - before.value).abs() / time.as_secs_f64();
        let learns = if part > 0.0 { gained / part } else { 0.0 };
        self.learns = Some(learns);
        let category = self.category.after(learns, bounds);
        if category != self.category {
            (self.category, self.changed) = (category, Some(at));
        }
    }

    /// Predicted iterations to the target as of the last report.
    pub fn predicted(&self) -> Option<Predicted> {
        self.predicted
    }

    fn predict(&self, target: Target, tuning: &ObserveTuning) -> Option<Predicted> {
        let points = self.history.points();
        let curve = LearningCurve::fit(points, tuning)?;
        let value = match target {
            Target::AtMost(value) => value,
            Target::AtLeast(value) => -value,
        };
        let iterations = curve.iterations_to(value)?;
        let confidence = Share((curve.confidence(points, tuning) * f64::from(Share::WHOLE.0)) as u32);
        (iterations < 1e15)
            .then(|| Predicted { iterations: Iterations(iterations.ceil() as u64), confidence })
    }

    /// Improvement that the curve predicts for `more` iterations, in parts of the largest metric.
    pub fn predicted_gain(&self, done: Iterations, more: Iterations, tuning: &ObserveTuning) -> Option<f64> {
        let curve = LearningCurve::fit(self.history.points(), tuning)?;
        let (now, then) = (curve.at(done.0 as f64), curve.at(done.0.saturating_add(more.0) as f64));
        (self.largest > 0.0).then(|| (now - then) / self.largest)
    }

    /// Records a prediction of the total work.
    pub(super) fn record_prediction(&mut self, work: Duration) {
        self.least = Some(self.least.map_or(work, |least| least.min(work)));
    }

    /// Whether the job has executed far more than its smallest predicted total: its prediction then raises its
    /// priority no longer.
    pub(super) fn is_doubted(&self, executed: Duration, tuning: &ObserveTuning) -> bool {
        let least = self.least.map(|least| least.times(tuning.doubt_factor) + tuning.doubt_margin);
        least.is_some_and(|least| executed > least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::progress::CategoryBounds;

    const TUNING: ObserveTuning = ObserveTuning::DEFAULT;

    fn learned(reports: u64, metric: impl Fn(u64) -> f64, target: Target) -> Learning {
        let mut learning = Learning::default();
        (1..=reports)
            .for_each(|k| learning.add_metric(Iterations(k * 100), metric(k * 100), Some(target), &TUNING));
        learning
    }

    #[test]
    fn the_curve_predicts_the_iterations_to_a_target() {
        let loss = |k: u64| 1.0 / (0.01 * k as f64 + 0.5) + 0.2;
        let target = Target::AtMost(loss(8000));
        let predicted = learned(40, loss, target).predicted().unwrap();
        assert!(predicted.iterations.0.abs_diff(8000) < 800, "{predicted:?}");
        assert!(predicted.confidence.as_f64() > 0.9);
    }

    #[test]
    fn a_rising_metric_has_a_prediction_too() {
        let accuracy = |k: u64| 0.9 - 1.0 / (0.01 * k as f64 + 1.5);
        let target = Target::AtLeast(accuracy(8000));
        let predicted = learned(40, accuracy, target).predicted().unwrap();
        assert!(predicted.iterations.0.abs_diff(8000) < 800, "{predicted:?}");
    }

    #[test]
    fn a_target_below_the_asymptote_has_no_prediction() {
        let loss = |k: u64| 1.0 / (0.01 * k as f64 + 0.5) + 0.2;
        let target = Target::AtMost(0.1);
        assert_eq!(learned(40, loss, target).predicted(), None);
    }

    #[test]
    fn a_job_that_improves_little_for_its_share_converges_and_may_return() {
        let mut learning = Learning { largest: 1.0, ..Learning::default() };
        let mut look = |at: u64, metric: f64| {
            let (at, used) = (Instant::from_secs(at), Duration::from_secs(at));
            let bounds = CategoryBounds::published(&TUNING);
            let context = ReportContext { of: Cpu::cores(4), bounds, tuning: &TUNING };
            learning.evaluate_category(at, metric, used, context);
            learning.category()
        };
        // A quarter of the node: 0.5 in ten seconds is 0.2 per second for the whole node.
        assert_eq!(look(0, 1.0), Category::Progressing);
        assert_eq!(look(10, 0.5), Category::Progressing);
        assert_eq!(look(20, 0.49), Category::Watching);
        assert_eq!(look(30, 0.48), Category::Converged);
        assert_eq!(look(40, 0.1), Category::Watching);
    }

    #[test]
    fn a_job_that_far_exceeds_its_prediction_is_doubted() {
        let mut learning = Learning::default();
        learning.record_prediction(Duration::from_secs(100));
        assert!(!learning.is_doubted(Duration::from_secs(200), &TUNING));
        assert!(learning.is_doubted(Duration::from_secs(300), &TUNING));
    }
}
