//! All iterations laid over each other, and the phases in what comes out.
//!
//! A sample says exactly how many bytes of its iteration were sent so far at its place in the iteration. The samples of a
//! hundred iterations make one rising curve, with far more points than samples in an iteration, and nothing is smeared
//! over the step between two of them. Where the curve is steep, the job sends.

use metronome_core::model::profile::{Phase, Traffic};
use metronome_core::model::units::{Bandwidth, Duration};

use super::iterations::Course;
use super::series::Run;
use super::span;
use super::volume::Volume;

/// What is sent over a period in equal parts of it, over its mean.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) slopes: Vec<f64>,
}

/// Into so many parts a period is divided, if there are enough samples for so many.
const MOST_PARTS: usize = 128;
const LEAST_PARTS: usize = 32;
const SAMPLES_OF_A_PART: usize = 12;

/// An iteration has at most so many times the usual bytes.
const MOST_AGAIN: f64 = 1.5;

/// A job may send where it sends at least this part of its usual rate, and does at this part of what is usual there: a
/// small burst that comes now earlier, now later is low and wide.
const MAY_SEND: f64 = 0.08;
const SENDS: f64 = 0.3;

/// A pause shorter than this part of the period is none, and what sends less than this part of the bytes is no phase.
const LEAST_PAUSE: f64 = 0.03;
const LEAST_BYTES: f64 = 0.02;

pub(super) fn fold(run: &Run, volume: &Volume, course: &Course) -> Shape {
    let mut points = places(run, volume, course);
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let parts = (points.len() / SAMPLES_OF_A_PART).clamp(LEAST_PARTS, MOST_PARTS);
    let curve = rising(&means(&points, parts));
    let at = |part: usize| value(&curve, part as f64 / parts as f64);
    let slopes = (0..parts).map(|part| (at(part + 1) - at(part)) * parts as f64).collect();
    Shape { slopes }
}

/// For each sample in a whole iteration: how much of the time and how much of the bytes of that had passed.
fn places(run: &Run, volume: &Volume, course: &Course) -> Vec<(f64, f64)> {
    let mut found = Vec::with_capacity(run.samples.len());
    let mut samples = run.samples.iter().peekable();
    for pair in course.began.windows(2) {
        let (this, next) = (pair[0], pair[1]);
        while samples.next_if(|sample| sample.at < this.at).is_some() {}
        // What was lost and sent again makes an iteration larger.
        let own = match run.has_few_steps(course.period) {
            true => volume.bytes,
            false => (next.bytes - this.bytes).clamp(volume.bytes / MOST_AGAIN, volume.bytes * MOST_AGAIN),
        };
        while let Some(sample) = samples.next_if(|sample| sample.at < next.at) {
            if this.is_whole {
                let time = (sample.at - this.at) / (next.at - this.at);
                found.push((time, (sample.bytes - this.bytes) / own));
            }
        }
    }
    found
}

/// Neighbours in equal numbers become one point of the curve.
fn means(points: &[(f64, f64)], parts: usize) -> Vec<(f64, f64)> {
    let each = points.len().div_ceil(parts).max(1);
    points
        .chunks(each)
        .map(|chunk| {
            let sum = chunk.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            (sum.0 / chunk.len() as f64, sum.1 / chunk.len() as f64)
        })
        .collect()
}

/// The curve that rises everywhere and is nearest to the points: neighbours that fall are averaged.
fn rising(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (_, bytes) in points {
        let mut block = (bytes.clamp(0.0, 1.0), 1);
        while let Some(last) = blocks.last().copied().filter(|last| last.0 > block.0) {
            let count = last.1 + block.1;
            block = ((last.0 * last.1 as f64 + block.0 * block.1 as f64) / count as f64, count);
            blocks.pop();
        }
        blocks.push(block);
    }
    let levels = blocks.into_iter().flat_map(|(level, count)| std::iter::repeat_n(level, count));
    points.iter().map(|point| point.0).zip(levels).collect()
}

/// The curve at a moment. It goes on before and after in the same way, a whole iteration lower or higher.
fn value(curve: &[(f64, f64)], at: f64) -> f64 {
    let Some((first, last)) = curve.first().zip(curve.last()) else { return at };
    let after = curve.partition_point(|point| point.0 <= at);
    let left = if after == 0 { (last.0 - 1.0, last.1 - 1.0) } else { curve[after - 1] };
    let right = if after == curve.len() { (first.0 + 1.0, first.1 + 1.0) } else { curve[after] };
    let part = if right.0 > left.0 { (at - left.0) / (right.0 - left.0) } else { 0.0 };
    left.1 + part * (right.1 - left.1)
}

/// The phases of a shape; none if there is nothing that could be one.
pub(super) fn traffic(shape: &Shape, course: &Course, bytes: f64) -> Option<Traffic> {
    let parts = shape.slopes.len();
    let bursts = bursts(&shape.slopes);
    let sent: f64 = bursts.iter().map(|burst| burst.bytes).sum();
    let period = span(course.period);
    let moment = |part: usize| (part as f64 / parts as f64 * period.0 as f64).round() as u64;
    let phase = |burst: &Burst| {
        let offset = moment(burst.from);
        let length = moment(burst.from + burst.length) - offset;
        let bits = bytes * 8e9 * burst.bytes / sent;
        Phase {
            offset: Duration(offset),
            length: Duration(length),
            rate: Bandwidth((bits / length as f64).round().max(1.0) as u64),
        }
    };
    Traffic::new(period, bursts.iter().map(phase).collect())
        .ok()
        .filter(|traffic| !traffic.phases().is_empty())
}

/// Neighbouring parts in which a job sends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Burst {
    from: usize,
    length: usize,
    /// Over those of the iteration.
    bytes: f64,
}

fn bursts(slopes: &[f64]) -> Vec<Burst> {
    let parts = slopes.len();
    let usual = usual(slopes.iter());
    let slope = |at: usize| slopes[at % parts];
    // A period that begins within a burst is looked at from a pause on.
    let Some(pause) = slopes.iter().position(|slope| *slope < MAY_SEND * usual) else {
        return vec![Burst { from: 0, length: parts, bytes: 1.0 }];
    };
    let around = pause..pause + parts;
    let main = runs(around.clone(), slopes, |at| slope(at) >= SENDS * usual);
    let mut found = joined(main, slopes, (LEAST_PAUSE * parts as f64) as usize);
    found.retain(|burst| burst.bytes >= LEAST_BYTES);
    let is_main = |at: usize| found.iter().any(|burst| (burst.from..burst.from + burst.length).contains(&at));
    let rest = runs(around, slopes, |at| slope(at) >= MAY_SEND * usual && !is_main(at));
    let small =
        rest.into_iter().filter(|burst| burst.bytes >= LEAST_BYTES).map(|burst| trimmed(burst, slopes));
    let small: Vec<Burst> = small.collect();
    found.extend(small);
    found.sort_by_key(|burst| burst.from);
    let mut pause = 0;
    while found.len() > Traffic::MOST_PHASES {
        found = joined(found, slopes, pause);
        pause += 1;
    }
    for burst in &mut found {
        burst.from %= parts;
    }
    found.sort_by_key(|burst| burst.from);
    found
}

/// Neighbouring parts of which something holds.
fn runs(parts: std::ops::Range<usize>, slopes: &[f64], holds: impl Fn(usize) -> bool) -> Vec<Burst> {
    let all: f64 = slopes.iter().sum();
    let mut found: Vec<Burst> = Vec::new();
    for at in parts.filter(|at| holds(*at)) {
        let bytes = slopes[at % slopes.len()] / all;
        match found.last_mut() {
            Some(last) if last.from + last.length == at => {
                last.length += 1;
                last.bytes += bytes;
            }
            _ => found.push(Burst { from: at, length: 1, bytes }),
        }
    }
    found
}

/// The rate at which the mean byte is sent.
fn usual<'a>(slopes: impl Iterator<Item = &'a f64> + Clone) -> f64 {
    slopes.clone().map(|slope| slope * slope).sum::<f64>() / slopes.sum::<f64>()
}

/// A burst from where it is about as fast as is usual in it to where it no longer is. What little it sends before and
/// after is its own.
fn trimmed(burst: Burst, slopes: &[f64]) -> Burst {
    let slope = |at: usize| &slopes[at % slopes.len()];
    let parts = burst.from..burst.from + burst.length;
    let usual = usual(parts.clone().map(slope));
    let mut fast = parts.filter(|at| *slope(*at) >= SENDS * usual);
    let first = fast.next().unwrap_or(burst.from);
    let last = fast.next_back().unwrap_or(first);
    Burst { from: first, length: last + 1 - first, bytes: burst.bytes }
}

/// Bursts with hardly a pause between them are one.
fn joined(bursts: Vec<Burst>, slopes: &[f64], pause: usize) -> Vec<Burst> {
    let all: f64 = slopes.iter().sum();
    let mut found: Vec<Burst> = Vec::new();
    for burst in bursts {
        match found.last_mut() {
            Some(last) if burst.from - (last.from + last.length) <= pause => {
                let between = last.from + last.length..burst.from;
                let bytes: f64 = between.map(|at| slopes[at % slopes.len()] / all).sum();
                last.length = burst.from + burst.length - last.from;
                last.bytes += bytes + burst.bytes;
            }
            _ => found.push(burst),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_that_goes_on_beyond_the_period_is_one() {
        let mut slopes = [0.0; 64];
        for at in [60, 61, 62, 63, 0, 1, 2, 3, 30, 31, 33, 34] {
            slopes[at] = 1.0;
        }
        let found: Vec<(usize, usize)> =
            bursts(&slopes).iter().map(|burst| (burst.from, burst.length)).collect();
        assert_eq!(found, [(30, 5), (60, 8)]);
    }

    #[test]
    fn a_curve_rises_wherever_points_fall() {
        let points = [(0.0, 0.0), (0.2, 0.4), (0.4, 0.2), (0.6, 0.9)];
        let levels: Vec<f64> = rising(&points).iter().map(|point| point.1).collect();
        assert!((levels[1] - 0.3).abs() < 1e-12 && levels[1] == levels[2], "{levels:?}");
        assert!((value(&points, 0.1) - 0.2).abs() < 1e-12);
        assert!((value(&points, 1.0) - value(&points, 0.0) - 1.0).abs() < 1e-12);
    }
}
