//! When each iteration began.
//!
//! An iteration is said to begin when a long pause ends: what it then sends became ready at that moment, whoever else
//! sends. The pause is a place on the dial of an iteration's bytes ([`super::volume`]).

use super::NoProfile;
use super::series::{Point, Run};
use super::volume::Volume;

#[derive(Clone, Debug)]
pub(super) struct Course {
    /// When each iteration began, and the bytes then.
    pub(super) began: Vec<Beginning>,
    /// How many iterations were seen from beginning to end.
    pub(super) lengths: usize,
    /// The mean length of an iteration, in nanoseconds.
    pub(super) period: f64,
    /// The deviation of lengths, over the period.
    pub(super) noise: f64,
    /// The part of the time that iterations account for, from the first to the last.
    pub(super) trained: f64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) at: f64,
    pub(super) bytes: f64,
    /// Whether the iteration that begins here was seen to its end, without a gap.
    pub(super) is_whole: bool,
}

impl Course {
    /// When the last whole iteration began, and what the counter said then.
    pub(super) fn latest(&self, run: &Run) -> (u64, u64) {
        let whole = self.began.iter().rev().find(|beginning| beginning.is_whole);
        whole.map_or((run.from, run.counter(0.0)), |beginning| {
            (run.from + beginning.at.max(0.0) as u64, run.counter(beginning.bytes))
        })
    }
}

const LEAST_ITERATIONS: usize = 5;

/// A checkpoint or an evaluation is no iteration: what lasts so many times as long as usual does not count.
const PAUSE: f64 = 3.0;

/// If lengths vary more than so, over their mean, there is no period; nor if iterations are so small a part of the time.
const MOST_NOISE: f64 = 0.6;
const LEAST_TRAINED: f64 = 0.5;

/// Iterations vary by so much of themselves if nothing is known.
const USUAL_NOISE: f64 = 0.01;

/// A line goes through no more neighbours: lengths may change, when others come and go.
const MOST_NEIGHBOURS: f64 = 17.0;

/// Places on the dial at which its speed is looked at.
const PLACES: usize = 64;

pub(super) fn course(run: &Run, volume: &Volume) -> Result<Course, NoProfile> {
    let pause = longest_pause(run, volume.bytes);
    let mut began = endings(run, volume.bytes, pause);
    let lengths = whole_lengths(&mut began);
    if lengths.len() < LEAST_ITERATIONS {
        return Err(NoProfile::TooShort);
    }
    let Spread { mean, noise, blur } = spread(&lengths, run);
    let trained: f64 = lengths.iter().sum();
    if noise > MOST_NOISE * mean || trained < LEAST_TRAINED * run.lasts() {
        return Err(NoProfile::NotPeriodic);
    }
    let lasted = began.first().zip(began.last()).map_or(0.0, |(first, last)| last.at - first.at);
    smooth(&mut began, noise, blur);
    let (noise, trained) = (noise / mean, (trained / lasted.max(trained)).clamp(0.0, 1.0));
    Ok(Course { began, lengths: lengths.len(), period: mean, noise, trained })
}

/// At which bytes of an iteration most time is spent.
fn longest_pause(run: &Run, bytes: f64) -> f64 {
    let steps = || run.samples.windows(2).filter(|pair| !run.is_gap(&pair[0], &pair[1]));
    let place = |pair: &[Point]| {
        let turns = (pair[0].bytes + pair[1].bytes) / 2.0 / bytes;
        (turns.fract(), (pair[1].at - pair[0].at, (pair[1].bytes - pair[0].bytes) / bytes))
    };
    let mut spent = [0.0; PLACES];
    for (at, (lasted, swept)) in steps().map(place).filter(|(_, (_, swept))| *swept < 1.0 / PLACES as f64) {
        spent[((at * PLACES as f64) as usize).min(PLACES - 1)] += lasted * (1.0 - swept);
    }
    let around =
        |place: usize| spent[(place + PLACES - 1) % PLACES] + spent[place] + spent[(place + 1) % PLACES];
    // A pause after which much is sent at once ends at a moment that is known well.
    let after = |place: usize| -> f64 { (2..PLACES / 4).map(|next| spent[(place + next) % PLACES]).sum() };
    let worth = |place: usize| around(place) - after(place);
    let longest = (0..PLACES).max_by(|one, other| worth(*one).total_cmp(&worth(*other))).unwrap_or(0);
    // Where in there exactly: the mean, seen from the middle of it.
    let middle = (longest as f64 + 0.5) / PLACES as f64;
    let (mut sum, mut weight) = (0.0, 0.0);
    for (at, (lasted, swept)) in steps().map(place) {
        let off = at - middle - (at - middle).round();
        if off.abs() < 1.5 / PLACES as f64 && swept < 0.25 / PLACES as f64 {
            sum += off * lasted;
            weight += lasted;
        }
    }
    (middle + if weight > 0.0 { sum / weight } else { 0.0 }) * bytes
}

/// A pause is surely over when this part of the bytes of an iteration is sent after it. Bytes of iterations are never
/// exactly equal, so levels creep a little.
const OVER: f64 = 0.2;
const NEAR: f64 = 0.06;

/// When each pause ended, and the bytes by then.
fn endings(run: &Run, bytes: f64, pause: f64) -> Vec<Beginning> {
    let mut found: Vec<Beginning> = Vec::new();
    let mut next = pause;
    for at in 1..run.samples.len() {
        let (from, to) = (&run.samples[at - 1], &run.samples[at]);
        let is_gap = run.is_gap(from, to);
        if is_gap && let Some(last) = found.last_mut() {
            last.is_whole = false;
        }
        while next + OVER * bytes <= to.bytes && to.bytes > from.bytes {
            next = where_it_went(run, at, next, bytes);
            let (ended, level) = ended(run, at, next - OVER * bytes..next + NEAR * bytes);
            // Where the pause in fact was, so that nothing adds up.
            next = if (level - next).abs() < OVER * bytes { level } else { next };
            found.push(Beginning { at: ended, bytes: next, is_whole: !is_gap });
            next += bytes;
        }
    }
    if let Some(last) = found.last_mut() {
        last.is_whole = false;
    }
    found
}

/// What is lost on the way is sent again, so now and then a pause comes a few percent of an iteration's bytes later than
/// the last one lets expect, and a little earlier where the mean has much of that in it. Levels within so much of each
/// other are one pause.
const LATER: f64 = 0.15;
const EARLIER: f64 = 0.06;
const ONE_PAUSE: f64 = 0.03;

/// The level near the expected one at which a counter stood still for longest before a sample; as expected, if it did not.
fn where_it_went(run: &Run, before: usize, expected: f64, bytes: f64) -> f64 {
    if run.has_few_steps(bytes * run.lasts() / run.bytes()) {
        // What stands still in so few steps is chance.
        return expected;
    }
    let about = expected - EARLIER * bytes..expected + LATER * bytes;
    let near = run.samples[..before].windows(2).rev().take_while(|step| step[1].bytes > about.start);
    let still: Vec<(f64, f64)> = near
        .filter(|step| about.contains(&step[0].bytes) && run.is_still(&step[0], &step[1]))
        .map(|step| (step[0].bytes, step[1].at - step[0].at))
        .collect();
    let around = |level: f64| -> f64 {
        let same = still.iter().filter(|(other, _)| (other - level).abs() <= ONE_PAUSE * bytes);
        same.map(|(_, lasts)| lasts).sum()
    };
    let longest = still.iter().map(|(level, _)| *level).max_by(|one, other| {
        let nearer = (other - expected).abs().total_cmp(&(one - expected).abs());
        around(*one).total_cmp(&around(*other)).then(nearer)
    });
    longest.unwrap_or(expected)
}

/// When a pause ended that was surely over at a sample, and at which bytes, about: in the step after the last in which the
/// counter stood still there. If sending goes on in the next one, it began when as many bytes, at that rate, were left to
/// the first; else all that is known is that it was in this step.
fn ended(run: &Run, over: usize, about: std::ops::Range<f64>) -> (f64, f64) {
    let is_pause =
        |at: usize| run.samples[at].bytes < about.end && run.is_still(&run.samples[at - 1], &run.samples[at]);
    let near = (1..over).rev().take_while(|at| run.samples[*at].bytes > about.start);
    let passed = || run.samples[..over].partition_point(|point| point.bytes < about.end).max(1) - 1;
    let first = near.into_iter().find(|at| is_pause(*at)).unwrap_or_else(passed) + 1;
    let (from, to) = (run.samples[first - 1], run.samples[first]);
    let rate = (to.bytes - from.bytes) / (to.at - from.at);
    let after = run.samples.get(first + 1).map_or(0.0, |next| (next.bytes - to.bytes) / (next.at - to.at));
    let at = match after > rate {
        true => to.at - (to.bytes - from.bytes) / after,
        false => (from.at + to.at) / 2.0,
    };
    (at, from.bytes)
}

/// How long iterations took, in runs of whole ones; marks those that were none.
fn whole_lengths(began: &mut [Beginning]) -> Vec<f64> {
    let mut usual: Vec<f64> = lengths(began).collect();
    usual.sort_by(f64::total_cmp);
    let usual = usual.get(usual.len() / 2).copied().unwrap_or(0.0);
    for at in 0..began.len().saturating_sub(1) {
        let length = began[at + 1].at - began[at].at;
        began[at].is_whole &= length <= PAUSE * usual;
    }
    lengths(began).collect()
}

fn lengths(began: &[Beginning]) -> impl Iterator<Item = f64> {
    began.windows(2).filter(|pair| pair[0].is_whole).map(|pair| pair[1].at - pair[0].at)
}

struct Spread {
    mean: f64,
    noise: f64,
    /// How far moments are off by the steps in which they were seen.
    blur: f64,
}

/// A moment that is seen too late makes one iteration longer and the next shorter by as much. So what neighbours have in
/// common, with its sign turned, is blur, and the rest is noise. Nothing is off by more than half a
/// step.
fn spread(lengths: &[f64], run: &Run) -> Spread {
    let step = run.step;
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    let variance = lengths.iter().map(|length| (length - mean).powi(2)).sum::<f64>() / lengths.len() as f64;
    let pairs = lengths.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    let common = pairs.sum::<f64>() / (lengths.len() - 1) as f64;
    if run.has_few_steps(mean) {
        // So few steps in an iteration tell nothing of how it varies; that they are what is off is likelier.
        return Spread { mean, noise: USUAL_NOISE * mean, blur: (variance / 2.0).sqrt().min(step / 2.0) };
    }
    let blur = (-common).clamp(0.0, (variance / 2.0).min(step * step / 4.0));
    Spread { mean, noise: (variance - 2.0 * blur).max(0.0).sqrt(), blur: blur.sqrt() }
}

/// Where moments are more blurred than iterations vary, neighbours know better when an iteration began: the line through
/// so many of them that blur and noise add as little as possible.
fn smooth(began: &mut [Beginning], noise: f64, blur: f64) {
    let count = 6.0_f64.sqrt() * blur / noise.max(1.0);
    let reach = ((count.min(MOST_NEIGHBOURS) - 1.0) / 2.0).round();
    if reach < 1.0 {
        return;
    }
    let mut start = 0;
    while start < began.len() {
        let whole = began[start..].iter().take_while(|beginning| beginning.is_whole).count();
        let end = (start + whole + 1).min(began.len());
        let seen: Vec<f64> = began[start..end].iter().map(|beginning| beginning.at).collect();
        for (at, beginning) in began[start..end].iter_mut().enumerate() {
            let near = at.saturating_sub(reach as usize)..(at + reach as usize + 1).min(seen.len());
            beginning.at = on_the_line(&seen[near.clone()], at - near.start);
        }
        start = end;
    }
}

/// The place of one of several equidistant values on the line of least squares through them.
fn on_the_line(values: &[f64], at: usize) -> f64 {
    let count = values.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let place = |at: usize| at as f64 - middle;
    let along: f64 = values.iter().enumerate().map(|(at, value)| place(at) * (value - mean)).sum();
    let spread: f64 = (0..values.len()).map(|at| place(at).powi(2)).sum();
    mean + if spread > 0.0 { along / spread * place(at) } else { 0.0 }
}
