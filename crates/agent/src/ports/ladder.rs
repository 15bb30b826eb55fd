//! How a job stands on links, and how that changes in the course of an iteration: the steps of its lane, said in `prio` and
//! packets of `quantum`.

use metronome_core::traffic::burst_order::MIDDLE;
use metronome_core::traffic::{Follows, TrafficDirective};

/// How far a job has come in its iteration: so much of so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    pub sent: f64,
    pub volume: f64,
    /// What the link carries, in bytes a nanosecond.
    pub best: f64,
    /// The class of its burst, where that depends on the bursts under way when it begins.
    pub class: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ladder {
    class: u8,
    weight: u32,
    climbs: Climbs,
}

/// What a job's standing depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Climbs {
    /// What it has sent of its iteration.
    Sending(Follows),
    /// The bursts under way when its own begins.
    Order,
}

/// A leaf's place among those that borrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) prio: u8,
    /// How many of the largest packets its turn is for.
    pub(super) packets: u32,
}

/// HTB knows as many as lanes have classes.
const LAST_CLASS: u8 = 7;
/// In a round every leaf sends its part, one packet at least: the larger parts are, the longer other leaves wait for theirs, and a
/// leaf seldom has more waiting.
const MAX_PACKETS: u32 = 16;

impl Ladder {
    /// Nothing where a word leaves links alone. A job keeps its leaf in the fair windows of a rotation: the packets in a leaf
    /// that is removed are lost.
    pub(super) fn of(word: &TrafficDirective) -> Option<Self> {
        let (weight, class) = (word.weight.max(1), word.class.min(LAST_CLASS));
        let climbs = if is_ordered(word) { Climbs::Order } else { Climbs::Sending(word.follows) };
        let is_fair = class == 0 && weight == 1 && climbs == Climbs::Sending(Follows::Nothing);
        (!is_fair).then_some(Self { class, weight, climbs })
    }

    pub fn changes(&self) -> bool {
        self.climbs != Climbs::Sending(Follows::Nothing)
    }

    /// Where it starts, as long as nothing is known.
    pub(super) fn begins(&self) -> Standing {
        self.standing(Rung { sent: 0.0, volume: 1e18, best: 1.0, class: MIDDLE })
    }

    pub(super) fn standing(&self, rung: Rung) -> Standing {
        match self.climbs {
            Climbs::Order => self.in_class(rung.class, self.weight),
            Climbs::Sending(follows) => {
                let marks = follows.marks(rung.volume, Some(rung.best));
                let step = marks.partition_point(|mark| *mark <= rung.sent);
                self.in_class(self.class, self.weight.saturating_mul(follows.part(step as u8, marks.len())))
            }
        }
    }

    fn in_class(&self, class: u8, weight: u32) -> Standing {
        Standing { prio: class.min(LAST_CLASS), packets: weight.clamp(1, MAX_PACKETS) }
    }
}

/// Whether the class of a job depends on the bursts under way when its own begins.
pub fn is_ordered(word: &TrafficDirective) -> bool {
    word.rotation.is_some() || word.follows.orders_bursts()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(follows: Follows) -> Ladder {
        Ladder { class: 0, weight: 1, climbs: Climbs::Sending(follows) }
    }

    fn packets(ladder: &Ladder, sent: &[f64]) -> Vec<u32> {
        let rung = |sent: &f64| Rung { sent: *sent, volume: 100.0, best: 0.5e-6, class: 5 };
        sent.iter().map(|sent| ladder.standing(rung(sent)).packets).collect()
    }

    #[test]
    fn whoever_has_sent_more_gets_more() {
        assert_eq!(packets(&ladder(Follows::BytesSent), &[0.0, 12.0, 13.0, 50.0, 100.0]), [1, 1, 3, 9, 15]);
        assert_eq!(packets(&ladder(Follows::PartLeft), &[0.0, 25.0, 50.0, 75.0, 100.0]), [1, 3, 7, 16, 16]);
        assert_eq!(packets(&ladder(Follows::BytesLeft), &[0.0, 39.0, 40.0, 80.0, 94.0]), [1, 1, 3, 7, 16]);
        assert_eq!(packets(&ladder(Follows::Nothing), &[0.0, 99.0]), [1, 1]);
    }

    #[test]
    fn an_ordered_job_has_the_class_of_its_burst_and_its_bytes_do_not_matter() {
        let ladder = Ladder { class: 1, weight: 1, climbs: Climbs::Order };
        let standing = |sent| ladder.standing(Rung { sent, volume: 100.0, best: 1.0, class: 5 });
        assert_eq!(standing(0.0), Standing { prio: 5, packets: 1 });
        assert_eq!(standing(99.0), standing(0.0));
    }
}
