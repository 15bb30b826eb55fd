//! What jobs may do on links, said on their pods for the agents on the nodes to carry out.
//!
//! Each pod of a job that has a lane of its own carries `metronome.dev/turn`:
//!
//! | field | says |
//! |---|---|
//! | `generation` | which word this is: greater than that of every earlier one, also of an earlier leader |
//! | `anchor`, `periodNs`, `turnNs` | its iterations are to begin `turnNs` after the anchor, and every `periodNs` from there; without a turn both are 0 |
//! | `held`, `holdNs` | `everyIteration`: whoever is early waits for its turn; `once`: it waits the first time. For `holdNs` at most; nobody is held where that is 0 |
//! | `toleranceNs`, `pauseNs` | who is held once is held again when it begins so far from its turn, and not sooner than so long after |
//! | `class` | from 0, served first, to 7 |
//! | `weight` | its part of a link beside others of its class; 1 where nothing is said |
//! | `follows` | what class and weight follow in the course of an iteration: `bytesSent`, `bytesLeft` or `partLeft` |
//! | `validUntil` | after that it is as if nothing had been said |
//!
//! A word is taken back as soon as it is no longer meant: an agent that went on holding a job until it lapses would cost
//! training time. It lapses all the same, should whoever said it be gone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use metronome_core::id::JobId;
use metronome_core::lane::{Follows, Lane, Turn};
use metronome_core::units::{Duration, Instant};

use super::World;
use super::gangs::annotation;
use super::pods::{Known, Uid};
use super::words::timestamp;
use crate::objects::Pod;

pub(crate) const TURN: &str = "metronome.dev/turn";

/// So long a word is good for, and so long before its end it is said anew.
const VALID_FOR: Duration = Duration(15 * Duration::MINUTE.0);
const RENEWED_BEFORE: Duration = Duration(5 * Duration::MINUTE.0);

/// Words that only go on are said on so many pods at a time: there are minutes left for the others.
const MOST_RENEWED: usize = 200;

/// Every leader counts from a number of its own, so that a late word of the one before is older than ours. Together they
/// have fewer bits than a number in JSON.
const WORDS_OF_A_LEADER: u32 = 32;

/// What the pods of a job say of their turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Word {
    generation: u64,
    anchor: Timestamp,
    period_ns: u64,
    turn_ns: u64,
    class: u8,
    hold_ns: u64,
    valid_until: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tolerance_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pause_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weight: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<Follows>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Held {
    Once,
    EveryIteration,
}

/// What was said of all jobs on links.
#[derive(Debug, Default)]
pub(super) struct Words {
    of: BTreeMap<JobId, (Word, String)>,
    /// The number of the last word.
    pub(super) generation: u64,
    /// The first number of the next leader: nobody can have come so far.
    end: u64,
    /// What they rest on.
    lanes: BTreeMap<JobId, Lane>,
}

impl Words {
    pub(super) fn of_a_leader(epoch: u64) -> Self {
        let [generation, end] = [epoch, epoch + 1].map(|epoch| epoch << WORDS_OF_A_LEADER);
        Self { generation, end, ..Self::default() }
    }

    /// A word of ours or of an earlier leader; anybody may have written something else.
    fn read(&self, text: &str) -> Option<Word> {
        serde_json::from_str::<Word>(text).ok().filter(|word| word.generation < self.end)
    }
}

impl World {
    /// Says of all who have a lane of their own what it is, and takes it back from all others.
    pub(super) fn say_turns(&mut self, now: Instant) {
        self.turns.lanes.clone_from(&self.engine.state().lanes);
        self.find_words(now);
        let crews = self.turns.of.keys().filter_map(|job| self.crews.get(job));
        let pods: BTreeSet<Uid> =
            crews.flat_map(|crew| crew.members().map(|member| member.uid.clone())).collect();
        self.have_said(now, TURN, pods, Self::turn_of);
    }

    /// The same, where lanes are other than they were.
    pub(super) fn say_turns_that_changed(&mut self, now: Instant) {
        if self.engine.state().lanes != self.turns.lanes {
            self.say_turns(now);
            self.look_at_links();
        }
    }

    fn turn_of(&self, known: &Known) -> Option<String> {
        let job = known.job.filter(|_| known.is_placed())?;
        self.turns.of.get(&job).map(|(_, text)| text.clone())
    }

    /// A word stays while it says what is meant and is good for a while. Whoever leads anew goes on with what pods say.
    fn find_words(&mut self, now: Instant) {
        let mut before = std::mem::take(&mut self.turns.of);
        let mut renewed = 0;
        for (job, lane) in self.turns.lanes.clone() {
            let Some(crew) = self.crews.get(&job) else { continue };
            let members = crew.members().count();
            let old = before.remove(&job).or_else(|| self.word_on_pods(now, job));
            let word = match old {
                Some((word, text)) if word.means(lane) => {
                    let lasts = now + RENEWED_BEFORE < word.ends();
                    if lasts || (renewed > 0 && renewed + members > MOST_RENEWED && now < word.ends()) {
                        self.turns.of.insert(job, (word, text));
                        continue;
                    }
                    renewed += members;
                    Word::of(lane, word.begins())
                }
                _ => Word::of(lane, now),
            };
            self.turns.generation += 1;
            let valid_until = timestamp(now + VALID_FOR);
            let word = Word { generation: self.turns.generation, valid_until, ..word };
            let text = word.text();
            self.turns.of.insert(job, (word, text));
        }
    }

    fn word_on_pods(&self, now: Instant, job: JobId) -> Option<(Word, String)> {
        let members = self.crews.get(&job)?.members();
        let mut said = members.filter_map(|member| annotation(&self.pods.get(&member.uid)?.pod, TURN));
        said.find_map(|text| {
            let word = self.turns.read(text).filter(|word| word.ends() <= now + VALID_FOR)?;
            Some((word, text.to_owned()))
        })
    }

    /// Whatever is said from now on is newer than what a pod says already.
    pub(super) fn note_old_turn(&mut self, pod: &Pod) {
        let said = annotation(pod, TURN).and_then(|text| self.turns.read(text));
        let generation = said.map_or(0, |word| word.generation);
        self.turns.generation = self.turns.generation.max(generation);
    }
}

impl Word {
    /// What a lane says of turns from an anchor on. Its number, and how long it holds, are still to be said.
    fn of(lane: Lane, anchor: Instant) -> Self {
        let held = match (lane.pace, lane.turn) {
            (Some(pace), _) => Some((pace.turn, Held::EveryIteration)),
            (None, turn) => turn.map(|turn| (turn, Held::Once)),
        };
        let turn = held.map(|(turn, _)| turn);
        let period = turn.map_or(0, |turn| turn.period.0);
        let watch = turn.and_then(|turn| turn.watch);
        Self {
            generation: 0,
            anchor: timestamp(anchor),
            period_ns: period,
            turn_ns: turn.map_or(0, |turn| after(turn, anchor)),
            class: lane.class,
            hold_ns: period,
            valid_until: Timestamp::MIN,
            held: held.map(|(_, held)| held),
            tolerance_ns: watch.map(|watch| watch.tolerance.0),
            pause_ns: watch.map(|watch| watch.pause.0),
            weight: Some(lane.weight).filter(|weight| *weight != 1),
            follows: Some(lane.follows).filter(|follows| *follows != Follows::Nothing),
        }
    }

    fn means(&self, lane: Lane) -> bool {
        let Self { generation, valid_until, .. } = *self;
        *self == Self { generation, valid_until, ..Self::of(lane, self.begins()) }
    }

    fn begins(&self) -> Instant {
        instant(self.anchor)
    }

    fn ends(&self) -> Instant {
        instant(self.valid_until)
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("a word is plain data, which always serialises")
    }
}

/// How long after a moment a turn comes.
fn after(turn: Turn, moment: Instant) -> u64 {
    turn.next(moment).since(moment).0
}

fn instant(at: Timestamp) -> Instant {
    Instant(u64::try_from(at.as_nanosecond()).unwrap_or(0))
}
