//! Marks: the class of a job in the DSCP field of all that its members send, for switches that serve by it.
//!
//! The kernel writes into packets what is set on their socket. So each connection of a member is borrowed for a moment and set;
//! the member's code is not asked and does not notice. Connections come and go, so members are looked at again and again, one
//! at a time, and what is known of a connection is not looked up again.
//!
//! Nothing is written down: a connection that bears one of our marks is ours, also if an earlier agent has left it so. One
//! that its program has marked otherwise is its own.

mod connection;
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use metronome_core::model::units::Moment;
use metronome_core::traffic::TrafficDirective;

use crate::members::Roster;

use connection::{Connection, Found};
use members::{Process, processes};

/// The byte of a packet's header whose upper six bits are its DSCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u8);

impl Mark {
    /// Of whatever nobody has marked.
    pub const NONE: Self = Self(0);

    /// Class selectors 5 to 1, from the first class on. 6 and 7 belong to the network itself.
    const OF_CLASSES: [Self; 5] = [Self(0xa0), Self(0x80), Self(0x60), Self(0x40), Self(0x20)];

    /// A job without a word shares links with the first class, and is marked so: with no mark it would come after the last.
    fn of(word: Option<&TrafficDirective>) -> Self {
        let class = word.map_or(0, |word| usize::from(word.class));
        Self::OF_CLASSES[class.min(Self::OF_CLASSES.len() - 1)]
    }

    /// Whether it may be replaced: nobody's, or ours.
    fn is_free(self) -> bool {
        self == Self::NONE || Self::OF_CLASSES.contains(&self)
    }
}

/// The members of this node, by the folders of their cgroups.
#[derive(Debug, Default)]
pub struct Marks {
    members: BTreeMap<PathBuf, Marked>,
}

#[derive(Debug)]
struct Marked {
    mark: Mark,
    looked: Option<Instant>,
    /// Sockets by their inodes.
    known: BTreeMap<u64, Known>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Bears(Mark),
    /// No connection over TCP, or one that is marked by its own program.
    LeftAlone,
}

/// A connection that was just made sends unmarked for no longer than that.
const AGAIN: Duration = Duration::from_secs(1);

/// Of one member in one look: however many it opens, nobody else waits for it for long.
const MOST_DESCRIPTORS: usize = 2048;

impl Marks {
    /// From now on these members are marked, by the words that are in force. Whoever is no longer listed is unmarked.
    pub fn follow(&mut self, roster: &Roster, now: u64) {
        let listed: BTreeSet<&Path> =
            roster.members.iter().filter_map(|member| member.freezer.as_deref()).collect();
        let gone = self.members.extract_if(.., |folder, _| !listed.contains(folder.as_path()));
        gone.for_each(|(folder, mut marked)| marked.unmark(&folder));
        for member in &roster.members {
            let Some(folder) = &member.freezer else { continue };
            let word = member.word().filter(|word| word.is_valid(Moment(now)));
            let mark = Mark::of(word.as_ref());
            let marked = self.members.entry(folder.clone()).or_insert_with(|| Marked::new(mark));
            if marked.mark != mark {
                marked.mark = mark;
                marked.looked = None;
            }
        }
    }

    /// Looks at the connections of one member at most, so that nothing else is late by it: the one that waits longest.
    pub fn look(&mut self, now: Instant) {
        let is_due = |marked: &Marked| marked.looked.is_none_or(|looked| now - looked >= AGAIN);
        let due = self.members.iter_mut().filter(|(_, marked)| is_due(marked));
        if let Some((folder, marked)) = due.min_by_key(|(_, marked)| marked.looked) {
            marked.looked = Some(now);
            marked.look(folder);
        }
    }

    /// How many connections bear a mark.
    pub fn marked(&self) -> usize {
        let known = self.members.values().flat_map(|marked| marked.known.values());
        known.filter(|known| matches!(known, Known::Bears(_))).count()
    }

    /// Takes all marks back.
    pub fn clear(&mut self) {
        std::mem::take(&mut self.members).into_iter().for_each(|(folder, mut marked)| marked.unmark(&folder));
    }
}

impl Marked {
    fn new(mark: Mark) -> Self {
        Self { mark, looked: None, known: BTreeMap::new() }
    }

    fn unmark(&mut self, folder: &Path) {
        self.mark = Mark::NONE;
        self.look(folder);
    }

    /// What was there before and is not now is forgotten.
    fn look(&mut self, folder: &Path) {
        let before = std::mem::take(&mut self.known);
        let mut left = MOST_DESCRIPTORS;
        for process in processes(folder) {
            for (descriptor, inode) in process.sockets(&mut left) {
                let known = before.get(&inode).copied().filter(|known| self.is_settled(*known));
                let known = known.or_else(|| self.settle(&process, descriptor, inode));
                self.known.extend(known.map(|known| (inode, known)));
            }
        }
    }

    fn is_settled(&self, known: Known) -> bool {
        matches!(known, Known::LeftAlone) || known == Known::Bears(self.mark)
    }

    /// Nothing is known of what is not connected yet, or was closed meanwhile.
    fn settle(&self, process: &Process, descriptor: i32, inode: u64) -> Option<Known> {
        let connection = match Connection::borrow(process.handle()?, descriptor, inode)? {
            Found::Connected(connection) => connection,
            Found::Unconnected => return None,
            Found::Other => return Some(Known::LeftAlone),
        };
        let bears = connection.mark().ok()?;
        if !bears.is_free() {
            return Some(Known::LeftAlone);
        }
        if bears != self.mark {
            connection.set(self.mark).ok()?;
        }
        Some(Known::Bears(self.mark))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(class: u8) -> TrafficDirective {
        let word = serde_json::json!({"generation": 1, "anchor": "2026-11-16T12:00:00Z", "periodNs": 0, "turnNs": 0,
            "class": class, "validUntil": "2026-11-16T12:15:00Z"});
        serde_json::from_value(word).unwrap()
    }

    #[test]
    fn an_earlier_class_has_a_higher_code_point_and_who_has_no_word_is_in_the_first() {
        let points: Vec<u8> = (0..=8).map(|class| Mark::of(Some(&word(class))).0 >> 2).collect();
        assert_eq!(points, [40, 32, 24, 16, 8, 8, 8, 8, 8]);
        assert_eq!(Mark::of(None), Mark::of(Some(&word(0))));
        assert!(!Mark(0xb8).is_free(), "expedited forwarding is the program's own");
    }
}
