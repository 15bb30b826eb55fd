//! A curve through what a job reported: `1 / (a k + b) + c`, which falls fast and then ever more slowly towards `c`.
//!
//! For a given `c` the rest is a straight line through `1 / (y - c)`, so that a fit tries a fixed number of asymptotes and
//! takes the one that misses the points least. Newer points count for more. A point far from both its neighbours is left out:
//! a spike is no growth.

use super::history::Point;

/// So many asymptotes are tried, each nearer to the lowest point than the one before.
const ASYMPTOTES: i32 = 12;

/// How much nearer.
const NEARER: f64 = 0.6;

/// With fewer points nothing is said.
const LEAST_POINTS: usize = 5;

/// A point so many usual steps away from both its neighbours is a spike.
const SPIKE: f64 = 8.0;

/// What misses by so many times what points miss on average is no noise.
const FAR: f64 = 4.0;

/// A fitted curve of a metric that falls; one that rises is turned over before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    a: f64,
    b: f64,
    c: f64,
    /// What points miss it by, as the root of the mean square.
    misses: f64,
    points: usize,
}

impl Curve {
    /// None where there are too few points, or they do not fall.
    pub(crate) fn fit(points: &[Point]) -> Option<Self> {
        let points = without_spikes(points);
        if points.len() < LEAST_POINTS {
            return None;
        }
        let (lowest, highest) = bounds(&points);
        let range = highest - lowest;
        if range <= 0.0 {
            return None;
        }
        let asymptotes = (0..ASYMPTOTES).map(|nearer| lowest - range * 0.6 * NEARER.powi(nearer));
        let fitted = asymptotes.filter_map(|c| Self::towards(&points, c));
        fitted.min_by(|one, other| one.misses.total_cmp(&other.misses))
    }

    /// The best curve towards one asymptote. A point of `1 / (y - c)` is the less sure the nearer `y` is to `c`.
    fn towards(points: &[Point], c: f64) -> Option<Self> {
        let mut sums = Sums::default();
        for (point, new) in newer(points) {
            let above = point.value - c;
            sums.add(new * above.powi(4), point.at, 1.0 / above);
        }
        let (a, b) = sums.line()?;
        let curve = Self { a, b, c, misses: 0.0, points: points.len() };
        let falls = a > 0.0 && points.iter().all(|point| a * point.at + b > 0.0);
        let (mut square, mut weight) = (0.0, 0.0);
        for (point, new) in newer(points) {
            square += new * (point.value - curve.at(point.at)).powi(2);
            weight += new;
        }
        falls.then(|| Self { misses: (square / weight).sqrt(), ..curve }).filter(Self::is_finite)
    }

    fn is_finite(&self) -> bool {
        [self.a, self.b, self.c, self.misses].into_iter().all(f64::is_finite)
    }

    /// Where it is after so many iterations.
    pub(crate) fn at(&self, iterations: f64) -> f64 {
        1.0 / (self.a * iterations + self.b) + self.c
    }

    /// After how many iterations it is so low; none where it never is.
    pub(crate) fn reaches(&self, value: f64) -> Option<f64> {
        let above = value - self.c;
        let iterations = (1.0 / above - self.b) / self.a;
        (above > 0.0 && iterations.is_finite()).then(|| iterations.max(0.0))
    }

    /// How sure it is, from 0 to 1: by how much the metric has fallen beside what points miss the curve by.
    pub(crate) fn confidence(&self, points: &[Point]) -> f64 {
        let (lowest, highest) = bounds(points);
        let seen = (self.points as f64 / 16.0).min(1.0);
        let fallen = (highest - lowest).max(0.0);
        if fallen > 0.0 { seen * fallen / (fallen + 8.0 * self.misses) } else { 0.0 }
    }

    /// Whether what came last lies below it by more than noise explains: a learning rate that was lowered.
    pub(crate) fn was_left_by(&self, points: &[Point]) -> bool {
        let far = FAR * self.misses.max(1e-12);
        let last = points.iter().rev().take(2);
        points.len() > LEAST_POINTS && last.clone().all(|point| self.at(point.at) - point.value > far)
    }
}

/// Points with how much each counts: the last twice as much as the first.
fn newer(points: &[Point]) -> impl Iterator<Item = (&Point, f64)> {
    let many = points.len() as f64;
    points.iter().enumerate().map(move |(place, point)| (point, 0.5 + 0.5 * (place as f64 + 1.0) / many))
}

fn bounds(points: &[Point]) -> (f64, f64) {
    let values = points.iter().map(|point| point.value);
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Those that are not far above or below both their neighbours, beside the steps that points usually make.
fn without_spikes(points: &[Point]) -> Vec<Point> {
    let mut steps: Vec<f64> = points.windows(2).map(|pair| (pair[1].value - pair[0].value).abs()).collect();
    steps.sort_unstable_by(f64::total_cmp);
    let far = SPIKE * steps.get(steps.len() / 2).copied().unwrap_or_default();
    let is_spike = |place: usize| {
        let inner = place > 0 && place + 1 < points.len();
        inner && beyond(points[place].value, points[place - 1].value, points[place + 1].value) > far
    };
    (0..points.len()).filter(|place| !is_spike(*place)).map(|place| points[place]).collect()
}

/// How far a value lies outside of two others.
fn beyond(value: f64, one: f64, other: f64) -> f64 {
    (value - one.max(other)).max(one.min(other) - value).max(0.0)
}

/// Of a weighted straight line.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    w: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, x: f64, y: f64) {
        self.w += weight;
        self.x += weight * x;
        self.y += weight * y;
        self.xx += weight * x * x;
        self.xy += weight * x * y;
    }

    /// Its slope and where it begins; none where all points are at one place.
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

    fn points(count: u32, value: impl Fn(f64) -> f64) -> Vec<Point> {
        let at = |place: u32| f64::from(place) * 100.0;
        (1..=count).map(|place| Point { at: at(place), value: value(at(place)), reports: 1 }).collect()
    }

    /// As good as noise, and the same every time.
    fn wiggle(at: f64) -> f64 {
        (at * 12.9898).sin()
    }

    fn typical(at: f64) -> f64 {
        1.0 / (0.01 * at + 0.5) + 0.2
    }

    #[test]
    fn a_curve_of_its_own_kind_is_found_again() {
        let curve = Curve::fit(&points(20, typical)).unwrap();
        let reached = curve.reaches(typical(6000.0)).unwrap();
        assert!((reached / 6000.0 - 1.0).abs() < 0.1, "{reached}");
        assert!(curve.reaches(0.1).is_none());
    }

    #[test]
    fn noise_moves_what_is_predicted_a_little() {
        let curve = Curve::fit(&points(30, |at| typical(at) * (1.0 + 0.01 * wiggle(at)))).unwrap();
        let reached = curve.reaches(typical(6000.0)).unwrap();
        assert!((reached / 6000.0 - 1.0).abs() < 0.4, "{reached}");
    }

    #[test]
    fn a_spike_changes_nothing() {
        let mut spiked = points(24, typical);
        spiked[15].value = 9.0;
        let (with, without) = (Curve::fit(&spiked).unwrap(), Curve::fit(&points(24, typical)).unwrap());
        assert!((with.at(6000.0) - without.at(6000.0)).abs() < 0.02, "{with:?} {without:?}");
    }

    #[test]
    fn what_diverges_or_stands_still_has_no_curve() {
        assert_eq!(Curve::fit(&points(20, |at| at)), None);
        assert_eq!(Curve::fit(&points(20, |_| 1.0)), None);
        assert_eq!(Curve::fit(&points(3, typical)), None);
    }

    #[test]
    fn a_lower_learning_rate_is_noticed() {
        let mut lowered = points(20, typical);
        let curve = Curve::fit(&lowered).unwrap();
        assert!(!curve.was_left_by(&lowered));
        for point in &mut lowered[18..] {
            point.value -= 0.1;
        }
        assert!(curve.was_left_by(&lowered));
    }
}
