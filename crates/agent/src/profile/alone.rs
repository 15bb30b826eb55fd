//! The iteration time that a job would have with its links to itself, from iterations in which it shared them.
//!
//! **Problem.** Contention stretches the time in which a job sends. Whether that makes an iteration longer depends on what the
//! job does meanwhile: a burst at the end of the compute does, a bucket that is sent while the backward pass goes on does not
//! until it is late for the next one.
//!
//! **Two estimates.**
//! - Where all bytes of an iteration come in one stretch without a pause, the iteration alone is shorter by what the stretch takes
//!   longer than its bytes do at the full rate of the link. That holds also for jobs that never had the link to themselves.
//! - Where there are pauses within a burst, the time lost in it is no measure. But iterations meet others by different amounts,
//!   and the shortest tenth of them hardly meets any. So their length is that of an iteration alone; it is never shorter.
//!
//! The first is never too long, the second never too short: together they bound what is not known. A job that is delayed in every
//! iteration until it has no pauses left looks like one that sends in one stretch; then the truth lies between both.

use super::iterations::Course;
use super::series::{Point, Run};

/// An iteration that was seen from beginning to end. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lap {
    lasts: f64,
    /// How long the job sent nothing at its end.
    pause: f64,
    /// The last part of the burst that has no pause in it: its length, and its bytes.
    stretch: f64,
    bytes: f64,
}

/// An iteration without others on the job's links, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    pub period: f64,
    /// The period is at least so long: it would be if all that was lost to others had made iterations longer.
    pub at_least: f64,
    /// The period is at most so long: it would be if no iteration had been without loss.
    pub at_most: f64,
    /// From the first byte to the last.
    pub sends: f64,
}

/// A step slower than this part of the usual rate is quiet: acknowledgements and keep-alives are far below it.
const QUIET: f64 = 0.05;

/// Fewer bytes, as a part of those of an iteration, are no stretch: the next iteration began in that step, or what comes is
/// no gradient.
const NOTHING: f64 = 0.06;

/// Bursts have no pauses if the last stretch has at least this part of the bytes, on average.
const CONTINUOUS: f64 = 0.98;

/// The shortest iterations: so many of all.
const SHORTEST: f64 = 0.1;

/// What a job would do without others, by iterations of so many bytes over a link that carries `rate` bytes a nanosecond.
pub(super) fn alone(laps: &[Lap], bytes: f64, rate: f64) -> Option<Alone> {
    let least = bytes / rate;
    let without_loss = quantile(laps, 0.5, |lap| lap.lasts - (lap.stretch - lap.bytes / rate).max(0.0))?;
    let shortest = quantile(laps, SHORTEST, |lap| lap.lasts)?;
    let pause = quantile(laps, 0.5, |lap| lap.pause)?;
    let in_stretch = laps.iter().map(|lap| lap.bytes / bytes).sum::<f64>() / laps.len() as f64;
    let period = if in_stretch >= CONTINUOUS { without_loss.min(shortest) } else { shortest };
    let period = period.max(least);
    Some(Alone {
        period,
        at_least: without_loss.clamp(least, period),
        at_most: shortest.max(period),
        sends: (period - pause).clamp(least, period),
    })
}

fn quantile(laps: &[Lap], part: f64, of: impl Fn(&Lap) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = laps.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    // The very shortest is an error of its beginning as often as not.
    values.get(((part * values.len() as f64) as usize).max(1)).copied()
}

/// All iterations that were seen whole, each from the end of its longest pause to the end of the next one's.
pub(super) fn laps(run: &Run, course: &Course, bytes: f64) -> Vec<Lap> {
    let pauses = course.began.windows(2).map(|pair| {
        let whole = pair[0].is_whole.then(|| steps(run, pair[0].at, pair[1].at));
        whole.and_then(|steps| longest_pause(&steps, QUIET * run.usual()))
    });
    let pauses: Vec<Option<Pause>> = pauses.collect();
    let between = pauses.windows(2).filter_map(|pair| Some((pair[0]?, pair[1]?)));
    between.filter_map(|(before, after)| lap(run, before, after, NOTHING * bytes)).collect()
}

/// A time in which nothing is sent.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: f64,
    to: f64,
}

type Step<'a> = &'a [Point];

/// The steps that end in a stretch of time.
fn steps(run: &Run, from: f64, to: f64) -> Vec<Step<'_>> {
    let first = run.samples.partition_point(|sample| sample.at <= from).saturating_sub(1);
    let last = run.samples.partition_point(|sample| sample.at <= to);
    run.samples[first..last.max(first)].windows(2).collect()
}

fn longest_pause(steps: &[Step<'_>], quiet: f64) -> Option<Pause> {
    let pauses = steps.chunk_by(|one, next| (rate(one) < quiet) == (rate(next) < quiet));
    let pauses = pauses.filter(|steps| rate(steps[0]) < quiet);
    let pauses = pauses.map(|steps| Pause { from: steps[0][0].at, to: steps[steps.len() - 1][1].at });
    pauses.max_by(|one, other| (one.to - one.from).total_cmp(&(other.to - other.from)))
}

/// The iteration between two pauses. Less than `nothing` bytes are no stretch.
fn lap(run: &Run, before: Pause, after: Pause, nothing: f64) -> Option<Lap> {
    let steps = steps(run, before.to, after.from);
    let is_quiet = |step: &Step<'_>| rate(step) < QUIET * run.usual();
    let last = steps.rsplit(is_quiet).find(|stretch| bytes(stretch) > nothing)?;
    let (began, next, over) = (ends(run, before), ends(run, after), end(last));
    // A stretch of a step or two tells nothing of how long it took.
    let stretch = if last.len() > 2 { over - beginning(last, run.usual()) } else { 0.0 };
    Some(Lap { lasts: next - began, pause: (next - over).max(0.0), stretch, bytes: bytes(last) })
}

/// When the step in which a pause ended began to send.
fn ends(run: &Run, pause: Pause) -> f64 {
    let steps = steps(run, pause.to, pause.to + 3.5 * run.step);
    if steps.is_empty() { pause.to } else { beginning(&steps, run.usual()) }
}

/// When sending began in the first step of a stretch: it went on at the rate of the next step, or at the usual one.
fn beginning(stretch: &[Step<'_>], usual: f64) -> f64 {
    let first = stretch[0];
    let full = stretch.get(1).map_or(usual, |next| rate(next)).max(usual);
    (first[1].at - sent(first) / full).max(first[0].at)
}

/// When sending was over in the last step of a stretch.
fn end(stretch: &[Step<'_>]) -> f64 {
    match stretch {
        [.., before, last] if rate(before) > rate(last) => last[0].at + sent(last) / rate(before),
        [.., last] => last[1].at,
        [] => 0.0,
    }
}

fn bytes(stretch: &[Step<'_>]) -> f64 {
    stretch.iter().map(|step| sent(step)).sum()
}

fn sent(step: Step<'_>) -> f64 {
    step[1].bytes - step[0].bytes
}

fn rate(step: Step<'_>) -> f64 {
    sent(step) / (step[1].at - step[0].at).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::{Sample, learn};

    const MS: u64 = 1_000_000;

    /// Bytes a nanosecond of a link that sends a million bytes in 40 ms.
    const LINK: f64 = 1e6 / 40e6;

    fn learned(sent: impl Fn(u64) -> u64) -> super::Alone {
        let samples: Vec<Sample> = (0..1500)
            .map(|step| step * 5_300_000 + step % 3 * 700_000)
            .map(|at| Sample { at, bytes: sent(at) })
            .collect();
        learn(&samples).unwrap().alone(LINK).unwrap()
    }

    /// A job that pauses for 100 ms and then sends a million bytes in so many milliseconds.
    fn burst(at: u64, lasts: u64) -> u64 {
        let period = (100 + lasts) * MS;
        at / period * 1_000_000 + (at % period).saturating_sub(100 * MS) / lasts
    }

    #[test]
    fn a_burst_in_one_piece_is_as_long_as_its_bytes_take_however_long_contention_makes_it() {
        for lasts in [40, 60, 80] {
            let alone = learned(|at| burst(at, lasts));
            assert!((alone.period / 1e6 - 140.0).abs() < 2.5, "{alone:?} beside bursts of {lasts} ms");
            assert!((alone.sends / 1e6 - 40.0).abs() < 4.0, "{alone:?}");
        }
    }

    /// Five buckets of 8 ms, one every 20 ms; each lasts longer, and the last one is late by 40 ms, in two of three iterations.
    fn buckets(at: u64) -> u64 {
        let cycle = [200, 240, 240];
        let all: u64 = cycle.iter().sum();
        let (mut within, mut before) = (at / MS % all, at / MS / all * 3);
        for lasts in cycle {
            if within < lasts {
                let each = if lasts == 200 { 8 } else { 16 };
                let bucket = |index: u64| {
                    let late = if index == 4 { lasts - 200 } else { 0 };
                    within.saturating_sub(100 + 20 * index + late).min(each) * 200_000 / each
                };
                return before * 1_000_000 + (0..5).map(bucket).sum::<u64>();
            }
            (within, before) = (within - lasts, before + 1);
        }
        unreachable!("a cycle has no more iterations")
    }

    #[test]
    fn the_shortest_iterations_are_those_of_a_job_alone_where_bursts_have_pauses() {
        let alone = learned(buckets);
        assert!((alone.period / 1e6 - 200.0).abs() < 5.0, "{alone:?}");
        assert!(alone.sends > 70e6 && alone.at_least <= alone.period, "{alone:?}");
    }
}
