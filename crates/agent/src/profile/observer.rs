//! A counter that is watched: samples come in, and now and then there is something new to tell.

use std::collections::VecDeque;
use std::time;

use metronome_core::model::profile::Traffic;

use super::{Learned, Sample, learn};

/// The latest samples of a counter, in bounded memory, and what was told of it.
#[derive(Debug, Default)]
pub struct Observer {
    samples: VecDeque<Sample>,
    /// Of so many samples one is kept: a period too long for what fits is looked for in coarser steps.
    keep_each: u64,
    seen: u64,
    /// Samples kept since the last look, and how many there are to be before the next.
    fresh: usize,
    told: Option<Learned>,
    /// Whether what was told was not found the last time.
    is_doubted: bool,
}

/// At steps of 5 ms twenty seconds.
const MOST_SAMPLES: usize = 4096;
const COARSEST: u64 = 16;

/// The first look, and the most samples between two.
const FIRST_LOOK: usize = 192;
const SELDOM: usize = 2048;

/// What is less sure than this is not relied on.
const SURE: f64 = 0.5;

/// Iterations of fewer usual steps are read in so many steps each, and never more often than that.
const FEW_STEPS: u32 = 4;
const STEPS: u32 = 8;
const CLOSEST: time::Duration = time::Duration::from_micros(1500);

/// What differs by less from what was told is noise: parts of the period, and of a rate.
const PERIOD_CHANGED: f64 = 0.003;
const PHASE_CHANGED: f64 = 0.01;
const RATE_CHANGED: f64 = 0.05;

impl Observer {
    /// Takes a sample in; says whether a look is worth its while.
    pub fn feed(&mut self, sample: Sample) -> bool {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.keep_each.max(1)) {
            return false;
        }
        if self.has_not_begun() {
            self.samples.clear();
            self.fresh = 0;
        }
        if self.samples.len() == MOST_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.fresh += 1;
        self.fresh >= self.next_look()
    }

    /// A program that starts and has sent nothing yet.
    fn has_not_begun(&self) -> bool {
        let level = |sample: Option<&Sample>| sample.map(|sample| sample.bytes);
        self.samples.len() >= FIRST_LOOK / 2 && level(self.samples.front()) == level(self.samples.back())
    }

    /// Samples between two looks: few until a profile is sure.
    fn next_look(&self) -> usize {
        match self.told.as_ref().is_some_and(|told| told.confidence >= SURE) {
            true => (self.samples.len() / 2).clamp(FIRST_LOOK, SELDOM),
            false => FIRST_LOOK,
        }
    }

    /// Looks at what there is; tells what is new.
    pub fn look(&mut self) -> Option<&Learned> {
        self.fresh = 0;
        let found = learn(self.samples.make_contiguous()).ok();
        let Some(found) = found else {
            self.find_nothing();
            return None;
        };
        self.is_doubted = false;
        let is_new = self.told.as_ref().is_none_or(|told| differs(told, &found));
        self.told = Some(found);
        self.told.as_ref().filter(|_| is_new)
    }

    /// What was found last.
    pub fn known(&self) -> Option<&Learned> {
        self.told.as_ref()
    }

    /// Whether the last look found it.
    pub fn is_fresh(&self) -> bool {
        !self.is_doubted
    }

    /// How often it is to be read, of what is usual: iterations of a few steps take a closer look.
    pub fn pace(&self, usual: time::Duration) -> time::Duration {
        let sure = self.told.as_ref().filter(|told| told.confidence >= SURE);
        let period = sure.map(|told| time::Duration::from_nanos(told.traffic.period().0));
        match period.filter(|period| *period < FEW_STEPS * usual) {
            Some(period) => (period / STEPS).max(CLOSEST).min(usual),
            None => usual,
        }
    }

    /// What was seen so far was seen from too far away; what was found of it still counts.
    pub fn look_closer(&mut self) {
        self.samples.clear();
        self.fresh = 0;
    }

    /// As after the counter of another member: nothing is known.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// What had a profile and now has none is about to change: what came before is in the way. If that does not help, or
    /// was never sure, what was told may have been a part of an iteration, and more samples will tell.
    fn find_nothing(&mut self) {
        match &self.told {
            Some(told) if told.confidence >= SURE && !self.is_doubted => {
                self.is_doubted = true;
                self.samples.drain(..self.samples.len() / 2);
                self.keep_each = (self.keep_each / 2).max(1);
            }
            Some(_) => self.told = None,
            None => self.look_coarser(),
        }
    }

    fn look_coarser(&mut self) {
        let now = self.keep_each.max(1);
        if self.samples.len() < MOST_SAMPLES || now >= COARSEST {
            return;
        }
        self.keep_each = now * 2;
        let mut odd = false;
        self.samples.retain(|_| {
            odd = !odd;
            odd
        });
    }
}

fn differs(told: &Learned, found: &Learned) -> bool {
    let (before, after) = (&told.traffic, &found.traffic);
    let period = before.period().0 as f64;
    let off = |one: u64, other: u64| one.abs_diff(other) as f64;
    off(before.period().0, after.period().0) > PERIOD_CHANGED * period
        || before.phases().len() != after.phases().len()
        || phases_differ(before, after)
        || found.confidence > told.confidence + 0.1
}

/// Whether one of them lies elsewhere, seen from the first, or has another rate.
fn phases_differ(before: &Traffic, after: &Traffic) -> bool {
    let period = before.period().0 as f64;
    let first = |traffic: &Traffic| traffic.phases().first().map_or(0, |phase| phase.offset.0) as f64;
    let (one, other) = (first(before), first(after));
    before.phases().iter().zip(after.phases()).any(|(before, after)| {
        let moved = (before.offset.0 as f64 - one) - (after.offset.0 as f64 - other);
        let longer = before.length.0 as f64 - after.length.0 as f64;
        let faster = before.rate.0 as f64 / after.rate.0 as f64 - 1.0;
        moved.abs() > PHASE_CHANGED * period
            || longer.abs() > PHASE_CHANGED * period
            || faster.abs() > RATE_CHANGED
    })
}

#[cfg(test)]
mod tests {
    use metronome_core::model::profile::Phase;
    use metronome_core::model::units::{Bandwidth, Duration};

    use super::*;

    /// How many of 512 samples are left after looks that find nothing, where something was told before.
    fn left_after_nothing_is_found(confidence: f64, looks: usize) -> usize {
        let phase = Phase { offset: Duration(0), length: Duration(50), rate: Bandwidth(8) };
        let told = Learned {
            traffic: Traffic::new(Duration(100), vec![phase]).unwrap(),
            noise: 0.4,
            confidence,
            iterations: 6,
            seen: [0, 600],
            bytes: 50.0,
            laps: Vec::new(),
            began: 0,
            level: 0,
            rates: vec![8.0, 0.0],
        };
        let mut observer = Observer { told: Some(told), ..Observer::default() };
        for step in 0..512 {
            observer.feed(Sample { at: step * 5_000_000, bytes: step });
        }
        assert!((0..looks).all(|_| observer.look().is_none()));
        observer.samples.len()
    }

    /// Members of a ring wait for each other, so parts of a long iteration look like iterations at first.
    #[test]
    fn what_was_told_too_early_does_not_stand_in_the_way() {
        assert_eq!(left_after_nothing_is_found(0.3, 1), 512);
        assert_eq!(left_after_nothing_is_found(0.9, 1), 256);
        assert_eq!(left_after_nothing_is_found(0.9, 4), 256);
    }
}
