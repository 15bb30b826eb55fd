//! Scaling curve of a job, fitted to its declaration and its measurements.
//!
//! **Problem.** The declaration says that an iteration with `n` members takes `d(n)`, relative to the smallest size.
//! At some sizes the iteration time was measured, for different times and with noise. How long does an iteration take
//! at every size?
//!
//! **Solution.** `t(n) = a (d(n) + b v(n))` with `v(n) = 1 - smallest_size / n`, which rises from zero towards one: `a`
//! scales the declaration, `b` bends it. Whatever serial part was declared, all `t(n) = s + p / n` have this form,
//! and declared tables keep their shape. Weighted least squares of relative errors give `a` and `b`; the weight of a
//! size is the time for which it was measured, and a small weight on `b = 0` (ridge regression) regularises the fit:
//! one measured size scales and does not bend, and two that lie close together hardly bend. Bounds protect against
//! wrong reports and noise (`relative`).
//!
//! **Parameter servers.** With `w` workers and `p` servers an iteration takes `a / w + b + c w / p + d w + e p`:
//! shared compute, fixed cost, traffic received by servers, and coordination of workers and of servers. Only one of
//! the two roles is elastic, `n`; the remaining terms are `1 / n`, a constant and `n`, so `t(n) = a (d(n) + b v(n) +
//! g u(n))` with `u(n) = n / least - 1`, which grows without bound: from some size on, more members are slower. `g`
//! is not negative, and is fitted where at least three sizes were measured, because two determine a serial part only.

mod least_squares;
#[cfg(test)]
mod tests;

use super::{Scaling, Speed};
use crate::model::job::{JobSpec, RoleKind};
use crate::model::units::{Duration, Iterations, Share};
use crate::observe::scaling::measured::{Measured, SizeMeasurement};
use least_squares::LeastSquares;

/// Parameters of the estimator stay constants: `Job::fit` computes the fit wherever a job is read, without a policy.
///
/// Regularisation: weight of `b = 0`, in seconds of measurement at the size with the largest effect of `b`.
const RIDGE_SECONDS: f64 = 3.0;

/// Measured sizes that are needed to fit the coordination cost of parameter servers.
const MIN_SIZES_FOR_CROWDING: usize = 3;

/// Upper bound of the fitted time relative to the declared time.
const MAX_TIMES_DECLARED: f64 = 8.0;

/// Upper bound of the reported error; a larger error makes a fit useless anyway.
const MAX_ERROR: f64 = 0.5;

/// Fitted scaling of a job.
#[derive(Clone, Copy, Debug)]
pub struct Fit<'a> {
    spec: &'a JobSpec,
    /// Iteration time at the smallest size in seconds.
    seconds_at_smallest: f64,
    coefficients: Coefficients,
    error: Share,
}

/// Deviation from the declaration in parts of the time at the smallest size.
#[derive(Clone, Copy, Debug, Default)]
struct Coefficients {
    /// Cost that does not shrink with more members.
    serial: f64,
    /// Cost that grows with every member beside parameter servers.
    crowd: f64,
}

/// One measured size.
#[derive(Clone, Copy, Debug)]
struct MeasuredSize {
    members: u32,
    declared: f64,
    /// Seconds.
    took: f64,
    weight: f64,
    uncertainty: f64,
}

impl<'a> Fit<'a> {
    /// Fits the measurements; `None` if there are none.
    pub fn of(spec: &'a JobSpec, measured: &Measured) -> Option<Self> {
        let points: Vec<MeasuredSize> = measured.seen().map(|seen| MeasuredSize::of(spec, seen)).collect();
        if points.is_empty() {
            return None;
        }
        let unbent = Self {
            spec,
            seconds_at_smallest: 1.0,
            coefficients: Coefficients::default(),
            error: Share::NONE,
        };
        let unbent = Self { seconds_at_smallest: unbent.fit_level(&points), ..unbent };
        let bent = Self { coefficients: unbent.fit_coefficients(&points), ..unbent };
        let fit = Self { seconds_at_smallest: bent.fit_level(&points), ..bent };
        let is_sane = fit.seconds_at_smallest.is_finite() && fit.seconds_at_smallest > 0.0;
        is_sane.then(|| Self { error: fit.relative_error(&points), ..fit })
    }

    /// Fitted speeds for declared sizes. Where the declaration does not fall, the fitted speed does not fall either,
    /// except with parameter servers.
    pub fn speeds_for(&self, declared: &[(u32, Speed)]) -> Vec<(u32, Speed)> {
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

    /// Fitted speed with `members` members.
    pub fn speed(&self, members: u32) -> Speed {
        let fitted = |sizes: &[(u32, Speed)]| self.speeds_for(sizes).last().map(|(_, speed)| *speed);
        let speed = match &self.spec.scaling {
            Some(scaling) => fitted(scaling.up_to(members)),
            None => fitted(&[(members, declared(self.spec, members))]),
        };
        speed.unwrap_or(Speed::PLAIN)
    }

    /// Time for `iterations` at the smallest size.
    pub fn work(&self, iterations: Iterations) -> Duration {
        Duration((iterations.0 as f64 * self.seconds_at_smallest * Duration::SECOND.0 as f64).round() as u64)
    }

    /// Relative error: residuals of the fit and variation of the measurements.
    pub fn error(&self) -> Share {
        self.error
    }

    /// Times for a thousand iterations at the smallest and at the largest size.
    pub(crate) fn thousand_iterations(&self) -> (Duration, Duration) {
        let largest =
            self.spec.roles.iter().filter(|role| role.gang.is_elastic()).map(|role| role.gang.max());
        let slowest = self.work(Iterations(1000));
        let fastest = u128::from(slowest.0) * u128::from(Speed::PLAIN.0);
        let fastest = fastest / u128::from(self.speed(largest.sum()).0.max(1));
        (slowest, Duration(u64::try_from(fastest).unwrap_or(u64::MAX)))
    }

    fn speed_where_declared(&self, members: u32, declared: Speed) -> Speed {
        let thousand_iterations = self.relative(members, 1.0 / as_factor(declared));
        Speed((Speed::PLAIN.0 as f64 / thousand_iterations).round() as u64)
    }

    /// Iteration time relative to the smallest size. Bounds: not faster than proportional to members unless declared
    /// so; not slower than the smallest size, nor than [`MAX_TIMES_DECLARED`] times the declared time; with parameter
    /// servers, where more members may be slower, not slower than that multiple of the smallest size.
    fn relative(&self, members: u32, declared: f64) -> f64 {
        let proportional_time = proportional_time(self.spec, members);
        let Coefficients { serial, crowd } = self.coefficients;
        let bent = declared + serial * (1.0 - proportional_time) + crowd * excess_members(proportional_time);
        let slowest = if has_servers(self.spec) {
            MAX_TIMES_DECLARED
        } else {
            1.0_f64.min(declared * MAX_TIMES_DECLARED)
        };
        bent.clamp(declared.min(proportional_time), declared.max(slowest))
    }

    fn fit_level(&self, points: &[MeasuredSize]) -> f64 {
        let part = |point: &MeasuredSize| self.relative(point.members, point.declared) / point.took;
        let once: f64 = points.iter().map(|point| point.weight * part(point)).sum();
        let twice: f64 = points.iter().map(|point| point.weight * part(point) * part(point)).sum();
        once / twice
    }

    /// Coefficients that explain the points, where `self` is the fit without them.
    fn fit_coefficients(&self, points: &[MeasuredSize]) -> Coefficients {
        let terms = points.iter().map(|point| self.regression_terms(point));
        let may_crowd = has_servers(self.spec) && points.len() >= MIN_SIZES_FOR_CROWDING;
        let crowded = may_crowd.then(|| fit_crowding(terms.clone())).flatten();
        crowded.or_else(|| fit_serial(terms)).unwrap_or_default()
    }

    fn regression_terms(&self, point: &MeasuredSize) -> RegressionTerms {
        let (proportional_time, part) =
            (proportional_time(self.spec, point.members), self.seconds_at_smallest / point.took);
        RegressionTerms {
            weight: point.weight,
            declared: point.declared * part,
            serial: (1.0 - proportional_time) * part,
            crowd: excess_members(proportional_time) * part,
        }
    }

    fn relative_error(&self, points: &[MeasuredSize]) -> Share {
        let all: f64 = points.iter().map(|point| point.weight).sum();
        let off = |point: &MeasuredSize| {
            let left =
                1.0 - self.seconds_at_smallest * self.relative(point.members, point.declared) / point.took;
            point.weight * (left * left + point.uncertainty * point.uncertainty)
        };
        let mean = points.iter().map(off).sum::<f64>() / all;
        Share((mean.sqrt().min(MAX_ERROR) * f64::from(Share::WHOLE.0)).round() as u32)
    }
}

impl MeasuredSize {
    fn of(spec: &JobSpec, seen: &SizeMeasurement) -> Self {
        Self {
            members: seen.members,
            declared: 1.0 / as_factor(declared(spec, seen.members)),
            took: seen.time.as_secs_f64() / seen.iterations.0 as f64,
            weight: seen.time.as_secs_f64(),
            uncertainty: seen.uncertainty(),
        }
    }
}

/// Regression terms of one measured size, relative to the measured time.
#[derive(Clone, Copy, Debug)]
struct RegressionTerms {
    weight: f64,
    declared: f64,
    serial: f64,
    crowd: f64,
}

/// Least squares of `1 - a d / t - a b v / t`.
fn fit_serial(sizes: impl Iterator<Item = RegressionTerms> + Clone) -> Option<Coefficients> {
    let mut least_squares =
        LeastSquares::of(sizes.clone().map(|terms| (terms.weight, [terms.declared, terms.serial])));
    least_squares.penalise(1, RIDGE_SECONDS * largest_square(sizes.map(|terms| terms.serial)));
    let [scale, serial] = least_squares.solve()?;
    Some(Coefficients { serial: normalise(scale, serial), crowd: 0.0 })
}

/// The same with the term `a g u / t`; `None` if `g` would be negative.
fn fit_crowding(sizes: impl Iterator<Item = RegressionTerms> + Clone) -> Option<Coefficients> {
    let terms = |terms: RegressionTerms| (terms.weight, [terms.declared, terms.serial, terms.crowd]);
    let mut least_squares = LeastSquares::of(sizes.clone().map(terms));
    least_squares.penalise(1, RIDGE_SECONDS * largest_square(sizes.clone().map(|terms| terms.serial)));
    least_squares.penalise(2, RIDGE_SECONDS * largest_square(sizes.map(|terms| terms.crowd)));
    let [scale, serial, crowd] = least_squares.solve()?;
    let coefficients = Coefficients { serial: normalise(scale, serial), crowd: normalise(scale, crowd) };
    (coefficients.crowd > 0.0).then_some(coefficients)
}

/// Largest squared term.
fn largest_square(terms: impl Iterator<Item = f64>) -> f64 {
    terms.map(|term| term * term).fold(0.0, f64::max)
}

/// Coefficient in parts of the scale, limited to [-1, 1].
fn normalise(scale: f64, coefficient: f64) -> f64 {
    let normalised = if scale > 0.0 { coefficient / scale } else { coefficient.signum() };
    if normalised.is_finite() { normalised.clamp(-1.0, 1.0) } else { 0.0 }
}

/// Members beyond the smallest size, in parts of the smallest size.
fn excess_members(proportional_time: f64) -> f64 {
    1.0 / proportional_time - 1.0
}

/// Whether workers exchange gradients through parameter servers.
fn has_servers(spec: &JobSpec) -> bool {
    let is_server = |kind: RoleKind| kind == RoleKind::Ps;
    spec.roles.iter().any(|role| is_server(role.kind)) && spec.roles.iter().any(|role| !is_server(role.kind))
}

/// Iteration time proportional to the inverse number of members, relative to the smallest size.
fn proportional_time(spec: &JobSpec, members: u32) -> f64 {
    f64::from(smallest_size(spec)) / f64::from(members.max(1))
}

/// Speed as a multiple of the speed at the smallest size.
fn as_factor(speed: Speed) -> f64 {
    speed.0.max(1) as f64 / Speed::PLAIN.0 as f64
}

/// Smallest number of elastic members.
fn smallest_size(spec: &JobSpec) -> u32 {
    let elastic = spec.roles.iter().filter(|role| role.gang.is_elastic());
    elastic.map(|role| role.gang.min()).sum::<u32>().max(1)
}

/// Declared speed; proportional to members without a declaration.
fn declared(spec: &JobSpec, members: u32) -> Speed {
    let proportional_time =
        || Speed(Speed::PLAIN.0 * u64::from(members.max(1)) / u64::from(smallest_size(spec)));
    spec.scaling.as_deref().map_or_else(proportional_time, |scaling: &Scaling| scaling.speed(members))
}
