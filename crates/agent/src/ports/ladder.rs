//! How a job stands on links, and how that changes in the course of an iteration: the steps of its lane, said in `prio` and
//! `quantum`.

use metronome_core::lane::{Follows, Word};

/// How far a job has come in its iteration: so much of so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    pub sent: f64,
    pub volume: f64,
    /// What the link carries, in bytes a nanosecond.
    pub best: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    class: u8,
    weight: u32,
    follows: Follows,
}

/// A leaf's place among those that borrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) prio: u8,
    pub(super) quantum: u32,
}

/// HTB knows as many as lanes have classes.
const LAST_CLASS: u8 = 7;
/// The largest packet: whose turn it is sends one at least, so smaller parts would all be the same.
const LEAST_QUANTUM: u32 = 9014;
/// In a round every leaf sends its part: the larger parts are, the longer others wait for theirs, and a leaf seldom has
/// more waiting.
const MOST_QUANTUM: u32 = 16 * LEAST_QUANTUM;
impl Ladder {
    /// Nothing where a word leaves links alone.
    pub(super) fn of(word: &Word) -> Option<Self> {
        let weight = word.weight.max(1);
        let class = word.class.min(LAST_CLASS);
        let is_fair = class == 0 && weight == 1 && word.follows == Follows::Nothing;
        (!is_fair).then_some(Self { class, weight, follows: word.follows })
    }

    pub fn changes(&self) -> bool {
        self.follows != Follows::Nothing
    }

    /// On the lowest step, as long as nothing is known.
    pub(super) fn begins(&self) -> Standing {
        self.standing(Rung { sent: 0.0, volume: 1e18, best: 1.0 })
    }

    pub(super) fn standing(&self, rung: Rung) -> Standing {
        let marks = self.follows.marks(rung.volume, Some(rung.best));
        let step = marks.partition_point(|mark| *mark <= rung.sent);
        let weight = self.weight.saturating_mul(self.follows.part(step as u8, marks.len()));
        Standing { prio: self.class, quantum: LEAST_QUANTUM.saturating_mul(weight).min(MOST_QUANTUM) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(follows: Follows) -> Ladder {
        Ladder { class: 0, weight: 1, follows }
    }

    fn quanta(ladder: &Ladder, sent: &[f64]) -> Vec<u32> {
        let rung = |sent: &f64| Rung { sent: *sent, volume: 100.0, best: 0.5e-6 };
        sent.iter().map(|sent| ladder.standing(rung(sent)).quantum / LEAST_QUANTUM).collect()
    }

    #[test]
    fn whoever_has_sent_more_gets_more() {
        assert_eq!(quanta(&ladder(Follows::BytesSent), &[0.0, 12.0, 13.0, 50.0, 100.0]), [1, 1, 3, 9, 15]);
        assert_eq!(quanta(&ladder(Follows::PartLeft), &[0.0, 25.0, 50.0, 75.0, 100.0]), [1, 3, 7, 16, 16]);
        assert_eq!(quanta(&ladder(Follows::BytesLeft), &[0.0, 39.0, 40.0, 80.0, 94.0]), [1, 1, 3, 7, 16]);
        assert_eq!(quanta(&ladder(Follows::Nothing), &[0.0, 99.0]), [1, 1]);
    }
}
