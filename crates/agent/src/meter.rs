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
    /// The counter when this iteration began to send; between two bursts what it says now.
    level: u64,
    /// The counter of the opposite direction at the end of the last burst.
    opposite: u64,
    is_paused: bool,
    /// Since when the counter stands still.
    still_since: Option<u64>,
    /// How many bursts in a row ended where they were expected to.
    ends_met: u8,
    /// How many profiles in a row said that iterations begin elsewhere.
    contradicted: u8,
    /// The end of a burst was missed.
    lost: Option<Lost>,
}

/// A search for the end of a burst, over the bytes of one iteration: the counter stands still longest there.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// The counter when the search began.
    from: u64,
    /// The longest stand so far, and the counter then.
    longest: u64,
    level: u64,
}

/// What a step showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An iteration began to send, at that moment.
    Began(u64),
    /// It has sent all it had.
    Paused,
}

/// An iteration has sent its bytes when so much of them is sent and the counter stands still.
const NEARLY: f64 = 0.985;
/// Bytes vary a little: so much is enough where the counter stands still for this part of a burst. A last bucket that comes late
/// is not waited for.
const ALL: f64 = 0.9;
const LONG: f64 = 0.25;
/// The end of a burst was missed when there is so much.
const SURELY: f64 = 1.2;
/// Slower than this part of its usual rate it stands still.
const STILL: f64 = 0.3;
/// A level that was followed so far and is so near to what was found is kept.
const NEAR: f64 = 0.1;
/// What is sent besides is less than this part of an iteration.
const BESIDES: f64 = 0.02;
/// A level at which this many bursts in a row have ended is kept,
const MIN_ENDS_MET: u8 = 3;
/// unless this many profiles in a row contradict it.
const MIN_CONTRADICTIONS: u8 = 2;

impl Known {
    fn new(volume: f64, rate: f64, level: u64, opposite: u64) -> Self {
        Self {
            volume,
            rate,
            level,
            opposite,
            is_paused: false,
            still_since: None,
            ends_met: 0,
            contradicted: 0,
            lost: None,
        }
    }

    /// Whether iterations begin about there, counted in whole iterations.
    fn begins_near(&self, level: u64) -> bool {
        let apart = (self.level.abs_diff(level) as f64 / self.volume).fract();
        apart.min(1.0 - apart) < NEAR
    }

    /// Takes over a newer profile. The meter sees pauses as they come and a profile is some iterations old, so a level that bursts have
    /// confirmed is kept unless profiles contradict it again and again.
    fn with(mut self, newer: Self) -> Self {
        let agrees = self.begins_near(newer.level);
        self.contradicted = if agrees { 0 } else { self.contradicted + 1 };
        let sends_as_much = (newer.volume / self.volume - 1.0).abs() < NEAR;
        let is_met = self.ends_met >= MIN_ENDS_MET && self.contradicted < MIN_CONTRADICTIONS;
        let is_kept = sends_as_much && (agrees || is_met);
        if is_kept { Self { volume: newer.volume, rate: newer.rate, ..self } } else { newer }
    }

    fn sent(&self, sample: Sample) -> f64 {
        sample.bytes.saturating_sub(self.level) as f64
    }

    /// For how long the counter has stood still.
    fn stands(&self, sample: Sample) -> u64 {
        self.still_since.map_or(0, |since| sample.at.saturating_sub(since))
    }

    /// Whether a burst has ended, while the counter stands still.
    fn has_ended(&self, sample: Sample) -> bool {
        let is_long = self.stands(sample) as f64 >= LONG * self.volume / self.rate;
        let enough = if is_long { ALL } else { NEARLY };
        self.sent(sample) >= enough * self.volume
    }

    fn pause(&mut self, sample: Sample, opposite: u64) -> Event {
        (self.level, self.opposite, self.is_paused, self.lost) = (sample.bytes, opposite, true, None);
        self.ends_met = self.ends_met.saturating_add(1);
        Event::Paused
    }

    /// Looks for the end of a burst that was missed, over one iteration, and counts from there.
    fn search(&mut self, sample: Sample) {
        let stands = self.stands(sample);
        let Some(lost) = &mut self.lost else { return };
        if stands > lost.longest {
            (lost.longest, lost.level) = (stands, sample.bytes);
        }
        if (sample.bytes - lost.from) as f64 >= self.volume && stands == 0 {
            if lost.longest > 0 {
                self.level = lost.level;
            }
            self.lost = None;
        }
    }
}

impl Meter {
    pub fn learn(&mut self, learned: &Learned) {
        let squares: f64 = learned.rates.iter().map(|rate| rate * rate).sum();
        let usual = squares / learned.rates.iter().sum::<f64>().max(1.0);
        let volume = learned.bytes.max(1.0);
        // The last beginning that was seen is some iterations old.
        let now = self.last.map_or(learned.level, |last| last.bytes);
        let whole = (now.saturating_sub(learned.level) as f64 / volume).floor();
        let level = learned.level + (whole * volume) as u64;
        let newer = Known::new(volume, usual / 8e9, level, u64::MAX);
        self.known = Some(self.known.map_or(newer, |known| known.with(newer)));
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
            self.known = Some(Known { is_paused: true, ..Known::new(volume, rate, sample.bytes, opposite) });
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
        known.still_since = known.still_since.or(Some(before.at)).filter(|_| is_still);
        if known.is_paused {
            let handed_over = opposite.saturating_sub(known.opposite) as f64;
            if known.sent(sample).max(handed_over) >= BESIDES * known.volume {
                known.is_paused = false;
                let ago = (known.sent(sample) / known.rate) as u64;
                return Some(Event::Began((sample.at - ago.min(sample.at)).max(before.at)));
            }
            if is_still {
                known.level = sample.bytes;
            }
            return None;
        }
        if is_still && known.has_ended(sample) {
            return Some(known.pause(sample, opposite));
        }
        if known.sent(sample) >= SURELY * known.volume {
            known.level += known.volume as u64;
            known.ends_met = 0;
            let search = Lost { from: sample.bytes, longest: 0, level: sample.bytes };
            known.lost = known.lost.or(Some(search));
        }
        known.search(sample);
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

    /// The moments at which bursts begin by a meter that has a profile changed so, over so many iterations of 100 ms.
    fn beginnings(iterations: u64, change: impl FnOnce(&mut Learned)) -> Vec<u64> {
        let samples: Vec<Sample> = (0..iterations * 20)
            .map(|step| step * 5 * MS + 17)
            .map(|at| Sample { at, bytes: sent(at) })
            .collect();
        let (before, after) = samples.split_at(600);
        let mut learned = learn(before).unwrap();
        change(&mut learned);
        let mut meter = Meter::default();
        before.iter().for_each(|sample| {
            meter.feed(*sample, 0);
        });
        meter.learn(&learned);
        let began = |sample: &Sample| match meter.feed(*sample, 0) {
            Some(Event::Began(at)) => Some(at),
            _ => None,
        };
        after.iter().filter_map(began).collect()
    }

    fn is_a_beginning(at: u64) -> bool {
        let off = at % (100 * MS);
        off.min(100 * MS - off) < 3 * MS
    }

    #[test]
    fn a_profile_that_is_off_by_some_bytes_does_not_make_a_meter_drift() {
        for off in [0.997, 1.003, 1.02] {
            let began = beginnings(330, |learned| learned.bytes *= off);
            assert!((298..=301).contains(&began.len()), "{} of 300 iterations, off by {off}", began.len());
            assert!(began[1..].iter().all(|at| is_a_beginning(*at)), "off by {off}");
        }
    }

    #[test]
    fn a_meter_that_began_to_count_within_a_burst_finds_its_end_within_three_iterations() {
        for part in [0.2, 0.4, 0.7] {
            let began = beginnings(60, |learned| learned.level -= (part * learned.bytes) as u64);
            assert!((26..=30).contains(&began.len()), "{} of 30 iterations, off by {part}", began.len());
            assert!(began[1..].iter().all(|at| is_a_beginning(*at)), "off by {part}: {began:?}");
        }
    }

    #[test]
    fn pauses_that_were_seen_count_for_more_than_one_profile_that_contradicts_them() {
        let sample = |step: u64| Sample { at: step * 5 * MS, bytes: sent(step * 5 * MS) };
        let samples: Vec<Sample> = (0..600).map(sample).collect();
        let mut learned = learn(&samples).unwrap();
        let mut meter = Meter::default();
        samples.iter().for_each(|sample| {
            meter.feed(*sample, 0);
        });
        meter.learn(&learned);
        (600..800).for_each(|step| {
            meter.feed(sample(step), 0);
        });
        let followed = meter.sent();
        learned.level += 500_000;
        meter.learn(&learned);
        assert_eq!(meter.sent(), followed);
        meter.learn(&learned);
        assert_ne!(meter.sent(), followed, "two in a row");
    }
}
