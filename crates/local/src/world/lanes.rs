//! What jobs may do on links, as the agent is told: the same words that pods carry in a cluster.

use std::time::SystemTime;

use jiff::Timestamp;
use metronome_core::lane::{Follows, Lane};
use metronome_core::units::{Duration, Instant};
use serde_json::{Value, json};

/// A word lapses, should whoever said it be gone.
const VALID_FOR: Duration = Duration(15 * Duration::MINUTE.0);

/// The word of a lane, under a number that is greater than that of every earlier one.
pub(super) fn word(lane: Lane, generation: u64, now: Instant, epoch: SystemTime) -> Value {
    let held = match (lane.pace, lane.turn) {
        (Some(pace), _) => Some((pace.turn, "everyIteration")),
        (None, turn) => turn.map(|turn| (turn, "once")),
    };
    let turn = held.map(|(turn, _)| turn);
    let period = turn.map_or(0, |turn| turn.period.0);
    let watch = turn.and_then(|turn| turn.watch);
    let mut word = json!({
        "generation": generation,
        "anchor": timestamp(epoch, now),
        "periodNs": period,
        "turnNs": turn.map_or(0, |turn| turn.next(now).since(now).0),
        "class": lane.class,
        "holdNs": period,
        "validUntil": timestamp(epoch, now + VALID_FOR),
    });
    let mut say = |name: &str, value: Value| word[name] = value;
    if let Some((_, held)) = held {
        say("held", json!(held));
    }
    if let Some(watch) = watch {
        say("toleranceNs", json!(watch.tolerance.0));
        say("pauseNs", json!(watch.pause.0));
    }
    if lane.weight != 1 {
        say("weight", json!(lane.weight));
    }
    if lane.follows != Follows::Nothing {
        say("follows", json!(lane.follows));
    }
    word
}

fn timestamp(epoch: SystemTime, at: Instant) -> String {
    let moment = epoch + std::time::Duration::from_nanos(at.0);
    Timestamp::try_from(moment).unwrap_or(Timestamp::MAX).to_string()
}
