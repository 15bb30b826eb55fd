//! Counters as they are read become samples to work with: they wrap at 32 bits, begin anew with their interface, and are
//! not read for a while when the machine is busy.

use super::Sample;

/// Samples of one counter that went on without beginning anew, from time and bytes zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// When the first was taken, and what it said; a counter that wrapped is as many bytes further.
    pub(super) from: u64,
    base: f64,
    wrapped: f64,
    pub(super) samples: Vec<Point>,
    /// The usual time between two samples, in nanoseconds.
    pub(super) step: f64,
    /// The rate at which the mean byte is sent, in bytes a nanosecond.
    usual: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) at: f64,
    pub(super) bytes: f64,
}

/// The last third of the samples is recent.
const RECENT: usize = 3;

/// A pause so many times as long as the longest recent one interrupted training.
const INTERRUPTION: f64 = 3.0;

/// Longer than so many usual steps nobody looked: what was sent meanwhile is known, but not when.
const GAP: f64 = 4.0;

/// After so many nanoseconds nobody knows what it was before.
const LONGEST_GAP: u64 = 10_000_000_000;

/// Slower than this part of its usual rate a counter stands still.
const STILL: f64 = 0.3;

/// A step that is a larger part of an iteration is long.
const FEW_STEPS: f64 = 0.25;

const WRAP: u64 = 1 << 32;

/// A stretch in which the counter stood still, and the sample at its end.
#[derive(Clone, Copy, Debug)]
struct Pause {
    lasts: f64,
    end: usize,
}

impl Run {
    fn of(samples: &[(u64, f64)], wrapped: f64) -> Self {
        let Some((from, base)) = samples.first().copied() else { return Self::default() };
        let point = |(at, bytes): &(u64, f64)| Point { at: (at - from) as f64, bytes: bytes - base };
        let samples: Vec<Point> = samples.iter().map(point).collect();
        let mut steps: Vec<f64> = samples.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        steps.sort_by(f64::total_cmp);
        let step = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
        let mut run = Self { from, base, wrapped, samples, step, usual: 0.0 };
        run.usual = run.usual_rate();
        run
    }

    fn usual_rate(&self) -> f64 {
        let (mut bytes, mut rated) = (0.0, 0.0);
        for pair in self.samples.windows(2).filter(|pair| !self.is_gap(&pair[0], &pair[1])) {
            let sent = pair[1].bytes - pair[0].bytes;
            bytes += sent;
            rated += sent * sent / (pair[1].at - pair[0].at);
        }
        if bytes > 0.0 { rated / bytes } else { 0.0 }
    }

    /// The sample with which the last interruption of training ends: a program that starts, loads its data or saves pauses
    /// longer than one that trains, and what it sends meanwhile is no iteration. The latest samples show how long pauses are.
    fn last_interruption(&self) -> Option<usize> {
        let recent = self.samples.len() - self.samples.len() / RECENT;
        let pauses = self.pauses();
        let is_recent = |pause: &&Pause| pause.end > recent;
        let usual = pauses.iter().filter(is_recent).map(|pause| pause.lasts).fold(0.0, f64::max);
        let is_longer = |pause: &&Pause| pause.end <= recent && pause.lasts > INTERRUPTION * usual;
        pauses.iter().filter(|_| usual > 0.0).rfind(is_longer).map(|pause| pause.end)
    }

    /// Steps in a row in which the counter stood still.
    fn pauses(&self) -> Vec<Pause> {
        let mut pauses: Vec<Pause> = Vec::new();
        for (at, pair) in
            self.samples.windows(2).enumerate().filter(|(_, pair)| self.is_still(&pair[0], &pair[1]))
        {
            let lasts = pair[1].at - pair[0].at;
            match pauses.last_mut().filter(|pause| pause.end == at) {
                Some(pause) => *pause = Pause { lasts: pause.lasts + lasts, end: at + 1 },
                None => pauses.push(Pause { lasts, end: at + 1 }),
            }
        }
        pauses
    }

    /// The rate at which the mean byte is sent, in bytes a nanosecond.
    pub(super) fn usual(&self) -> f64 {
        self.usual
    }

    /// Whether the counter stood nearly still in this interval.
    pub(super) fn is_still(&self, from: &Point, to: &Point) -> bool {
        to.bytes - from.bytes < STILL * self.usual * (to.at - from.at)
    }

    pub(super) fn lasts(&self) -> f64 {
        self.samples.last().map_or(0.0, |last| last.at)
    }

    pub(super) fn bytes(&self) -> f64 {
        self.samples.last().map_or(0.0, |last| last.bytes)
    }

    /// What the counter said when so many bytes of the run were sent.
    pub(super) fn counter(&self, bytes: f64) -> u64 {
        (self.base + bytes - self.wrapped).max(0.0) as u64
    }

    /// Whether an iteration that takes so long has so few steps that a step tells little of it.
    pub(super) fn has_few_steps(&self, iteration: f64) -> bool {
        self.step > FEW_STEPS * iteration
    }

    /// Whether nobody looked in this interval for a while.
    pub(super) fn is_gap(&self, from: &Point, to: &Point) -> bool {
        to.at - from.at > GAP * self.step
    }
}

/// Of all runs between two beginnings of the counter, or two long gaps, the one that lasts longest.
pub(super) fn longest_run(samples: &[Sample]) -> Run {
    let mut runs: Vec<Vec<(u64, f64)>> = vec![Vec::new()];
    let mut before: Option<Sample> = None;
    let mut wrapped = 0.0;
    for sample in samples {
        match before {
            Some(last) if sample.at <= last.at => continue,
            Some(last) if sample.at - last.at > LONGEST_GAP => {
                wrapped = 0.0;
                runs.push(Vec::new());
            }
            Some(last) if sample.bytes < last.bytes => match wraps(last.bytes, sample.bytes) {
                true => wrapped += WRAP as f64,
                false => {
                    wrapped = 0.0;
                    runs.push(Vec::new());
                }
            },
            _ => {}
        }
        let run = runs.last_mut().expect("there is always one");
        run.push((sample.at, sample.bytes as f64 + wrapped));
        before = Some(*sample);
    }
    let lasts = |run: &Vec<(u64, f64)>| run.last().map_or(0, |last| last.0 - run[0].0);
    let longest = runs.iter().enumerate().max_by_key(|(at, run)| (lasts(run), *at)).map(|(_, run)| run);
    let whole = Run::of(longest.map_or(&[], Vec::as_slice), wrapped);
    match whole.last_interruption() {
        Some(end) => Run::of(&longest.expect("there are samples")[end..], wrapped),
        None => whole,
    }
}

/// A counter of 32 bits that was near its end goes on near zero; any other that falls has begun anew.
fn wraps(last: u64, next: u64) -> bool {
    last < WRAP && WRAP - last < WRAP / 8 && next < WRAP / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(counts: &[u64]) -> Run {
        let samples: Vec<Sample> =
            (0..).zip(counts).map(|(at, bytes)| Sample { at, bytes: *bytes }).collect();
        longest_run(&samples)
    }

    #[test]
    fn a_counter_that_wraps_goes_on() {
        let run = run(&[WRAP - 30, WRAP - 10, 10, 30]);
        let bytes: Vec<f64> = run.samples.iter().map(|point| point.bytes).collect();
        assert_eq!(bytes, [0.0, 20.0, 40.0, 60.0]);
    }

    #[test]
    fn a_counter_that_begins_anew_begins_another_run_and_the_longest_counts() {
        let run = run(&[500, 600, 0, 10, 20, 30, 5]);
        assert_eq!((run.from, run.samples.len(), run.bytes()), (2, 4, 30.0));
    }

    #[test]
    fn who_was_not_looked_at_for_long_begins_anew() {
        let samples = [(0, 1), (5, 2), (LONGEST_GAP + 6, 3), (LONGEST_GAP + 7, 4), (LONGEST_GAP + 20, 5)];
        let run = longest_run(&samples.map(|(at, bytes)| Sample { at, bytes }));
        assert_eq!((run.from, run.samples.len()), (LONGEST_GAP + 6, 3));
    }

    #[test]
    fn a_run_begins_after_the_last_interruption_of_training() {
        // Something is sent at the start, then 10 bytes in every second step.
        let start = [0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7].into_iter();
        let training = (0..30).map(|step| 7 + 10 * (step / 2));
        let counts: Vec<u64> = start.chain(training).collect();
        let run = run(&counts);
        assert_eq!((run.from, run.samples.len()), (13, 29));
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_adds_nothing() {
        let samples = [(5, 10), (5, 20), (4, 30), (6, 40)].map(|(at, bytes)| Sample { at, bytes });
        let run = longest_run(&samples);
        assert_eq!(run.samples.iter().map(|point| point.bytes).collect::<Vec<_>>(), [0.0, 30.0]);
    }
}
