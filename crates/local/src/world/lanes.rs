//! What jobs may do on links, as the agent is told: the same words that pods carry in a cluster.

use std::collections::BTreeMap;

use metronome_core::model::units::Moment;
use metronome_core::traffic::{TrafficDirective, TrafficPolicy};

/// The last word to each job.
#[derive(Debug, Default)]
pub(super) struct Words {
    of: BTreeMap<usize, TrafficDirective>,
    /// The number of the last word.
    generation: u64,
}

impl Words {
    /// Every number from now on is greater.
    pub(super) fn after(generation: u64) -> Self {
        Self { generation, ..Self::default() }
    }

    /// What a job is told now, in a world that began at `epoch`. A word stays while it says what is meant; it is said anew,
    /// of the same places, before it lapses.
    pub(super) fn say(
        &mut self,
        job: usize,
        lane: TrafficPolicy,
        now: Moment,
        epoch: Moment,
    ) -> Option<TrafficDirective> {
        let known = self.of.remove(&job).filter(|word| word.means(lane, epoch));
        if lane.is_default() {
            return None;
        }
        let word = match known {
            Some(word) if word.lasts(now) => word,
            known => {
                self.generation += 1;
                known.unwrap_or_else(|| TrafficDirective::of(lane, now, epoch)).said(self.generation, now)
            }
        };
        self.of.insert(job, word.clone());
        Some(word)
    }

    pub(super) fn forget_all_but(&mut self, is_there: impl Fn(usize) -> bool) {
        self.of.retain(|job, _| is_there(*job));
    }

    /// Whether none is to be said anew.
    pub(super) fn last(&self, now: Moment) -> bool {
        self.of.values().all(|word| word.lasts(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::model::units::Duration;
    use metronome_core::traffic::Turn;

    const EPOCH: Moment = Moment(1_794_830_400_000_000_000);

    fn after(minutes: u64) -> Moment {
        EPOCH + Duration::MINUTE.times(minutes)
    }

    fn lane(class: u8) -> TrafficPolicy {
        let turn = Turn { period: Duration(700_000_000), offset: Duration(300_000_000), watch: None };
        TrafficPolicy { class, turn: Some(turn), ..TrafficPolicy::default() }
    }

    #[test]
    fn a_word_stays_while_it_is_meant_and_is_said_anew_before_it_lapses() {
        let mut words = Words::after(7);
        let mut say = |class: u8, minutes: u64| {
            let word = words.say(0, lane(class), after(minutes), EPOCH).unwrap();
            (word.generation, word.anchor, word.valid_until)
        };
        assert_eq!(say(1, 0), (8, after(0), after(15)));
        assert_eq!(say(1, 9), (8, after(0), after(15)));
        assert_eq!(say(1, 11), (9, after(0), after(26)), "the same places for longer");
        assert_eq!(say(2, 12), (10, after(12), after(27)), "something else");
        assert!(words.last(after(20)) && !words.last(after(23)));
    }

    #[test]
    fn who_shares_fairly_is_told_nothing_and_who_has_gone_is_forgotten() {
        let mut words = Words::after(0);
        assert_eq!(words.say(0, TrafficPolicy::default(), after(0), EPOCH), None);
        words.say(1, lane(1), after(0), EPOCH);
        words.say(2, lane(1), after(0), EPOCH);
        assert_eq!(words.say(1, TrafficPolicy::default(), after(1), EPOCH), None);
        words.forget_all_but(|job| job == 0);
        assert!(words.last(after(60)), "nobody is left to be told: {words:?}");
    }
}
