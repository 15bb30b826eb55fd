//! Classes and weights on links: at every port one HTB leaf for each job that has a lane of its own.
//!
//! A job without one stays in the leaf that everybody shares. What is there follows what is wanted: leaves come, change and
//! go as the roster says, and what an earlier agent left is removed when a port is first seen.
//!
//! **How a standing becomes a leaf.** A leaf may borrow up to the rate of the link, so what it gets is a matter of who else
//! sends. Among leaves that borrow, HTB serves those of a lower `prio` first, and those of one `prio` by their `quantum`. A
//! small `rate` of its own is the floor that even the last class has. The kernel takes a new `quantum` at once, but a new
//! `prio` only when the leaf has run empty. A lane that follows what is sent keeps its `prio` and climbs by `quantum`. A lane
//! whose class depends on other bursts changes its `prio` between bursts, when its leaf is empty
//! ([`metronome_core::traffic::burst_order`]).

mod ladder;
mod leaf;
mod tc;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;

use metronome_core::model::units::Moment;

use crate::members::{Port, Roster};

use ladder::Ladder;
pub use ladder::{Rung, is_ordered};
use leaf::Leaf;
use tc::Tc;

/// All ports of this node.
#[derive(Debug, Default)]
pub struct Ports {
    known: BTreeMap<(PathBuf, String), Shaped>,
    /// Commands that `tc` did not carry out, of ports that were begun anew for it.
    refused: u64,
}

/// A port with the leaves that are there.
#[derive(Debug)]
struct Shaped {
    port: Port,
    tc: Tc,
    leaves: BTreeMap<String, Leaf>,
}

/// What a job is to be given on every port that it crosses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    ladder: Ladder,
    addresses: BTreeSet<Ipv4Addr>,
}

impl Ports {
    /// Makes ports as the roster says, for those whose words are in force.
    pub fn follow(&mut self, roster: &Roster, now: u64) {
        let wanted = wanted(roster, now);
        let listed: BTreeSet<(PathBuf, String)> = roster.ports.iter().map(key).collect();
        self.known.retain(|key, _| listed.contains(key));
        for port in &roster.ports {
            let shaped = self.known.entry(key(port)).or_insert_with(|| Shaped::new(port.clone()));
            if shaped.port.rate_bps != port.rate_bps || shaped.tc.is_broken() {
                self.refused += shaped.tc.refused();
                *shaped = Shaped::new(port.clone());
            }
            shaped.port = port.clone();
            shaped.follow(&wanted);
        }
    }

    /// A job has come so far in its iteration: where its lane follows that, its leaves change.
    pub fn climb(&mut self, job: &str, rung: Rung) {
        for shaped in self.known.values_mut() {
            if let Some(leaf) = shaped.leaves.get_mut(job)
                && leaf.climb(rung)
            {
                shaped.tc.say(&leaf.change(&shaped.port));
            }
        }
    }

    /// How many commands were not carried out since this was last asked.
    pub fn take_refused(&mut self) -> u64 {
        std::mem::take(&mut self.refused)
    }

    /// How many leaves there are.
    pub fn leaves(&self) -> usize {
        self.known.values().map(|shaped| shaped.leaves.len()).sum()
    }

    /// Takes everything away that was made.
    pub fn clear(&mut self) {
        for (_, mut shaped) in std::mem::take(&mut self.known) {
            shaped.follow(&BTreeMap::new());
            shaped.tc.finish();
        }
    }

    /// The lane of a job, where it follows what is sent.
    pub fn ladder(&self, job: &str) -> Option<&Ladder> {
        let leaf = self.known.values().find_map(|shaped| shaped.leaves.get(job));
        leaf.map(Leaf::ladder).filter(|ladder| ladder.changes())
    }
}

fn key(port: &Port) -> (PathBuf, String) {
    (port.netns.clone(), port.device.clone())
}

/// What each job is to have that has a lane of its own: all members of a job say the same.
fn wanted(roster: &Roster, now: u64) -> BTreeMap<String, Wanted> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    for member in &roster.members {
        let word = member.word().filter(|word| word.is_valid(Moment(now)));
        let Some(ladder) = word.and_then(|word| Ladder::of(&word)) else { continue };
        let job = wanted.entry(member.job.clone()).or_insert(Wanted { ladder, addresses: BTreeSet::new() });
        job.addresses.extend(member.address());
    }
    wanted
}

impl Shaped {
    /// A port as it is found, without what an earlier agent left.
    fn new(port: Port) -> Self {
        let tc = match tc::remove_leftovers(&port) {
            true => Tc::start(&port.netns),
            // Nothing is touched where nobody has shaped it for us.
            false => Tc::none(),
        };
        Self { port, tc, leaves: BTreeMap::new() }
    }

    fn follow(&mut self, wanted: &BTreeMap<String, Wanted>) {
        if !self.tc.is_there() {
            return;
        }
        // Whoever has a link for itself has all of it.
        let is_shared = self.port.crossed_by.len() > 1;
        let crossing = |job: &&String| is_shared && self.port.crossed_by.contains(job);
        let here: BTreeMap<&String, &Wanted> = wanted.iter().filter(|(job, _)| crossing(job)).collect();
        let others: Vec<String> = self.leaves.keys().filter(|job| !here.contains_key(job)).cloned().collect();
        for job in others {
            let leaf = self.leaves.remove(&job).expect("it was listed a moment ago");
            self.tc.say(&leaf.remove(&self.port));
        }
        for (job, wanted) in here {
            self.give(job, wanted);
        }
    }

    fn give(&mut self, job: &str, wanted: &Wanted) {
        match self.leaves.get_mut(job) {
            Some(leaf) => {
                let changed = leaf.set(wanted.ladder.clone());
                if changed {
                    self.tc.say(&leaf.change(&self.port));
                }
                if leaf.addresses != wanted.addresses {
                    leaf.addresses.clone_from(&wanted.addresses);
                    self.tc.say(&leaf.filter_anew(&self.port));
                }
            }
            None => {
                let leaf = Leaf::new(self.free_number(), wanted.ladder.clone(), wanted.addresses.clone());
                self.tc.say(&leaf.make(&self.port));
                self.leaves.insert(job.to_owned(), leaf);
            }
        }
    }

    fn free_number(&self) -> u16 {
        let taken: BTreeSet<u16> = self.leaves.values().map(|leaf| leaf.number).collect();
        (leaf::FIRST..leaf::END)
            .find(|number| !taken.contains(number))
            .expect("there are fewer jobs than numbers")
    }
}
