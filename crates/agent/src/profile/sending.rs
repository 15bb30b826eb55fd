//! How far what was learned of a job is from what it sent.
//!
//! Both are bytes over a period. A byte is displaced by as much as it lies earlier or later than it was sent; as nobody sees
//! from outside where an iteration begins, the two are turned against each other until they fit best.

use metronome_core::model::profile::Traffic;

/// What is sent over a period, in equal parts of it.
#[derive(Clone, Debug)]
pub struct Sending {
    parts: Vec<f64>,
}

const PARTS: usize = 500;

/// Of all bytes this part may lie anywhere.
const LEFT_OUT: f64 = 0.02;

impl Default for Sending {
    fn default() -> Self {
        Self { parts: vec![0.0; PARTS] }
    }
}

impl Sending {
    pub fn of(traffic: &Traffic) -> Self {
        let period = traffic.period().0 as f64;
        let mut sending = Self::default();
        for phase in traffic.phases() {
            let (from, length) = (phase.offset.0 as f64 / period, phase.length.0 as f64 / period);
            sending.add(from..from + length, phase.rate.0 as f64 * length);
        }
        sending
    }

    /// Bytes that are sent evenly between two moments, in periods. What goes beyond the end comes again at the beginning.
    pub fn add(&mut self, when: std::ops::Range<f64>, bytes: f64) {
        let (from, to) = (when.start * PARTS as f64, when.end * PARTS as f64);
        if to <= from {
            self.parts[(from as usize) % PARTS] += bytes;
            return;
        }
        let mut here = from;
        while here < to {
            let next = to.min(here.floor() + 1.0);
            self.parts[(here as usize) % PARTS] += bytes * (next - here) / (to - from);
            here = next;
        }
    }

    /// How far bytes are displaced, over the period, all but two percent of them. Half a period is the most there is.
    pub fn displacement(&self, other: &Self) -> f64 {
        let (one, other) = (self.shares(), other.shares());
        (0..PARTS).map(|turn| displacement_at(&one, &other, turn)).min().unwrap_or(PARTS / 2) as f64
            / PARTS as f64
    }

    fn shares(&self) -> Vec<f64> {
        let all: f64 = self.parts.iter().sum();
        self.parts.iter().map(|part| part / all.max(f64::MIN_POSITIVE)).collect()
    }
}

fn displacement_at(one: &[f64], other: &[f64], turn: usize) -> usize {
    let sums = |shares: &[f64], turn: usize| -> Vec<f64> {
        let mut sum = 0.0;
        // Three times around, so that no place of the second is special.
        (0..3 * PARTS)
            .map(|at| {
                sum += shares[(at + turn) % PARTS];
                sum
            })
            .collect()
    };
    let (one, other) = (sums(one, 0), sums(other, turn));
    // Sums that begin at another place of the period differ by a constant.
    let mean = |sums: &[f64]| sums.iter().sum::<f64>() / sums.len() as f64;
    let level = mean(&one) - mean(&other);
    let fits = |reach: usize| {
        (PARTS..2 * PARTS).all(|at| {
            let (low, high) = (other[at - reach] + level, other[at + reach] + level);
            low - LEFT_OUT <= one[at] && one[at] <= high + LEFT_OUT
        })
    };
    (0..PARTS / 2).find(|reach| fits(*reach)).unwrap_or(PARTS / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bursts(bursts: &[(f64, f64, f64)]) -> Sending {
        let mut sending = Sending::default();
        bursts.iter().for_each(|(from, to, bytes)| sending.add(*from..*to, *bytes));
        sending
    }

    #[test]
    fn what_begins_elsewhere_in_the_period_is_the_same() {
        let one = bursts(&[(0.1, 0.3, 2.0), (0.6, 0.7, 1.0)]);
        let other = bursts(&[(0.9, 1.1, 20.0), (0.4, 0.5, 10.0)]);
        assert!(one.displacement(&other) <= 0.004, "{}", one.displacement(&other));
    }

    #[test]
    fn a_burst_that_comes_later_is_displaced_by_as_much() {
        let one = bursts(&[(0.0, 0.2, 1.0), (0.5, 0.7, 1.0)]);
        let other = bursts(&[(0.0, 0.2, 1.0), (0.6, 0.8, 1.0)]);
        let displaced = one.displacement(&other);
        assert!((0.04..=0.06).contains(&displaced), "half by each: {displaced}");
    }

    #[test]
    fn two_percent_may_lie_anywhere_and_no_more() {
        let one = bursts(&[(0.0, 0.2, 1.0)]);
        assert!(one.displacement(&bursts(&[(0.0, 0.2, 0.985), (0.5, 0.52, 0.015)])) <= 0.004);
        assert!(one.displacement(&bursts(&[(0.0, 0.2, 0.9), (0.5, 0.52, 0.1)])) > 0.1);
    }
}
