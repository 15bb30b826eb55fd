//! The period, roughly: by how much what is sent looks like itself some time later.

use super::NoProfile;
use super::series::Run;

#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// Nanoseconds.
    pub(super) period: f64,
    /// The autocorrelation there.
    pub(super) likeness: f64,
}

/// A period is seen at least so many times.
const LEAST_PERIODS: usize = 3;

/// Longer runs are looked at in coarser steps.
const MOST_STEPS: usize = 1 << 13;

/// What varies less, over its mean, is constant.
const LEAST_VARIATION: f64 = 0.1;

/// An autocorrelation lower than that, or so little above the lowest before it, is chance.
const LEAST_LIKENESS: f64 = 0.15;
const LEAST_RISE: f64 = 0.2;

/// The first lag that is nearly as good as the best is the period; the others are its multiples.
const NEARLY: f64 = 0.85;

/// A multiple of the period sharpens it while the autocorrelation there is not much lower.
const STILL: f64 = 0.5;

pub(super) fn rhythm(run: &Run) -> Result<Rhythm, NoProfile> {
    let (rates, step) = on_a_grid(run);
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    if mean <= 0.0 {
        return Err(NoProfile::Silent);
    }
    let around: Vec<f64> = rates.iter().map(|rate| rate - mean).collect();
    let power = around.iter().map(|rate| rate * rate).sum::<f64>() / rates.len() as f64;
    if power.sqrt() < LEAST_VARIATION * mean {
        return Err(NoProfile::Constant);
    }
    let likeness = autocorrelation(&around);
    let first = first_peak(&likeness).ok_or(NoProfile::NotPeriodic)?;
    let lag = sharpened(&likeness, first);
    Ok(Rhythm { period: lag * step, likeness: likeness[first] })
}

/// Bytes in equal steps of time. What was sent between two samples is divided evenly.
fn on_a_grid(run: &Run) -> (Vec<f64>, f64) {
    let lasts = run.lasts();
    let wanted = if run.step > 0.0 { (lasts / run.step) as usize } else { 0 };
    let count = wanted.clamp(1, MOST_STEPS);
    let step = lasts / count as f64;
    let mut grid = vec![0.0; count];
    for pair in run.samples.windows(2) {
        let (from, to) = (pair[0].at / step, pair[1].at / step);
        let rate = (pair[1].bytes - pair[0].bytes) / (to - from);
        let mut here = from;
        while here < to {
            let cell = (here as usize).min(count - 1);
            let next = to.min(here.floor() + 1.0);
            grid[cell] += rate * (next - here);
            here = next;
        }
    }
    (grid, step)
}

/// The lag of the period, among those at which the autocorrelation has a peak.
fn first_peak(likeness: &[f64]) -> Option<usize> {
    let last = likeness.len() / LEAST_PERIODS;
    let peaks = || (2..last).filter(|lag| is_peak(likeness, *lag));
    let best = peaks().map(|lag| likeness[lag]).max_by(f64::total_cmp)?;
    let first = peaks().find(|lag| likeness[*lag] >= NEARLY * best)?;
    let lowest = likeness[..first].iter().copied().fold(f64::INFINITY, f64::min);
    let is_clear = likeness[first] >= LEAST_LIKENESS && likeness[first] - lowest >= LEAST_RISE;
    is_clear.then_some(first)
}

fn is_peak(likeness: &[f64], lag: usize) -> bool {
    lag > 0
        && lag + 1 < likeness.len()
        && likeness[lag] >= likeness[lag - 1]
        && likeness[lag] > likeness[lag + 1]
}

/// The peak between steps, by a parabola through it and its neighbours.
fn vertex(likeness: &[f64], lag: usize) -> f64 {
    let [before, here, after] = [likeness[lag - 1], likeness[lag], likeness[lag + 1]];
    let bend = before - 2.0 * here + after;
    let shift = if bend < 0.0 { (before - after) / (2.0 * bend) } else { 0.0 };
    lag as f64 + shift.clamp(-0.5, 0.5)
}

/// Twice, four times, … the period lies at a peak as well; the further, the better it is known.
fn sharpened(likeness: &[f64], first: usize) -> f64 {
    let mut lag = vertex(likeness, first);
    let mut times = 2.0;
    while times * lag < likeness.len() as f64 / 2.0 {
        let reach = (0.2 * lag).max(1.0);
        let near = ((times * lag - reach) as usize).max(1)..=((times * lag + reach).ceil() as usize);
        let peak = near
            .filter(|lag| is_peak(likeness, *lag))
            .max_by(|one, other| likeness[*one].total_cmp(&likeness[*other]));
        match peak {
            Some(peak) if likeness[peak] >= STILL * likeness[first] => lag = vertex(likeness, peak) / times,
            _ => break,
        }
        times *= 2.0;
    }
    lag
}

/// For each lag, over what is there at lag zero: the mean product of values so far apart.
fn autocorrelation(values: &[f64]) -> Vec<f64> {
    let size = (2 * values.len()).next_power_of_two();
    let mut spectrum: Vec<(f64, f64)> = values.iter().map(|value| (*value, 0.0)).collect();
    spectrum.resize(size, (0.0, 0.0));
    transform(&mut spectrum);
    for (real, imaginary) in &mut spectrum {
        (*real, *imaginary) = (*real * *real + *imaginary * *imaginary, 0.0);
    }
    transform(&mut spectrum);
    let zero = spectrum[0].0 / values.len() as f64;
    let unbiased = |lag: usize| spectrum[lag].0 / ((values.len() - lag) as f64 * zero);
    (0..values.len()).map(unbiased).collect()
}

/// The fast Fourier transform of a power of two of complex numbers, in place.
fn transform(values: &mut [(f64, f64)]) {
    let size = values.len();
    let bits = size.trailing_zeros();
    for at in 0..size {
        let mirrored = at.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
        if mirrored > at {
            values.swap(at, mirrored);
        }
    }
    let mut half = 1;
    while half < size {
        let angle = -std::f64::consts::PI / half as f64;
        let turns: Vec<(f64, f64)> = (0..half).map(|at| (angle * at as f64).sin_cos()).collect();
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((one, other), (sin, cos)) in low.iter_mut().zip(high).zip(&turns) {
                let turned = (other.0 * cos - other.1 * sin, other.0 * sin + other.1 * cos);
                *other = (one.0 - turned.0, one.1 - turned.1);
                *one = (one.0 + turned.0, one.1 + turned.1);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_autocorrelation_is_what_its_definition_says() {
        let values: Vec<f64> = (0..37).map(|at| f64::from((at * at) % 11) - 5.0).collect();
        let power = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
        for (lag, found) in autocorrelation(&values).into_iter().enumerate() {
            let pairs = values.iter().zip(&values[lag..]);
            let mean = pairs.map(|(one, other)| one * other).sum::<f64>() / (values.len() - lag) as f64;
            assert!((found - mean / power).abs() < 1e-9, "lag {lag}: {found}");
        }
    }
}
