//! Where a member is in its iteration right now, as its counter says it.

use crate::profile::{Learned, Sample};

/// Follows a counter through iterations whose profile is known.
#[derive(Debug, Default)]
pub struct Meter {
    known: Option<Known>,
    last: Option<Sample>,
    /// Whether the counter stood still in the last step.
    is_still: bool,
    /// What an iteration is said to send, and at which rate, until that is measured.
    declared: Option<(f64, f64)>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// What an iteration sends.
    volume: f64,
    /// Bytes a nanosecond while it sends.
    rate: f64,
    /// The counter when this iteration began to send.
    level: u64,
    /// The counter of the opposite direction at the end of the last burst.
    opposite: u64,
    is_paused: bool,
}

/// What a step showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An iteration began to send, at that moment.
    Began(u64),
    /// It has sent all it had.
    Paused,
}

/// An iteration has sent its bytes when so much of them is sent and the counter stands still; bytes vary a little.
const ALL: f64 = 0.9;
/// With less than this part of its bytes it is about to send the rest.
const NEARLY: f64 = 0.985;
/// It has surely when there is so much.
const SURELY: f64 = 1.2;
/// Slower than this part of its usual rate it stands still.
const STILL: f64 = 0.3;
/// A level that was followed so far and is so near to what was found is kept.
const NEAR: f64 = 0.1;
/// What is sent besides is less than this part of an iteration.
const BESIDES: f64 = 0.02;

impl Meter {
    pub fn learn(&mut self, learned: &Learned) {
        let squares: f64 = learned.rates.iter().map(|rate| rate * rate).sum();
        let usual = squares / learned.rates.iter().sum::<f64>().max(1.0);
        let volume = learned.bytes.max(1.0);
        // The last beginning that was seen is some iterations old.
        let now = self.last.map_or(learned.level, |last| last.bytes);
        let whole = (now.saturating_sub(learned.level) as f64 / volume).floor();
        let level = learned.level + (whole * volume) as u64;
        let near = |known: &Known| (known.level.abs_diff(level) as f64) < NEAR * volume;
        let known = self.known.filter(near).unwrap_or(Known {
            level,
            opposite: u64::MAX,
            is_paused: false,
            volume,
            rate: 0.0,
        });
        self.known = Some(Known { volume, rate: usual / 8e9, ..known });
    }

    /// What is said of it before anything is learned: bytes of an iteration, and bytes a nanosecond while it sends.
    pub fn declare(&mut self, volume: f64, rate: f64) {
        self.declared = Some((volume, rate)).filter(|_| volume >= 1.0 && rate > 0.0 && rate.is_finite());
    }

    /// Iterations are counted from the first time that the counter stands still.
    fn begin_as_declared(&mut self, before: Sample, sample: Sample, opposite: u64) {
        let Some((volume, rate)) = self.declared.filter(|_| self.known.is_none()) else { return };
        let step = sample.bytes.saturating_sub(before.bytes) as f64;
        if step < STILL * rate * sample.at.saturating_sub(before.at) as f64 {
            self.known = Some(Known { volume, rate, level: sample.bytes, opposite, is_paused: true });
        }
    }

    /// What an iteration sends, and what it has sent of that; none while nothing is known.
    pub fn sent(&self) -> Option<(f64, f64)> {
        let (known, last) = self.known.zip(self.last)?;
        Some((last.bytes.saturating_sub(known.level) as f64, known.volume))
    }

    /// Whether its counter stood still in the last step.
    pub fn is_still(&self) -> bool {
        self.is_still
    }

    /// Takes a sample in, with what the counter of the opposite direction says. A burst begins as soon as either of them goes on:
    /// a job that waits for others to send has handed over its bytes, and nothing is delivered to it.
    pub fn feed(&mut self, sample: Sample, opposite: u64) -> Option<Event> {
        let before = self.last.replace(sample)?;
        if sample.bytes < before.bytes {
            // It has begun anew: where it is will be known when its profile is found again.
            self.known = None;
        }
        self.begin_as_declared(before, sample, opposite);
        let known = self.known.as_mut()?;
        let step = (sample.bytes - before.bytes) as f64;
        let is_still = step < STILL * known.rate * sample.at.saturating_sub(before.at) as f64;
        self.is_still = is_still;
        let sent = sample.bytes.saturating_sub(known.level) as f64;
        if known.is_paused {
            let handed_over = opposite.saturating_sub(known.opposite) as f64;
            if sent.max(handed_over) < BESIDES * known.volume {
                return None;
            }
            known.is_paused = false;
            let ago = (sent / known.rate) as u64;
            return Some(Event::Began((sample.at - ago.min(sample.at)).max(before.at)));
        }
        if sent >= SURELY * known.volume {
            // Where its pause was is not known, so nobody is held in it.
            known.level += known.volume as u64;
            return None;
        }
        if is_still && sent >= ALL * known.volume {
            // A last bucket that comes late belongs to this iteration and does not begin the next one.
            let is_short = sent < NEARLY * known.volume;
            known.level = if is_short { known.level + known.volume as u64 } else { sample.bytes };
            known.opposite = opposite;
            known.is_paused = true;
            return Some(Event::Paused);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::learn;

    const MS: u64 = 1_000_000;

    fn sent(at: u64) -> u64 {
        at / (100 * MS) * 1_000_000 + (at % (100 * MS)).min(40 * MS) / 40
    }

    #[test]
    fn what_is_declared_is_followed_from_the_first_pause_on() {
        let mut meter = Meter::default();
        meter.declare(1_000_000.0, 0.025);
        let mut seen = 0;
        for step in 0..400_u64 {
            let at = step * 7 * MS;
            seen += u32::from(matches!(meter.feed(Sample { at, bytes: sent(at) }, 0), Some(Event::Began(_))));
            if let Some((sent, volume)) = meter.sent() {
                assert!(volume == 1_000_000.0 && sent <= 1.05 * volume, "{sent}");
            }
        }
        assert!((26..=28).contains(&seen), "{seen} of 28 iterations");
    }

    #[test]
    fn beginnings_are_seen_within_a_fraction_of_a_step_and_what_is_sent_exactly() {
        let samples: Vec<Sample> =
            (0..3000).map(|step| step * 5_700_000).map(|at| Sample { at, bytes: sent(at) }).collect();
        let mut meter = Meter::default();
        let (before, after) = samples.split_at(1500);
        for sample in before {
            assert_eq!(meter.feed(*sample, 0), None);
        }
        meter.learn(&learn(before).unwrap());
        let mut began = Vec::new();
        for sample in after {
            if let Some(Event::Began(at)) = meter.feed(*sample, 0) {
                began.push(at);
            }
            let (sent, volume) = meter.sent().unwrap();
            assert!((0.0..=1.05 * volume).contains(&sent));
        }
        assert!((80..90).contains(&began.len()), "{}", began.len());
        for at in &began[1..] {
            let off = (at % (100 * MS)).min(100 * MS - at % (100 * MS));
            assert!(off < 2 * MS, "{at}: {off}");
        }
    }

    #[test]
    fn a_counter_that_begins_anew_is_not_known() {
        let samples: Vec<Sample> =
            (0..1500).map(|step| step * 5_700_000).map(|at| Sample { at, bytes: sent(at) }).collect();
        let mut meter = Meter::default();
        samples.iter().for_each(|sample| {
            meter.feed(*sample, 0);
        });
        meter.learn(&learn(&samples).unwrap());
        assert!(meter.sent().is_some());
        meter.feed(Sample { at: samples.last().unwrap().at + 5 * MS, bytes: 3 }, 0);
        assert_eq!(meter.sent(), None);
    }
}
