//! What a job learns: its metric over its iterations, and what that says about how much is left to do.

use serde::{Deserialize, Serialize};

use super::category::{Bounds, CHECKED_EVERY, Category, Look};
use super::curve::Curve;
use super::history::History;
use crate::model::job::Target;
use crate::model::units::{Cpu, Duration, Instant, Iterations, Share};

/// A job that was said to take so many times less than it has used already is not believed any more.
const DOUBTED_BEYOND: u64 = 2;

/// What a job reported of its training. Whatever it reports, this stays small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Learning {
    history: History,
    #[serde(skip_serializing_if = "Category::is_progressing")]
    category: Category,
    /// When that changed last.
    changed: Option<Instant>,
    look: Option<Look>,
    /// After how many iterations it will be where it is to be, by its last report.
    predicted: Option<Predicted>,
    largest: f64,
    /// What it learned a second for all of its node when it was last looked at.
    learns: Option<f64>,
    /// Reports that said nothing: no number, out of order, or from the future.
    odd: u32,
    /// The least that all its work was ever predicted to be, as time alone.
    least: Option<Duration>,
}

/// A prediction, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicted {
    pub iterations: Iterations,
    pub confidence: Share,
}

impl Learning {
    /// For serde: what is left out means this.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    pub fn category(&self) -> Category {
        self.category
    }

    /// When its category changed last.
    pub fn changed(&self) -> Option<Instant> {
        self.changed
    }

    /// What it learned a second for all of its node when it was last looked at: the part of its metric that it took off.
    pub(crate) fn learns(&self) -> Option<f64> {
        self.learns
    }

    /// How many of its reports said nothing.
    pub fn odd(&self) -> u32 {
        self.odd
    }

    pub(super) fn is_odd(&mut self) {
        self.odd = self.odd.saturating_add(1);
    }

    /// Takes note of its metric. One that rises is turned over.
    pub(super) fn note(&mut self, done: Iterations, metric: f64, target: Option<Target>) {
        // Beyond any metric there is, and still far from where numbers end.
        let metric = metric.clamp(-1e100, 1e100);
        let value = if matches!(target, Some(Target::AtLeast(_))) { -metric } else { metric };
        self.largest = self.largest.max(metric.abs());
        self.history.note(done.0 as f64, value);
        let left =
            Curve::fit(self.history.points()).is_some_and(|curve| curve.was_left_by(self.history.points()));
        if left {
            self.history.begin_anew();
            self.category = Category::Progressing;
        }
        self.predicted = target.and_then(|target| self.predicts(target));
    }

    /// Looks at what was gained since the last time, if that is long enough ago; `of` is what its node has.
    pub(super) fn look(&mut self, at: Instant, metric: f64, used: Duration, of: Cpu, bounds: Bounds) {
        let value = if self.largest > 0.0 { metric / self.largest } else { 0.0 };
        let new = Look { at, value, used };
        let Some(before) = self.look else {
            self.look = Some(new);
            return;
        };
        let time = at.since(before.at);
        if time < CHECKED_EVERY {
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

    /// After how many iterations it will be where it is to be, by its last report.
    pub fn predicted(&self) -> Option<Predicted> {
        self.predicted
    }

    fn predicts(&self, target: Target) -> Option<Predicted> {
        let points = self.history.points();
        let curve = Curve::fit(points)?;
        let value = match target {
            Target::AtMost(value) => value,
            Target::AtLeast(value) => -value,
        };
        let iterations = curve.reaches(value)?;
        let confidence = Share((curve.confidence(points) * f64::from(Share::WHOLE.0)) as u32);
        (iterations < 1e15)
            .then(|| Predicted { iterations: Iterations(iterations.ceil() as u64), confidence })
    }

    /// What part of its metric it would still take off in so many iterations more.
    pub fn still_gains(&self, done: Iterations, more: Iterations) -> Option<f64> {
        let curve = Curve::fit(self.history.points())?;
        let (now, then) = (curve.at(done.0 as f64), curve.at(done.0.saturating_add(more.0) as f64));
        (self.largest > 0.0).then(|| (now - then) / self.largest)
    }

    /// All its work was predicted to be so much.
    pub(super) fn was_predicted(&mut self, work: Duration) {
        self.least = Some(self.least.map_or(work, |least| least.min(work)));
    }

    /// Whether it was nearly done for far longer than that takes: then it is nobody's business to hurry for it.
    pub(super) fn is_doubted(&self, executed: Duration) -> bool {
        let least = self.least.map(|least| least.times(DOUBTED_BEYOND) + Duration::MINUTE);
        least.is_some_and(|least| executed > least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(reports: u64, metric: impl Fn(u64) -> f64, target: Target) -> Learning {
        let mut learning = Learning::default();
        (1..=reports).for_each(|k| learning.note(Iterations(k * 100), metric(k * 100), Some(target)));
        learning
    }

    #[test]
    fn how_far_it_is_to_a_target_follows_from_the_curve() {
        let loss = |k: u64| 1.0 / (0.01 * k as f64 + 0.5) + 0.2;
        let target = Target::AtMost(loss(8000));
        let predicted = learned(40, loss, target).predicted().unwrap();
        assert!(predicted.iterations.0.abs_diff(8000) < 800, "{predicted:?}");
        assert!(predicted.confidence.as_f64() > 0.9);
    }

    #[test]
    fn a_metric_that_rises_is_followed_as_well() {
        let accuracy = |k: u64| 0.9 - 1.0 / (0.01 * k as f64 + 1.5);
        let target = Target::AtLeast(accuracy(8000));
        let predicted = learned(40, accuracy, target).predicted().unwrap();
        assert!(predicted.iterations.0.abs_diff(8000) < 800, "{predicted:?}");
    }

    #[test]
    fn a_target_below_where_it_leads_is_never_reached() {
        let loss = |k: u64| 1.0 / (0.01 * k as f64 + 0.5) + 0.2;
        let target = Target::AtMost(0.1);
        assert_eq!(learned(40, loss, target).predicted(), None);
    }

    #[test]
    fn who_learns_little_for_its_share_is_converged_and_may_come_back() {
        let mut learning = Learning { largest: 1.0, ..Learning::default() };
        let mut look = |at: u64, metric: f64| {
            let (at, used) = (Instant::from_secs(at), Duration::from_secs(at));
            learning.look(at, metric, used, Cpu::cores(4), Bounds::PUBLISHED);
            learning.category()
        };
        // A quarter of the node: 0.5 in ten seconds is 0.2 a second for all of it.
        assert_eq!(look(0, 1.0), Category::Progressing);
        assert_eq!(look(10, 0.5), Category::Progressing);
        assert_eq!(look(20, 0.49), Category::Watching);
        assert_eq!(look(30, 0.48), Category::Converged);
        assert_eq!(look(40, 0.1), Category::Watching);
    }

    #[test]
    fn who_is_nearly_done_for_ever_is_doubted() {
        let mut learning = Learning::default();
        learning.was_predicted(Duration::from_secs(100));
        assert!(!learning.is_doubted(Duration::from_secs(200)));
        assert!(learning.is_doubted(Duration::from_secs(300)));
    }
}
