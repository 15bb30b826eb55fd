//! What a job reported of its metric, thinned: however often it reports, a few points are kept.

use serde::{Deserialize, Serialize};

/// More points than this are halved: two neighbours become their mean.
const MOST_POINTS: usize = 32;

/// A value so many times as far from the last as the points before are from each other is a spike…
const SPIKE: f64 = 8.0;

/// …unless so many come in a row: then the metric is there now.
const SPIKES_BELIEVED: u8 = 3;

/// The mean of some reports that followed each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Iterations.
    pub(crate) at: f64,
    /// The metric, so that less is better.
    pub(crate) value: f64,
    pub(crate) reports: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct History {
    points: Vec<Point>,
    /// So many reports make up a point: doubled when there are too many points.
    each: u32,
    /// Reports in a row that were taken for spikes.
    spikes: u8,
}

impl History {
    pub(crate) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Takes note of a value, unless it is a spike.
    pub(crate) fn note(&mut self, at: f64, value: f64) {
        if self.is_spike(value) {
            self.spikes += 1;
            if self.spikes < SPIKES_BELIEVED {
                return;
            }
            // It stays where it jumped to: what was before says nothing about what comes.
            self.points.clear();
        }
        self.spikes = 0;
        self.add(at, value);
    }

    fn add(&mut self, at: f64, value: f64) {
        let each = self.each.max(1);
        match self.points.last_mut().filter(|last| last.reports < each) {
            Some(last) => *last = last.with(at, value),
            None => self.points.push(Point { at, value, reports: 1 }),
        }
        if self.points.len() > MOST_POINTS {
            self.points = self.points.chunks(2).map(mean).collect();
            self.each = each.saturating_mul(2);
        }
    }

    /// Only what came last is of use from now on.
    pub(crate) fn begin_anew(&mut self) {
        let last = self.points.len().saturating_sub(2);
        self.points.drain(..last);
        self.each = 1;
    }

    fn is_spike(&self, value: f64) -> bool {
        let recent = &self.points[self.points.len().saturating_sub(8)..];
        let Some(last) = recent.last().filter(|_| recent.len() >= 4) else { return false };
        let steps = recent.windows(2).map(|pair| (pair[1].value - pair[0].value).abs());
        let widest = steps.fold(0.0, f64::max).max(last.value.abs() * 1e-3);
        (value - last.value).abs() > SPIKE * widest
    }
}

impl Point {
    fn with(self, at: f64, value: f64) -> Self {
        let (many, all) = (f64::from(self.reports), f64::from(self.reports) + 1.0);
        let mean = |before: f64, new: f64| (before * many + new) / all;
        Self { at: mean(self.at, at), value: mean(self.value, value), reports: self.reports + 1 }
    }
}

fn mean(pair: &[Point]) -> Point {
    let [one, other] = pair else { return pair[0] };
    let (first, second) = (f64::from(one.reports), f64::from(other.reports));
    let weigh = |of: fn(&Point) -> f64| (of(one) * first + of(other) * second) / (first + second);
    Point {
        at: weigh(|point| point.at),
        value: weigh(|point| point.value),
        reports: one.reports.saturating_add(other.reports),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_reports_is_kept_as_a_few_points() {
        let mut history = History::default();
        (0..100_000).for_each(|at| history.note(f64::from(at), 1.0 / f64::from(at + 1)));
        assert!(history.points().len() <= MOST_POINTS);
        let sorted = history.points().windows(2).all(|pair| pair[0].at < pair[1].at);
        assert!(sorted);
    }

    #[test]
    fn a_spike_is_left_out_and_a_jump_believed() {
        let mut history = History::default();
        (0..10).for_each(|at| history.note(f64::from(at), 1.0 - 0.01 * f64::from(at)));
        history.note(10.0, 50.0);
        assert_eq!(history.points().len(), 10);
        [11.0, 12.0, 13.0].into_iter().for_each(|at| history.note(at, 50.0));
        assert_eq!(history.points().last().map(|point| point.value), Some(50.0));
    }
}
