//! How a job scales, by what was declared and what was measured.
//!
//! The problem. A job was declared to take the time `d(n)` for an iteration with `n` members, in parts of that with the
//! least. At some sizes the time of an iteration was measured, for longer or shorter and with noise. How long does it take
//! at every size?
//!
//! The answer is `t(n) = a (d(n) + b v(n))`, where `v(n) = 1 - least / n` grows from nothing towards one: `a` scales what was
//! declared, `b` bends it. Whatever serial part was declared, all `t(n) = s + p / n` are among these, and tables keep
//! their shape. Both are fitted by least squares of relative errors, each size counted for as long as it was seen, with a
//! little weight on `b = 0`: so one size scales and does not bend, and two that lie close together hardly bend.
//! Bounds keep lies and noise from making anything absurd of it (`within_reason`).
//!
//! Of a job with parameter servers only its workers are looked at.

use super::{Scaling, Speed};
use crate::job::JobSpec;
use crate::scaling::measured::{AtSize, Measured};
use crate::units::{Duration, Iterations, Share};

/// That what was declared needs no bend counts as much as if the size that a bend matters most to had been seen so, for so
/// many seconds.
const DECLARED: f64 = 3.0;

/// Nothing is believed to take more than so many times as long as was declared.
const MOST_TIMES: f64 = 8.0;

/// A fit is not believed to be worse than this; then it is of no use anyway.
const WORST: f64 = 0.5;

/// What is known of how a job scales.
#[derive(Clone, Copy, Debug)]
pub struct Fit<'a> {
    spec: &'a JobSpec,
    /// The time of an iteration with the least members, in seconds.
    level: f64,
    bend: f64,
    error: Share,
}

/// One size that was seen.
#[derive(Clone, Copy, Debug)]
struct Point {
    members: u32,
    declared: f64,
    /// In seconds.
    took: f64,
    weight: f64,
    uncertainty: f64,
}

impl<'a> Fit<'a> {
    /// Nothing where nothing was measured.
    pub fn of(spec: &'a JobSpec, measured: &Measured) -> Option<Self> {
        let points: Vec<Point> = measured.seen().map(|seen| Point::of(spec, seen)).collect();
        if points.is_empty() {
            return None;
        }
        let straight = Self { spec, level: 1.0, bend: 0.0, error: Share::NONE };
        let straight = Self { level: straight.level_for(&points), ..straight };
        let bent = Self { bend: straight.bend_for(&points), ..straight };
        let fit = Self { level: bent.level_for(&points), ..bent };
        let is_sane = fit.level.is_finite() && fit.level > 0.0;
        is_sane.then(|| Self { error: fit.error_at(&points), ..fit })
    }

    /// What was declared for these sizes, as it is in fact: where more members were to be no slower they are not.
    pub fn over(&self, declared: &[(u32, Speed)]) -> Vec<(u32, Speed)> {
        let mut before = (Speed(0), Speed(0));
        let fitted = |(members, speed): &(u32, Speed)| {
            let fitted = self.speed_where_declared(*members, *speed);
            let fitted = if *speed >= before.0 { fitted.max(before.1) } else { fitted };
            before = (*speed, fitted);
            (*members, fitted)
        };
        declared.iter().map(fitted).collect()
    }

    /// How fast it is with so many members.
    pub fn speed(&self, members: u32) -> Speed {
        let fitted = |sizes: &[(u32, Speed)]| self.over(sizes).last().map(|(_, speed)| *speed);
        let speed = match &self.spec.scaling {
            Some(scaling) => fitted(scaling.up_to(members)),
            None => fitted(&[(members, declared(self.spec, members))]),
        };
        speed.unwrap_or(Speed::PLAIN)
    }

    /// How long so many iterations take with the least members.
    pub fn work(&self, iterations: Iterations) -> Duration {
        Duration((iterations.0 as f64 * self.level * Duration::SECOND.0 as f64).round() as u64)
    }

    /// By what part it may be wrong: what it leaves over of what was measured, and how much that varied.
    pub fn error(&self) -> Share {
        self.error
    }

    /// How long a thousand iterations take with the fewest and with the most members it may have.
    pub(crate) fn takes(&self) -> (Duration, Duration) {
        let most = self.spec.roles.iter().filter(|role| role.gang.is_elastic()).map(|role| role.gang.max());
        let slowest = self.work(Iterations(1000));
        let fastest = u128::from(slowest.0) * u128::from(Speed::PLAIN.0);
        let fastest = fastest / u128::from(self.speed(most.sum()).0.max(1));
        (slowest, Duration(u64::try_from(fastest).unwrap_or(u64::MAX)))
    }

    fn speed_where_declared(&self, members: u32, declared: Speed) -> Speed {
        let takes = self.relative(members, 1.0 / times(declared));
        Speed((Speed::PLAIN.0 as f64 / takes).round() as u64)
    }

    /// The time of an iteration in parts of that with the least members.
    fn relative(&self, members: u32, declared: f64) -> f64 {
        let in_proportion = in_proportion(self.spec, members);
        let bent = declared + self.bend * (1.0 - in_proportion);
        within_reason(bent, declared, in_proportion)
    }

    fn level_for(&self, points: &[Point]) -> f64 {
        let part = |point: &Point| self.relative(point.members, point.declared) / point.took;
        let once: f64 = points.iter().map(|point| point.weight * part(point)).sum();
        let twice: f64 = points.iter().map(|point| point.weight * part(point) * part(point)).sum();
        once / twice
    }

    /// Least squares of `1 - a d / t - a b v / t`, where this is the fit without a bend.
    fn bend_for(&self, points: &[Point]) -> f64 {
        let matters =
            |point: &Point| (1.0 - in_proportion(self.spec, point.members)) * self.level / point.took;
        let most = points.iter().map(matters).fold(0.0, f64::max);
        let (mut dd, mut dv, mut vv, mut d, mut v) = (0.0, 0.0, DECLARED * most * most, 0.0, 0.0);
        for point in points {
            let (straight, bent) = (point.declared * self.level / point.took, matters(point));
            dd += point.weight * straight * straight;
            dv += point.weight * straight * bent;
            vv += point.weight * bent * bent;
            d += point.weight * straight;
            v += point.weight * bent;
        }
        let whole = dd * vv - dv * dv;
        let (scale, bent) = ((d * vv - v * dv) / whole, (dd * v - dv * d) / whole);
        let bend = if scale > 0.0 { bent / scale } else { bent.signum() };
        if bend.is_finite() { bend.clamp(-1.0, 1.0) } else { 0.0 }
    }

    fn error_at(&self, points: &[Point]) -> Share {
        let all: f64 = points.iter().map(|point| point.weight).sum();
        let off = |point: &Point| {
            let left = 1.0 - self.level * self.relative(point.members, point.declared) / point.took;
            point.weight * (left * left + point.uncertainty * point.uncertainty)
        };
        let mean = points.iter().map(off).sum::<f64>() / all;
        Share((mean.sqrt().min(WORST) * f64::from(Share::WHOLE.0)).round() as u32)
    }
}

impl Point {
    fn of(spec: &JobSpec, seen: &AtSize) -> Self {
        Self {
            members: seen.members,
            declared: 1.0 / times(declared(spec, seen.members)),
            took: seen.time.as_secs_f64() / seen.iterations.0 as f64,
            weight: seen.time.as_secs_f64(),
            uncertainty: seen.uncertainty(),
        }
    }
}

/// Nobody is faster than in proportion to its members, or slower than with the least, unless that was declared; and
/// nobody is very much slower than was declared.
fn within_reason(takes: f64, declared: f64, in_proportion: f64) -> f64 {
    let (best, worst) = (declared.min(in_proportion), declared.max(1.0_f64.min(declared * MOST_TIMES)));
    takes.clamp(best, worst)
}

/// The time in proportion to members, in parts of that with the least.
fn in_proportion(spec: &JobSpec, members: u32) -> f64 {
    f64::from(least(spec)) / f64::from(members.max(1))
}

fn times(speed: Speed) -> f64 {
    speed.0.max(1) as f64 / Speed::PLAIN.0 as f64
}

fn least(spec: &JobSpec) -> u32 {
    let elastic = spec.roles.iter().filter(|role| role.gang.is_elastic());
    elastic.map(|role| role.gang.min()).sum::<u32>().max(1)
}

fn declared(spec: &JobSpec, members: u32) -> Speed {
    let in_proportion = || Speed(Speed::PLAIN.0 * u64::from(members.max(1)) / u64::from(least(spec)));
    spec.scaling.as_deref().map_or_else(in_proportion, |scaling: &Scaling| scaling.speed(members))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::job::Gang;
    use crate::units::Resources;

    /// A job of one to 32 members that was declared to have such a serial part.
    fn declared_with(serial: u32) -> JobSpec {
        let mut spec = JobSpec::workers("job", Gang::elastic(1, 32).unwrap(), Resources::NONE);
        spec.scaling = Some(Arc::new(Scaling::with_serial_part(1..=32, Share(serial))));
        spec
    }

    /// Sizes at which it was seen for so many seconds, though its serial part is this; each look off by so many hundredths,
    /// by turns more and less.
    fn seen(serial: f64, sizes: &[(u32, u64)], noise: f64) -> Measured {
        let mut measured = Measured::default();
        for (members, seconds) in sizes {
            let each = serial + (1.0 - serial) / f64::from(*members);
            for (look, time) in (0..*seconds).step_by(10).enumerate() {
                let off = if (look + time as usize / 10) % 4 < 2 { 1.0 + noise } else { 1.0 - noise };
                let done = (10.0 / each * 1000.0 * off) as u64;
                measured.note(*members, Iterations(done), Duration::from_secs(10));
            }
        }
        measured
    }

    /// By how much its speed is misjudged with so many members, in parts of what it is.
    fn misjudged(spec: &JobSpec, measured: &Measured, serial: f64, members: u32) -> f64 {
        let speed = 1.0 / (serial + (1.0 - serial) / f64::from(members));
        let fit = Fit::of(spec, measured).unwrap();
        (times(fit.speed(members)) - speed).abs() / speed
    }

    #[test]
    fn nothing_measured_fits_nothing() {
        assert!(Fit::of(&declared_with(0), &Measured::default()).is_none());
        let mut still = Measured::default();
        still.note(4, Iterations(0), Duration::HOUR);
        assert!(Fit::of(&declared_with(0), &still).is_none());
    }

    #[test]
    fn one_size_scales_what_was_declared_and_does_not_bend_it() {
        let spec = declared_with(20_000);
        let fit = Fit::of(&spec, &seen(0.3, &[(8, 300)], 0.0)).map(|fit| fit.over(spec_sizes(&spec)));
        assert_eq!(fit.as_deref(), Some(spec_sizes(&spec)));
        let measured = seen(0.3, &[(8, 300)], 0.0);
        let work = Fit::of(&spec, &measured).unwrap().work(Iterations(1000));
        let (took, declared) = (0.3 + 0.7 / 8.0, 0.02 + 0.98 / 8.0);
        assert!((work.as_secs_f64() - took / declared).abs() < 0.001, "{work:?}");
    }

    fn spec_sizes(spec: &JobSpec) -> &[(u32, Speed)] {
        spec.scaling.as_ref().unwrap().sizes()
    }

    #[test]
    fn two_sizes_tell_the_serial_part_whatever_was_declared() {
        for said in [0, 50_000, 300_000] {
            let spec = declared_with(said);
            let measured = seen(0.1, &[(2, 600), (8, 600)], 0.0);
            for members in [1, 4, 16, 32] {
                let off = misjudged(&spec, &measured, 0.1, members);
                assert!(off < 0.04, "{said}: {members} members are off by {off}");
            }
        }
    }

    #[test]
    fn a_job_without_a_table_is_fitted_as_well() {
        let spec = JobSpec { scaling: None, ..declared_with(0) };
        let measured = seen(0.2, &[(1, 300), (4, 300)], 0.0);
        assert!(misjudged(&spec, &measured, 0.2, 16) < 0.05);
    }

    #[test]
    fn noise_is_averaged_and_told() {
        let spec = declared_with(0);
        let measured = seen(0.05, &[(2, 300), (8, 300)], 0.1);
        assert!(misjudged(&spec, &measured, 0.05, 16) < 0.1);
        let exact = Fit::of(&spec, &seen(0.05, &[(2, 300), (8, 300)], 0.0)).unwrap().error();
        let noisy = Fit::of(&spec, &measured).unwrap().error();
        assert!(
            exact < Share(5_000) && noisy > Share(10_000) && noisy < Share(100_000),
            "{exact:?} {noisy:?}"
        );
    }

    #[test]
    fn sizes_close_together_hardly_bend_what_was_declared() {
        let spec = declared_with(0);
        let mut measured = seen(0.0, &[(12, 60)], 0.0);
        measured.note(16, Iterations(130_000), Duration::from_secs(10));
        assert!(misjudged(&spec, &measured, 0.0, 32) < 0.35);
    }

    #[test]
    fn whatever_is_reported_more_members_are_not_slower_nor_faster_than_in_proportion() {
        let spec = declared_with(20_000);
        for (few, many) in [(1, 1_000_000_000_000), (1_000_000_000_000, 1), (1, 1), (u64::MAX, u64::MAX)] {
            let mut measured = Measured::default();
            measured.note(1, Iterations(few), Duration::from_secs(100));
            measured.note(32, Iterations(many), Duration::from_secs(100));
            let fit = Fit::of(&spec, &measured).unwrap();
            let sizes = fit.over(spec_sizes(&spec));
            assert_eq!(sizes[0].1, Speed::PLAIN);
            assert!(sizes.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{sizes:?}");
            assert!(sizes.iter().all(|(members, speed)| times(*speed) <= f64::from(*members) + 1e-6));
            assert!(fit.error() <= Share(500_000));
        }
    }

    #[test]
    fn what_differs_little_is_no_news() {
        let spec = declared_with(0);
        let mut measured = seen(0.0, &[(4, 300)], 0.0);
        let takes = Fit::of(&spec, &measured).unwrap().takes();
        assert!(measured.is_news(takes));
        assert!(!measured.is_news((takes.0 + Duration(takes.0.0 / 50), takes.1)));
        assert!(measured.is_news((takes.0, takes.1.times(2))));
    }
}
