//! What jobs may do on links, said on their pods for the agents on the nodes to carry out.
//!
//! Each pod of a job that has a lane of its own carries `metronome.dev/turn`, a [`TrafficDirective`].
//!
//! A word is taken back as soon as it is no longer meant: an agent that went on holding a job until it lapses would cost
//! training time. It lapses all the same, should whoever said it be gone.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::model::id::JobId;
use metronome_core::model::units::{Instant, Moment};
use metronome_core::traffic::{TrafficDirective, TrafficPolicy};

use super::World;
use super::gangs::annotation;
use super::pods::{Known, Uid};
use crate::objects::Pod;

pub(crate) const TURN: &str = "metronome.dev/turn";

/// This world counts time as everybody's clock does.
const EPOCH: Moment = Moment::EPOCH;

/// Words that only go on are said on so many pods at a time: there are minutes left for the others.
const MOST_RENEWED: usize = 200;

/// Every leader counts from a number of its own, so that a late word of the one before is older than ours. Together they
/// have fewer bits than a number in JSON.
const WORDS_OF_A_LEADER: u32 = 32;

/// What was said of all jobs on links.
#[derive(Debug, Default)]
pub(super) struct Words {
    of: BTreeMap<JobId, (TrafficDirective, String)>,
    /// The number of the last word.
    pub(super) generation: u64,
    /// The first number of the next leader: nobody can have come so far.
    end: u64,
    /// What they rest on.
    lanes: BTreeMap<JobId, TrafficPolicy>,
}

impl Words {
    pub(super) fn of_a_leader(epoch: u64) -> Self {
        let [generation, end] = [epoch, epoch + 1].map(|epoch| epoch << WORDS_OF_A_LEADER);
        Self { generation, end, ..Self::default() }
    }

    /// A word of ours or of an earlier leader; anybody may have written something else.
    fn read(&self, text: &str) -> Option<TrafficDirective> {
        serde_json::from_str::<TrafficDirective>(text).ok().filter(|word| word.generation < self.end)
    }
}

impl World {
    /// Says of all who have a lane of their own what it is, and takes it back from all others.
    pub(super) fn say_turns(&mut self, now: Instant) {
        self.turns.lanes.clone_from(self.engine.plan().traffic());
        self.find_words(moment(now));
        let crews = self.turns.of.keys().filter_map(|job| self.crews.get(job));
        let pods: BTreeSet<Uid> =
            crews.flat_map(|crew| crew.members().map(|member| member.uid.clone())).collect();
        self.have_said(now, TURN, pods, Self::turn_of);
    }

    /// The same, where lanes are other than they were.
    pub(super) fn say_turns_that_changed(&mut self, now: Instant) {
        if *self.engine.plan().traffic() != self.turns.lanes {
            self.say_turns(now);
            self.look_at_links();
        }
    }

    fn turn_of(&self, known: &Known) -> Option<String> {
        let job = known.job.filter(|_| known.is_placed())?;
        self.turns.of.get(&job).map(|(_, text)| text.clone())
    }

    /// A word stays while it says what is meant and is good for a while. Whoever leads anew goes on with what pods say.
    fn find_words(&mut self, now: Moment) {
        let mut before = std::mem::take(&mut self.turns.of);
        let mut renewed = 0;
        for (job, lane) in self.turns.lanes.clone() {
            let Some(crew) = self.crews.get(&job) else { continue };
            let members = crew.members().count();
            let old = before.remove(&job).or_else(|| self.word_on_pods(now, job));
            let word = match old {
                Some((word, text)) if word.means(lane, EPOCH) => {
                    if word.lasts(now)
                        || (renewed > 0 && renewed + members > MOST_RENEWED && word.is_valid(now))
                    {
                        self.turns.of.insert(job, (word, text));
                        continue;
                    }
                    renewed += members;
                    word
                }
                _ => TrafficDirective::of(lane, now, EPOCH),
            };
            self.turns.generation += 1;
            let word = word.said(self.turns.generation, now);
            let text = serde_json::to_string(&word).expect("a word is plain data, which always serialises");
            self.turns.of.insert(job, (word, text));
        }
    }

    fn word_on_pods(&self, now: Moment, job: JobId) -> Option<(TrafficDirective, String)> {
        let members = self.crews.get(&job)?.members();
        let mut said = members.filter_map(|member| annotation(&self.pods.get(&member.uid)?.pod, TURN));
        said.find_map(|text| {
            let word =
                self.turns.read(text).filter(|word| word.valid_until <= now + TrafficDirective::VALIDITY)?;
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

fn moment(at: Instant) -> Moment {
    EPOCH + at.since(Instant::START)
}
