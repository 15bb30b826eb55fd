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
//! Bounds keep lies and noise from making anything absurd of it (`relative`).
//!
//! **Parameter servers.** With `w` workers and `p` servers an iteration takes `a / w + b + c w / p + d w + e p`: shared
//! compute, what each does by itself, what servers receive, and what it takes to keep workers and servers together. Of
//! both, one alone changes its number, `n`; so what is left is `1 / n`, a constant and `n`, and `t(n) = a (d(n) + b v(n) +
//! g u(n))` with `u(n) = n / least - 1`, which grows without an end: from some size on more members are slower. `g` is not
//! less than nothing, and is looked for where three sizes were seen: two tell a serial part alone.

mod squares;
#[cfg(test)]
mod tests;

use super::{Scaling, Speed};
use crate::model::job::{JobSpec, RoleKind};
use crate::model::units::{Duration, Iterations, Share};
use crate::observe::scaling::measured::{AtSize, Measured};
use squares::Squares;

/// That what was declared needs no bend counts as much as if the size that a bend matters most to had been seen so, for so
/// many seconds.
const DECLARED: f64 = 3.0;

/// So many sizes tell what is lost by a crowd around servers.
const TELL_A_CROWD: usize = 3;

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
    bends: Bends,
    error: Share,
}

/// By how much it differs from what was declared, in parts of the time with the least members.
#[derive(Clone, Copy, Debug, Default)]
struct Bends {
    /// What does not become less with more members.
    serial: f64,
    /// What becomes more with every member, beside servers.
    crowd: f64,
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
        let straight = Self { spec, level: 1.0, bends: Bends::default(), error: Share::NONE };
        let straight = Self { level: straight.level_for(&points), ..straight };
        let bent = Self { bends: straight.bends_for(&points), ..straight };
        let fit = Self { level: bent.level_for(&points), ..bent };
        let is_sane = fit.level.is_finite() && fit.level > 0.0;
        is_sane.then(|| Self { error: fit.error_at(&points), ..fit })
    }

    /// What was declared for these sizes, as it is in fact: where more members were to be no slower they are not, unless
    /// they crowd around servers.
    pub fn over(&self, declared: &[(u32, Speed)]) -> Vec<(u32, Speed)> {
        let may_fall = has_servers(self.spec);
        let mut before = (Speed(0), Speed(0));
        let fitted = |(members, speed): &(u32, Speed)| {
            let fitted = self.speed_where_declared(*members, *speed);
            let fitted = if *speed >= before.0 && !may_fall { fitted.max(before.1) } else { fitted };
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

    /// The time of an iteration in parts of that with the least members. Nobody is faster than in proportion to its members,
    /// unless that was declared. Nobody is slower than with the least or very much slower than was declared, either; beside
    /// servers, where more may be slower, not very much slower than with the least.
    fn relative(&self, members: u32, declared: f64) -> f64 {
        let in_proportion = in_proportion(self.spec, members);
        let Bends { serial, crowd } = self.bends;
        let bent = declared + serial * (1.0 - in_proportion) + crowd * crowding(in_proportion);
        let slowest = if has_servers(self.spec) { MOST_TIMES } else { 1.0_f64.min(declared * MOST_TIMES) };
        bent.clamp(declared.min(in_proportion), declared.max(slowest))
    }

    fn level_for(&self, points: &[Point]) -> f64 {
        let part = |point: &Point| self.relative(point.members, point.declared) / point.took;
        let once: f64 = points.iter().map(|point| point.weight * part(point)).sum();
        let twice: f64 = points.iter().map(|point| point.weight * part(point) * part(point)).sum();
        once / twice
    }

    /// What would explain the points, where this is the fit without a bend.
    fn bends_for(&self, points: &[Point]) -> Bends {
        let looks = points.iter().map(|point| self.look(point));
        let may_crowd = has_servers(self.spec) && points.len() >= TELL_A_CROWD;
        let crowded = may_crowd.then(|| crowded(looks.clone())).flatten();
        crowded.or_else(|| bent(looks)).unwrap_or_default()
    }

    fn look(&self, point: &Point) -> Look {
        let (in_proportion, part) = (in_proportion(self.spec, point.members), self.level / point.took);
        Look {
            weight: point.weight,
            declared: point.declared * part,
            serial: (1.0 - in_proportion) * part,
            crowd: crowding(in_proportion) * part,
        }
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

/// What each term is of the time that was measured at one size.
#[derive(Clone, Copy, Debug)]
struct Look {
    weight: f64,
    declared: f64,
    serial: f64,
    crowd: f64,
}

/// Least squares of `1 - a d / t - a b v / t`.
fn bent(looks: impl Iterator<Item = Look> + Clone) -> Option<Bends> {
    let mut squares = Squares::of(looks.clone().map(|look| (look.weight, [look.declared, look.serial])));
    squares.lean(1, DECLARED * most(looks.map(|look| look.serial)));
    let [scale, serial] = squares.solve()?;
    Some(Bends { serial: bend(scale, serial), crowd: 0.0 })
}

/// The same with `a g u / t`; nothing where that would make it faster.
fn crowded(looks: impl Iterator<Item = Look> + Clone) -> Option<Bends> {
    let terms = |look: Look| (look.weight, [look.declared, look.serial, look.crowd]);
    let mut squares = Squares::of(looks.clone().map(terms));
    squares.lean(1, DECLARED * most(looks.clone().map(|look| look.serial)));
    squares.lean(2, DECLARED * most(looks.map(|look| look.crowd)));
    let [scale, serial, crowd] = squares.solve()?;
    let bends = Bends { serial: bend(scale, serial), crowd: bend(scale, crowd) };
    (bends.crowd > 0.0).then_some(bends)
}

/// The square of the largest.
fn most(terms: impl Iterator<Item = f64>) -> f64 {
    terms.map(|term| term * term).fold(0.0, f64::max)
}

/// In parts of what was declared.
fn bend(scale: f64, bent: f64) -> f64 {
    let bend = if scale > 0.0 { bent / scale } else { bent.signum() };
    if bend.is_finite() { bend.clamp(-1.0, 1.0) } else { 0.0 }
}

/// How many there are beyond the least, in parts of these.
fn crowding(in_proportion: f64) -> f64 {
    1.0 / in_proportion - 1.0
}

/// Whether workers exchange by way of servers.
fn has_servers(spec: &JobSpec) -> bool {
    let is_server = |kind: RoleKind| kind == RoleKind::Ps;
    spec.roles.iter().any(|role| is_server(role.kind)) && spec.roles.iter().any(|role| !is_server(role.kind))
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
