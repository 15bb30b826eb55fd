//! What an iteration sends, from its pauses.
//!
//! While a member computes, its counter stands still, at the same level in every iteration but for the bytes of whole
//! iterations in between. Each pause is a hand on a dial that goes around once with every `bytes`. If the guess of `bytes`
//! is right, all hands point to the same place, and their mean is long: however long pauses last, and whoever holds up the
//! sending. A dial that is right for a part of an iteration is coherent, too; one for several iterations is not.

use std::f64::consts::TAU;

use super::NoProfile;
use super::series::Run;

#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    pub(super) bytes: f64,
    /// How long the mean hand is, from 0 to 1.
    pub(super) coherence: f64,
}

/// A period that was guessed may be so many iterations.
const MOST_PARTS: usize = 8;

/// Hands are averaged over so many turns, and so many samples, at least, before their direction counts.
const TURNS: f64 = 4.0;
const SAMPLES: usize = 24;

/// The mean hand is at least so long, or pauses do not repeat; longer where the dial was found by trying them all.
const LEAST_COHERENCE: f64 = 0.3;
const LEAST_FOUND: f64 = 0.5;

/// A dial whose hand is so much longer than that of a larger one is the right one, and a larger one whose hand is not so
/// much shorter is as right: an iteration may have several pauses.
const LONGER: f64 = 1.25;
const AS_RIGHT: f64 = 0.2;

/// A counter stands still for this part of the time at least.
const LEAST_STILL: f64 = 0.02;

/// The mean hand of a whole iteration whose parts repeat is at least so long: chance makes those of several iterations shorter.
const LEAST_WHOLE: f64 = 0.3;

/// An iteration has at most so many buckets of equal size, and a run has at least so many iterations.
const MOST_BUCKETS: usize = 48;
const LEAST_ITERATIONS: f64 = 5.0;

/// Dials that are tried one by one: their steps, and the turns that a run has at least.
const TRIED_STEP: f64 = 1.03;
const LEAST_TURNS: f64 = 8.0;
/// The shortest iteration that is looked for, in steps between samples.
const LEAST_STEPS: f64 = 1.2;
/// So many pauses are looked at when dials are tried.
const TRIED_PAUSES: usize = 1024;

/// From a period that may be known within a few percent, or be several iterations.
pub(super) fn of(run: &Run, period: Option<f64>) -> Result<Volume, NoProfile> {
    let pauses = Pauses::of(run);
    if pauses.lasts() < LEAST_STILL * run.lasts() {
        return Err(NoProfile::NotPeriodic);
    }
    let rate = run.bytes() / run.lasts();
    let guessed = period.and_then(|period| among_parts(&pauses, rate * period, rate * run.step));
    let sure = guessed.filter(|volume| volume.coherence >= LEAST_FOUND);
    let volume = sure.or_else(|| tried(&pauses, rate * run.step * LEAST_STEPS)).or(guessed);
    let part = volume.filter(|volume| volume.coherence >= LEAST_COHERENCE).ok_or(NoProfile::NotPeriodic)?;
    Ok(whole_iteration(&pauses, part))
}

/// The dial of a whole iteration, where the one that was found may be of a part of it: a job that exchanges its gradients in
/// buckets pauses after each of them, and longest once in an iteration. A dial of several iterations is not coherent.
fn whole_iteration(pauses: &Pauses, part: Volume) -> Volume {
    let most = (pauses.bytes() / part.bytes / LEAST_ITERATIONS) as usize;
    let multiple = |count: usize| Volume { bytes: part.bytes * count as f64, ..part };
    let dials = (2..=most.min(MOST_BUCKETS)).rev().map(multiple);
    let is_coherent = |dial: &Volume| pauses.coherence(dial.bytes) >= LEAST_WHOLE;
    dials
        .into_iter()
        .find(is_coherent)
        .map_or(part, |dial| Volume { coherence: part.coherence, ..pauses.sharpened(dial.bytes) })
}

/// The dial of an iteration, where the rough one may be of several.
fn among_parts(pauses: &Pauses, rough: f64, step: f64) -> Option<Volume> {
    let mut clearest: Option<(usize, Volume)> = None;
    for parts in (1..=MOST_PARTS).filter(|parts| rough / *parts as f64 > LEAST_STEPS * step) {
        let dial = pauses.sharpened(rough / parts as f64);
        let before = clearest.map_or(0.0, |(_, volume)| volume.coherence);
        if dial.coherence > LONGER * before {
            clearest = Some((parts, dial));
        }
    }
    let (parts, part) = clearest?;
    let whole = |count: usize| Volume {
        bytes: part.bytes * count as f64,
        coherence: pauses.coherence(part.bytes * count as f64),
    };
    let counts = (2..=parts).rev().filter(|count| parts.is_multiple_of(*count));
    let several = counts.map(whole).find(|volume| volume.coherence >= AS_RIGHT * part.coherence);
    Some(several.map_or(part, |several| Volume { coherence: part.coherence, ..several }))
}

/// Where time gave no clue: every dial is tried, and of those that are about as coherent the largest is taken.
fn tried(pauses: &Pauses, least: f64) -> Option<Volume> {
    let few = Pauses { all: pauses.all[..pauses.all.len().min(TRIED_PAUSES)].to_vec(), turns: pauses.turns };
    let mut found: Vec<Volume> = Vec::new();
    let mut bytes = least.max(1.0);
    while bytes * LEAST_TURNS < few.bytes() {
        let hands = few.hands(bytes);
        let length: f64 = hands.iter().map(Hand::length).sum();
        found.push(Volume { bytes, coherence: length / few.lasts() });
        bytes *= TRIED_STEP;
    }
    found.sort_by(|one, other| other.coherence.total_cmp(&one.coherence));
    let sharpened: Vec<Volume> = found.iter().take(6).map(|dial| pauses.sharpened(dial.bytes)).collect();
    let best = sharpened.iter().map(|dial| dial.coherence).fold(0.0, f64::max);
    let right = sharpened.into_iter().filter(|dial| dial.coherence * LONGER >= best);
    right.max_by(|one, other| one.bytes.total_cmp(&other.bytes)).filter(|dial| dial.coherence >= LEAST_FOUND)
}

/// Steps in which a counter stood nearly still: at which bytes, and how long.
#[derive(Clone, Debug)]
struct Pauses {
    all: Vec<(f64, f64)>,
    /// The bytes of a stretch over which hands are averaged, as a function of a dial, need samples enough.
    turns: f64,
}

/// The sum of all hands of a stretch.
#[derive(Clone, Copy, Debug, Default)]
struct Hand {
    /// Turns of the dial in the middle of the stretch.
    turns: f64,
    sum: (f64, f64),
}

impl Hand {
    fn length(&self) -> f64 {
        self.sum.0.hypot(self.sum.1)
    }
}

impl Pauses {
    fn of(run: &Run) -> Self {
        let steps = || run.samples.windows(2).filter(|pair| !run.is_gap(&pair[0], &pair[1]));
        let still = steps().filter(|pair| run.is_still(&pair[0], &pair[1]));
        let pause =
            |pair: &[super::series::Point]| ((pair[0].bytes + pair[1].bytes) / 2.0, pair[1].at - pair[0].at);
        let all: Vec<(f64, f64)> = still.map(pause).collect();
        let turns = run.bytes() / all.len().max(1) as f64;
        Self { all, turns }
    }

    fn lasts(&self) -> f64 {
        self.all.iter().map(|(_, lasts)| lasts).sum()
    }

    fn bytes(&self) -> f64 {
        self.all.first().zip(self.all.last()).map_or(0.0, |(first, last)| last.0 - first.0)
    }

    /// The length of the mean of all hands.
    fn coherence(&self, bytes: f64) -> f64 {
        let mut sum = Hand::default();
        for (level, lasts) in &self.all {
            let (sin, cos) = ((level / bytes).fract() * TAU).sin_cos();
            sum.sum.0 += lasts * cos;
            sum.sum.1 += lasts * sin;
        }
        sum.length() / self.lasts()
    }

    fn hands(&self, bytes: f64) -> Vec<Hand> {
        let stretch = ((TURNS * bytes / self.turns) as usize).max(SAMPLES).min(self.all.len().max(1));
        let of = |pauses: &[(f64, f64)]| {
            let mut hand = Hand::default();
            for (level, lasts) in pauses {
                let (sin, cos) = ((level / bytes).fract() * TAU).sin_cos();
                hand.turns += level / bytes / pauses.len() as f64;
                hand.sum.0 += lasts * cos;
                hand.sum.1 += lasts * sin;
            }
            hand
        };
        self.all.chunks(stretch).map(of).collect()
    }

    /// A guess that is a few percent off makes the hand creep from turn to turn: by as much as it is off.
    fn sharpened(&self, rough: f64) -> Volume {
        let mut bytes = rough;
        for _ in 0..3 {
            bytes *= 1.0 + creep(&self.hands(bytes)) / TAU;
        }
        Volume { bytes, coherence: self.coherence(bytes) }
    }
}

/// By how much the direction changes with each turn, by the line of least squares through all directions.
fn creep(hands: &[Hand]) -> f64 {
    let mut unwrapped: Vec<(f64, f64, f64)> = Vec::with_capacity(hands.len());
    for hand in hands {
        let direction = hand.sum.1.atan2(hand.sum.0);
        let last = unwrapped.last().map_or(direction, |last| last.1);
        let near = direction - ((direction - last) / TAU).round() * TAU;
        unwrapped.push((hand.turns, near, hand.length()));
    }
    let weight: f64 = unwrapped.iter().map(|(_, _, weight)| weight).sum();
    let mean = |of: fn(&(f64, f64, f64)) -> f64| {
        unwrapped.iter().map(|point| of(point) * point.2).sum::<f64>() / weight
    };
    let (turns, direction) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = unwrapped.iter().map(|point| point.2 * (point.0 - turns) * (point.1 - direction)).sum();
    let spread: f64 = unwrapped.iter().map(|point| point.2 * (point.0 - turns).powi(2)).sum();
    let slope = if spread > 0.0 { along / spread } else { 0.0 };
    slope.clamp(-0.5, 0.5)
}
