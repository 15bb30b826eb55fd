//! Wire format of a traffic directive: the annotation of a pod, `members.json` and `turn.json`.
//!
//! | field | meaning |
//! |---|---|
//! | `generation` | monotonic version: consumers ignore lower values, including a previous leader's |
//! | `anchor`, `periodNs`, `turnNs` | iterations begin `turnNs` after the anchor and every `periodNs` from there; both are 0 without a turn |
//! | `held`, `holdNs` | `everyIteration`: an iteration that is early waits for its turn; `once`: the first iteration waits. A hold lasts `holdNs` at most; 0 means no hold |
//! | `toleranceNs`, `pauseNs` | a job that is held once is held again if an iteration begins further than `toleranceNs` from its turn, and not sooner than `pauseNs` after the last hold |
//! | `class` | from 0, served first, to 7 |
//! | `weight` | the share of a link relative to other jobs of the class; 1 if missing |
//! | `follows` | the quantity that changes class or weight in the course of an iteration: `bytesSent`, `bytesLeft`, `partLeft`, `firstCome` or `leastLeft` |
//! | `rotation` | `class` and `follows` by time window: `windowNs`, twelve `slots`, and `cycleBegan`, the beginning of a cycle |
//! | `validUntil` | from then on the directive is void |
//!
//! This is a contract: schedulers and agents of other versions, and the SDK in training code (`sdk/python`), read and write
//! the same format. Fields may be added; consumers ignore fields that they do not know. The durations below are part of the
//! contract and no tuning entries.

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
    /// The validity of a directive: it lapses if no scheduler renews it.
    pub const VALIDITY: Duration = Duration(15 * Duration::MINUTE.0);

    /// A directive is renewed this long before it lapses.
    const RENEWAL_MARGIN: Duration = Duration(5 * Duration::MINUTE.0);

    /// The directive of a traffic policy, with turns from an anchor on, in a world that began at `epoch`. It has no generation
    /// and no validity before it is [issued](Self::said).
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

    /// The class and `follows` at a moment.
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

    /// The same directive, issued now with a generation greater than all earlier ones.
    #[must_use]
    pub fn said(self, generation: u64, now: Moment) -> Self {
        Self { generation, valid_until: now + Self::VALIDITY, ..self }
    }

    /// Whether it is the directive of this traffic policy, whatever its generation and validity.
    pub fn means(&self, traffic: TrafficPolicy, epoch: Moment) -> bool {
        let Self { generation, valid_until, anchor, .. } = *self;
        *self == Self { generation, valid_until, ..Self::of(traffic, anchor, epoch) }
    }

    pub fn is_valid(&self, now: Moment) -> bool {
        now < self.valid_until
    }

    /// Whether it needs no renewal yet.
    pub fn lasts(&self, now: Moment) -> bool {
        self.is_valid(now + Self::RENEWAL_MARGIN)
    }

    /// How the job is held, if it is.
    pub fn holds(&self) -> Option<Held> {
        self.held.filter(|_| !self.hold.is_zero() && !self.period.is_zero())
    }

    /// The first turn that is not before a moment.
    pub fn next_place(&self, at: Moment) -> Moment {
        Moment(self.places().next(at.in_world_since(Moment::EPOCH)).0)
    }

    /// The time since the last turn before a moment.
    pub fn after_its_place(&self, at: Moment) -> Duration {
        let ahead = self.next_place(at).since(at);
        Duration(if ahead.is_zero() { 0 } else { self.period.0.saturating_sub(ahead.0) })
    }

    /// The distance from a moment to the nearest turn, before or after.
    pub fn distance(&self, at: Moment) -> Duration {
        self.places().distance(at.in_world_since(Moment::EPOCH))
    }

    /// Whether a job that was last held at `held` has drifted so far that it is held again.
    pub fn is_held_again(&self, now: Moment, held: Moment) -> bool {
        let has_drifted =
            |watch: Watch| self.distance(now) > watch.tolerance && now.since(held) >= watch.pause;
        self.places().watch.is_some_and(has_drifted)
    }

    /// The same turn for a world that began in 1970. Only a directive with both a tolerance and a pause is watched.
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

    /// Milliseconds after the anchor.
    fn at(ms: u64) -> Moment {
        ANCHOR + Duration(ms * MS)
    }

    #[test]
    fn a_directive_is_written_in_the_wire_format() {
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
    fn missing_fields_have_defaults_and_unknown_fields_are_ignored() {
        let least = r#"{"generation":1,"anchor":"2026-11-16T12:00:00Z","periodNs":0,"turnNs":0,
            "validUntil":"2026-11-16T12:15:00Z","news":[1,2]}"#;
        let directive: TrafficDirective = serde_json::from_str(least).unwrap();
        assert!(directive.means(TrafficPolicy::default(), Moment::EPOCH), "{directive:?}");
        assert_eq!(directive.holds(), None);
        for needed in ["generation", "anchor", "periodNs", "turnNs", "validUntil"] {
            let without = least.replace(needed, "other");
            assert!(serde_json::from_str::<TrafficDirective>(&without).is_err(), "{needed}");
        }
    }

    #[test]
    fn a_directive_means_its_traffic_policy_in_its_own_world_alone() {
        let epoch = Moment(ANCHOR.0 - 77 * MS);
        for traffic in [paced(), watched(), TrafficPolicy { class: 4, ..TrafficPolicy::default() }] {
            let directive = TrafficDirective::of(traffic, at(1_234), epoch).said(7, at(2_000));
            let read: TrafficDirective =
                serde_json::from_str(&serde_json::to_string(&directive).unwrap()).unwrap();
            assert!(read.means(traffic, epoch), "{directive:?}");
            assert!(!read.means(TrafficPolicy { class: 5, ..traffic }, epoch));
        }
        assert!(!TrafficDirective::of(paced(), ANCHOR, epoch).means(paced(), Moment(epoch.0 + 1)));
    }

    #[test]
    fn a_directive_lapses_and_is_renewed_before() {
        let directive = TrafficDirective::of(paced(), ANCHOR, ANCHOR).said(1, at(5));
        let end = at(5) + TrafficDirective::VALIDITY;
        assert!(
            directive.is_valid(at(5)) && directive.is_valid(Moment(end.0 - 1)) && !directive.is_valid(end)
        );
        let renewed = at(5) + Duration::from_secs(600);
        assert!(directive.lasts(Moment(renewed.0 - 1)) && !directive.lasts(renewed));
    }

    #[test]
    fn turns_come_every_period_also_before_the_anchor() {
        let directive = TrafficDirective::of(paced(), ANCHOR, ANCHOR);
        let next = |at: Moment| directive.next_place(at).0 - at.0;
        assert_eq!([0, 30, 31, 130].map(|ms| next(at(ms)) / MS), [30, 0, 99, 0]);
        assert_eq!(next(Moment(ANCHOR.0 - 70 * MS)), 0);
        let after = |ms: u64| directive.after_its_place(at(ms)).0 / MS;
        assert_eq!([0, 30, 31, 129, 330].map(after), [70, 0, 1, 99, 0]);
        let distance = |ms: u64| directive.distance(at(ms)).0 / MS;
        assert_eq!([0, 29, 30, 31, 80, 81].map(distance), [30, 1, 0, 1, 50, 49]);
    }

    #[test]
    fn a_job_without_a_turn_is_never_held() {
        let directive =
            TrafficDirective::of(TrafficPolicy { class: 1, ..TrafficPolicy::default() }, ANCHOR, ANCHOR);
        assert_eq!(directive.holds(), None);
        assert_eq!((directive.next_place(at(3)), directive.after_its_place(at(3))), (at(3), Duration::ZERO));
        assert!(!directive.is_held_again(at(10_000), ANCHOR));
    }

    #[test]
    fn a_job_that_has_drifted_is_held_again_and_not_too_soon() {
        let directive = TrafficDirective::of(watched(), ANCHOR, ANCHOR);
        assert!(!directive.is_held_again(at(1_133), at(31)), "near enough");
        assert!(!directive.is_held_again(at(140), at(31)), "too soon");
        assert!(directive.is_held_again(at(1_140), at(31)));
        let unwatched = TrafficDirective { pause: None, ..directive };
        assert!(!unwatched.is_held_again(at(1_140), at(31)), "a tolerance without a pause has no effect");
    }
}
