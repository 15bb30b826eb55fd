//! Rates remembered: a component's flows meet in the same sets again and again, and the rates follow from the set.
//!
//! One place for each set where they are few, and otherwise as many places as are worth their memory, where a set
//! drives out the one it falls on.

const MOST_PLACES: usize = 1 << 12;

#[derive(Debug, Default)]
pub(super) struct Memo {
    flows: usize,
    /// The set whose rates are here; the empty set, which has none, where nothing is.
    sets: Vec<u64>,
    rates: Vec<f64>,
}

impl Memo {
    /// For so many flows, at most 64: a set is a word.
    pub(super) fn new(flows: usize) -> Self {
        let places = if flows < 12 { 1 << flows } else { MOST_PLACES };
        Self { flows, sets: vec![0; places], rates: vec![0.0; places * flows] }
    }

    pub(super) fn rates(&mut self, set: u64, work_out: impl FnOnce(&mut [f64])) -> &[f64] {
        let place = self.place(set);
        let here = &mut self.rates[place * self.flows..][..self.flows];
        if self.sets[place] != set {
            work_out(here);
            self.sets[place] = set;
        }
        here
    }

    fn place(&self, set: u64) -> usize {
        if self.sets.len() < MOST_PLACES {
            return set as usize;
        }
        // The upper bits of a product depend on all bits of the set.
        (set.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_worked_out_once_for_each_set() {
        let mut memo = Memo::new(3);
        assert_eq!(memo.rates(0b101, |rates| rates.copy_from_slice(&[1.0, 0.0, 2.0])), [1.0, 0.0, 2.0]);
        assert_eq!(memo.rates(0b101, |_| panic!("known")), [1.0, 0.0, 2.0]);
        assert_eq!(memo.rates(0b111, |rates| rates.fill(7.0)), [7.0; 3]);
    }

    #[test]
    fn sets_that_fall_on_one_place_drive_each_other_out() {
        let mut memo = Memo::new(64);
        for set in 1..20_000_u64 {
            assert_eq!(memo.rates(set, |rates| rates.fill(set as f64))[5], set as f64);
        }
    }
}
