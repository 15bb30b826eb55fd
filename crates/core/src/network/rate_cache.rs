//! Rates remembered: a component's flows meet in the same sets again and again, and the rates follow from the set and,
//! where the standing of flows follows what they send, from how many marks each has passed.
//!
//! One place for each set where they are few, and otherwise as many places as are worth their memory, where a set
//! drives out the one it falls on.

const MOST_PLACES: usize = 1 << 12;

/// Enough where sets are remembered together with marks: those that come again come soon.
const PLACES_WITH_MARKS: usize = 1 << 9;

#[derive(Debug, Default)]
pub(super) struct Memo {
    flows: usize,
    /// The meeting whose rates are here; that of nobody, which has none, where nothing is.
    known: Vec<Meeting>,
    marks: Marks,
    rates: Vec<f64>,
}

/// Whether the standing of flows follows what they send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Marks {
    #[default]
    None,
    Some,
}

/// Who is sending, one bit each, and how many marks each has passed, four bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) set: u64,
    pub(super) rungs: u128,
}

impl Meeting {
    /// A flow that has passed so many marks.
    pub(super) fn note(&mut self, flow: u32, rung: u8) {
        self.rungs |= u128::from(rung) << (4 * flow);
    }
}

impl Memo {
    /// For so many flows, if they are few enough for a meeting to be a few words.
    pub(super) fn new(flows: usize, marks: Marks) -> Option<Self> {
        let (most, places) = match marks {
            Marks::None => (64, if flows < 12 { 1 << flows } else { MOST_PLACES }),
            Marks::Some => (32, PLACES_WITH_MARKS),
        };
        (2..=most).contains(&flows).then(|| Self {
            flows,
            known: vec![Meeting::default(); places],
            marks,
            rates: vec![0.0; places * flows],
        })
    }

    pub(super) fn rates(&mut self, meeting: Meeting, work_out: impl FnOnce(&mut [f64])) -> &[f64] {
        let place = self.place(meeting);
        let here = &mut self.rates[place * self.flows..][..self.flows];
        if self.known[place] != meeting {
            work_out(here);
            self.known[place] = meeting;
        }
        here
    }

    fn place(&self, meeting: Meeting) -> usize {
        let places = self.known.len();
        if self.marks == Marks::None && places < MOST_PLACES {
            return meeting.set as usize;
        }
        let Meeting { set, rungs } = meeting;
        let mixed = [rungs as u64, (rungs >> 64) as u64]
            .into_iter()
            .fold(set, |mixed, word| (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        // The upper bits of a product depend on all bits of the set.
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - places.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(set: u64) -> Meeting {
        Meeting { set, rungs: 0 }
    }

    #[test]
    fn rates_are_worked_out_once_for_each_set() {
        let mut memo = Memo::new(3, Marks::None).unwrap();
        assert_eq!(
            memo.rates(meeting(0b101), |rates| rates.copy_from_slice(&[1.0, 0.0, 2.0])),
            [1.0, 0.0, 2.0]
        );
        assert_eq!(memo.rates(meeting(0b101), |_| panic!("known")), [1.0, 0.0, 2.0]);
        assert_eq!(memo.rates(meeting(0b111), |rates| rates.fill(7.0)), [7.0; 3]);
    }

    #[test]
    fn sets_that_fall_on_one_place_drive_each_other_out() {
        let mut memo = Memo::new(64, Marks::None).unwrap();
        for set in 1..20_000_u64 {
            assert_eq!(memo.rates(meeting(set), |rates| rates.fill(set as f64))[5], set as f64);
        }
    }
}
