//! A traffic policy in words: what is said of it to whoever carries it out, on pods, in `members.json` and in `turn.json`.
//!
//! | field | says |
//! |---|---|
//! | `generation` | which word this is: greater than that of every earlier one, also of an earlier leader |
//! | `anchor`, `periodNs`, `turnNs` | its iterations are to begin `turnNs` after the anchor, and every `periodNs` from there; without a turn both are 0 |
//! | `held`, `holdNs` | `everyIteration`: whoever is early waits for its turn; `once`: it waits the first time. For `holdNs` at most; nobody is held where that is 0 |
//! | `toleranceNs`, `pauseNs` | who is held once is held again when it begins so far from its turn, and not sooner than so long after |
//! | `class` | from 0, served first, to 7 |
//! | `weight` | its part of a link beside others of its class; 1 where nothing is said |
//! | `follows` | what class and weight follow in the course of an iteration: `bytesSent`, `bytesLeft`, `partLeft`, `firstCome` or `leastLeft` |
//! | `rotation` | `class` and `follows` by time window: `windowNs`, twelve `slots`, and `cycleBegan`, the beginning of a cycle |
//! | `validUntil` | after that it is as if nothing had been said |
//!
//! This is a contract: schedulers and agents of other versions, and the SDK in training code of others (`sdk/python`),
//! read and write the same. Fields may be added, and whoever does not know them ignores them.

use serde::{Deserialize, Serialize};

use super::{Follows, Rotation, Slot, TrafficPolicy, Turn, Watch, is_one, one};
use crate::model::units::{Duration, Instant, Moment};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficDirective {
    pub generation: u64,
    pub anchor: Moment,
    #[serde(rename = "periodNs")]
    pub period: Duration,
    #[serde(rename = "turnNs")]
    pub turn: Duration,
    #[serde(default)]
    pub class: u8,
    #[serde(default, rename = "holdNs")]
    pub hold: Duration,
    pub valid_until: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    #[serde(default, rename = "toleranceNs", skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Duration>,
    #[serde(default, rename = "pauseNs", skip_serializing_if = "Option::is_none")]
    pub pause: Option<Duration>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    #[serde(default, skip_serializing_if = "Follows::is_nothing")]
    pub follows: Follows,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// The beginning of a cycle of the rotation. Every later cycle follows at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_began: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    Once,
    EveryIteration,
}

impl TrafficDirective {
    /// So long a word is good for: it lapses, should whoever said it be gone.
    pub const GOOD_FOR: Duration = Duration(15 * Duration::MINUTE.0);

    /// So long before its end it is said anew.
    const RENEWED_BEFORE: Duration = Duration(5 * Duration::MINUTE.0);

    /// What a traffic policy says of turns from an anchor on, in a world that began at `epoch`. It is still to be [said](Self::said).
    pub fn of(traffic: TrafficPolicy, anchor: Moment, epoch: Moment) -> Self {
        let held = match (traffic.pace, traffic.turn) {
            (Some(pace), _) => Some((pace.turn, Held::EveryIteration)),
            (None, turn) => turn.map(|turn| (turn, Held::Once)),
        };
        let turn = held.map(|(turn, _)| turn);
        let period = turn.map_or(Duration::ZERO, |turn| turn.period);
        let watch = turn.and_then(|turn| turn.watch);
        let begins = anchor.in_world_since(epoch);
        Self {
            generation: 0,
            anchor,
            period,
            turn: turn.map_or(Duration::ZERO, |turn| turn.next(begins).since(begins)),
            class: traffic.class,
            hold: period,
            valid_until: Moment::EPOCH,
            held: held.map(|(_, held)| held),
            tolerance: watch.map(|watch| watch.tolerance),
            pause: watch.map(|watch| watch.pause),
            weight: traffic.weight,
            follows: traffic.follows,
            rotation: traffic.rotation,
            cycle_began: traffic.rotation.map(|rotation| {
                let cycle = rotation.cycle().0.max(1);
                epoch + Duration(begins.0 / cycle * cycle)
            }),
        }
    }

    /// Class and `follows` at a moment.
    pub fn slot_at(&self, now: Moment) -> Slot {
        match self.rotation {
            Some(rotation) => rotation.at(self.in_cycle(now)),
            None => Slot { class: self.class, follows: self.follows },
        }
    }

    /// The window of the rotation at a moment.
    pub fn window_at(&self, now: Moment) -> Option<usize> {
        self.rotation.map(|rotation| rotation.window_at(self.in_cycle(now)))
    }

    /// Time since the beginning of a cycle.
    fn in_cycle(&self, now: Moment) -> Instant {
        now.in_world_since(self.cycle_began.unwrap_or(Moment::EPOCH))
    }

    /// The same, said now under a number that is greater than that of every earlier word.
    #[must_use]
    pub fn said(self, generation: u64, now: Moment) -> Self {
        Self { generation, valid_until: now + Self::GOOD_FOR, ..self }
    }

    /// Whether it says what this traffic policy is, whenever that was said.
    pub fn means(&self, traffic: TrafficPolicy, epoch: Moment) -> bool {
        let Self { generation, valid_until, anchor, .. } = *self;
        *self == Self { generation, valid_until, ..Self::of(traffic, anchor, epoch) }
    }

    pub fn is_valid(&self, now: Moment) -> bool {
        now < self.valid_until
    }

    /// Whether it need not be said anew yet.
    pub fn lasts(&self, now: Moment) -> bool {
        self.is_valid(now + Self::RENEWED_BEFORE)
    }

    /// How it is held, if anybody is to be held by it.
    pub fn holds(&self) -> Option<Held> {
        self.held.filter(|_| !self.hold.is_zero() && !self.period.is_zero())
    }

    /// The first of its places that is not before a moment.
    pub fn next_place(&self, at: Moment) -> Moment {
        Moment(self.places().next(at.in_world_since(Moment::EPOCH)).0)
    }

    /// How far a moment is after the place before it.
    pub fn after_its_place(&self, at: Moment) -> Duration {
        let ahead = self.next_place(at).since(at);
        Duration(if ahead.is_zero() { 0 } else { self.period.0.saturating_sub(ahead.0) })
    }

    /// How far it is from a moment to the nearest place, before or after.
    pub fn distance(&self, at: Moment) -> Duration {
        self.places().distance(at.in_world_since(Moment::EPOCH))
    }

    /// Whether who was held once, then, has drifted so far that it is held again.
    pub fn is_held_again(&self, now: Moment, held: Moment) -> bool {
        let has_drifted =
            |watch: Watch| self.distance(now) > watch.tolerance && now.since(held) >= watch.pause;
        self.places().watch.is_some_and(has_drifted)
    }

    /// The same turn for a world that began in 1970. Who is watched is told both how far it may drift and for how long it
    /// is left alone.
    fn places(&self) -> Turn {
        let period = self.period.0.max(1);
        let offset = Duration(self.anchor.0 % period + self.turn.0 % period);
        let watch = self.tolerance.zip(self.pause).map(|(tolerance, pause)| Watch { tolerance, pause });
        Turn { period: self.period, offset, watch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::Pace;

    const MS: u64 = 1_000_000;
    const ANCHOR: Moment = Moment(1_794_830_400_123_456_789);

    fn turn(watch: Option<Watch>) -> Turn {
        Turn { period: Duration(100 * MS), offset: Duration(30 * MS), watch }
    }

    fn paced() -> TrafficPolicy {
        let pace = Pace { turn: turn(None), holds_by_itself: None };
        TrafficPolicy { class: 2, follows: Follows::BytesSent, pace: Some(pace), ..TrafficPolicy::default() }
    }

    fn watched() -> TrafficPolicy {
        let watch = Watch { tolerance: Duration(5 * MS), pause: Duration(1_000 * MS) };
        TrafficPolicy { weight: 3, turn: Some(turn(Some(watch))), ..TrafficPolicy::default() }
    }

    /// So many milliseconds after the anchor.
    fn at(ms: u64) -> Moment {
        ANCHOR + Duration(ms * MS)
    }

    #[test]
    fn a_word_is_written_as_everybody_reads_it() {
        let text = |traffic: TrafficPolicy| {
            serde_json::to_string(&TrafficDirective::of(traffic, ANCHOR, ANCHOR).said(12_884_901_890, ANCHOR))
                .unwrap()
        };
        let begins = r#"{"generation":12884901890,"anchor":"2026-11-16T12:00:00.123456789Z","#;
        let valid = r#""validUntil":"2026-11-16T12:15:00.123456789Z""#;
        let rest = r#","held":"everyIteration","follows":"bytesSent"}"#;
        let turn = r#""periodNs":100000000,"turnNs":30000000,"class":2,"holdNs":100000000,"#;
        assert_eq!(text(paced()), format!("{begins}{turn}{valid}{rest}"));
        let rest = r#","held":"once","toleranceNs":5000000,"pauseNs":1000000000,"weight":3}"#;
        let turn = r#""periodNs":100000000,"turnNs":30000000,"class":0,"holdNs":100000000,"#;
        assert_eq!(text(watched()), format!("{begins}{turn}{valid}{rest}"));
        let none = r#""periodNs":0,"turnNs":0,"class":1,"holdNs":0,"#;
        assert_eq!(
            text(TrafficPolicy { class: 1, ..TrafficPolicy::default() }),
            format!("{begins}{none}{valid}}}")
        );
    }

    #[test]
    fn what_is_left_out_means_nothing_and_what_is_not_known_is_ignored() {
        let least = r#"{"generation":1,"anchor":"2026-11-16T12:00:00Z","periodNs":0,"turnNs":0,
            "validUntil":"2026-11-16T12:15:00Z","news":[1,2]}"#;
        let word: TrafficDirective = serde_json::from_str(least).unwrap();
        assert!(word.means(TrafficPolicy::default(), Moment::EPOCH), "{word:?}");
        assert_eq!(word.holds(), None);
        for needed in ["generation", "anchor", "periodNs", "turnNs", "validUntil"] {
            let without = least.replace(needed, "other");
            assert!(serde_json::from_str::<TrafficDirective>(&without).is_err(), "{needed}");
        }
    }

    #[test]
    fn a_word_means_its_lane_whenever_it_was_said_and_in_its_world_alone() {
        let epoch = Moment(ANCHOR.0 - 77 * MS);
        for traffic in [paced(), watched(), TrafficPolicy { class: 4, ..TrafficPolicy::default() }] {
            let word = TrafficDirective::of(traffic, at(1_234), epoch).said(7, at(2_000));
            let read: TrafficDirective =
                serde_json::from_str(&serde_json::to_string(&word).unwrap()).unwrap();
            assert!(read.means(traffic, epoch), "{word:?}");
            assert!(!read.means(TrafficPolicy { class: 5, ..traffic }, epoch));
        }
        assert!(!TrafficDirective::of(paced(), ANCHOR, epoch).means(paced(), Moment(epoch.0 + 1)));
    }

    #[test]
    fn a_word_lapses_and_is_said_anew_before() {
        let word = TrafficDirective::of(paced(), ANCHOR, ANCHOR).said(1, at(5));
        let end = at(5) + TrafficDirective::GOOD_FOR;
        assert!(word.is_valid(at(5)) && word.is_valid(Moment(end.0 - 1)) && !word.is_valid(end));
        let renewed = at(5) + Duration::from_secs(600);
        assert!(word.lasts(Moment(renewed.0 - 1)) && !word.lasts(renewed));
    }

    #[test]
    fn places_come_every_period_before_the_anchor_too() {
        let word = TrafficDirective::of(paced(), ANCHOR, ANCHOR);
        let next = |at: Moment| word.next_place(at).0 - at.0;
        assert_eq!([0, 30, 31, 130].map(|ms| next(at(ms)) / MS), [30, 0, 99, 0]);
        assert_eq!(next(Moment(ANCHOR.0 - 70 * MS)), 0);
        let after = |ms: u64| word.after_its_place(at(ms)).0 / MS;
        assert_eq!([0, 30, 31, 129, 330].map(after), [70, 0, 1, 99, 0]);
        let distance = |ms: u64| word.distance(at(ms)).0 / MS;
        assert_eq!([0, 29, 30, 31, 80, 81].map(distance), [30, 1, 0, 1, 50, 49]);
    }

    #[test]
    fn whoever_has_no_turn_is_held_by_nobody_and_nothing_breaks() {
        let word =
            TrafficDirective::of(TrafficPolicy { class: 1, ..TrafficPolicy::default() }, ANCHOR, ANCHOR);
        assert_eq!(word.holds(), None);
        assert_eq!((word.next_place(at(3)), word.after_its_place(at(3))), (at(3), Duration::ZERO));
        assert!(!word.is_held_again(at(10_000), ANCHOR));
    }

    #[test]
    fn who_has_drifted_is_held_again_and_not_too_soon() {
        let word = TrafficDirective::of(watched(), ANCHOR, ANCHOR);
        assert!(!word.is_held_again(at(1_133), at(31)), "near enough");
        assert!(!word.is_held_again(at(140), at(31)), "too soon");
        assert!(word.is_held_again(at(1_140), at(31)));
        let unwatched = TrafficDirective { pause: None, ..word };
        assert!(!unwatched.is_held_again(at(1_140), at(31)), "half of what is to be said says nothing");
    }
}
