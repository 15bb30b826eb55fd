//! What will happen, in order: by time, then by kind, then by the order in which it was added.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use metronome_core::engine::Event;
use metronome_core::model::id::{LinkId, NodeId};
use metronome_core::model::plan::Step;
use metronome_core::model::units::{Bandwidth, Duration, Instant};

#[derive(Clone, Debug)]
pub(super) enum Happening {
    Breaks(NodeId),
    IsBack(NodeId),
    /// It is said that a node will be gone then.
    IsDrained {
        node: NodeId,
        until: Instant,
    },
    /// Members that are started on a node fail from now on, or no longer do.
    Spoils(NodeId),
    IsSound(NodeId),
    /// Everything on a node takes so many times as long.
    Slows {
        node: NodeId,
        slowdown: f64,
    },
    /// A training does nothing any more, and then again.
    Hangs(usize),
    Wakes(usize),
    /// A link changes its rate; back to its own, if none is said.
    LinkChanges {
        link: LinkId,
        rate: Option<Bandwidth>,
    },
    /// A step reaches the machines.
    StepComes(Step),
    /// It has taken effect. The engine hears of it after `tells`, if ever.
    StepEnds {
        step: Step,
        tells: Option<Duration>,
    },
    /// The engine hears of something.
    IsTold(Event),
    /// It is noticed that a link carries so much now.
    LinkIsSeen {
        link: LinkId,
        rate: Bandwidth,
        since: Instant,
    },
    /// It is known what a loop does, unless it was halted since.
    LoopIsSeen {
        training: usize,
        epoch: u64,
    },
    /// Training code tells how far it has come, unless it was halted since.
    Reports {
        training: usize,
        epoch: u64,
    },
    /// A job that shares cores tells what it has learned.
    Learns {
        training: usize,
    },
    /// Members of a training tell what they take for an iteration.
    MembersTell {
        training: usize,
    },
    Finishes {
        training: usize,
        epoch: u64,
    },
    Arrives(usize),
}

impl Happening {
    /// The order at one instant: machines first, then what leaves, then what comes.
    fn turn(&self) -> u8 {
        match self {
            Self::Breaks(_) => 0,
            Self::IsBack(_) => 1,
            Self::IsDrained { .. }
            | Self::Spoils(_)
            | Self::IsSound(_)
            | Self::Slows { .. }
            | Self::LinkChanges { .. }
            | Self::Hangs(_)
            | Self::Wakes(_) => 2,
            Self::Finishes { .. } => 3,
            Self::StepComes(_) => 4,
            Self::StepEnds { .. } => 5,
            Self::IsTold(_)
            | Self::LinkIsSeen { .. }
            | Self::LoopIsSeen { .. }
            | Self::Reports { .. }
            | Self::Learns { .. }
            | Self::MembersTell { .. } => 6,
            Self::Arrives(_) => 7,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Reverse<Entry>>,
    added: u64,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    turn: u8,
    number: u64,
    happening: Happening,
}

impl Entry {
    fn key(&self) -> (Instant, u8, u64) {
        (self.at, self.turn, self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Agenda {
    pub(super) fn add(&mut self, at: Instant, happening: Happening) {
        let (turn, number) = (happening.turn(), self.added);
        self.added += 1;
        self.entries.push(Reverse(Entry { at, turn, number, happening }));
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.entries.peek().map(|Reverse(entry)| entry.at)
    }

    /// Forgets what is next for as long as it will not happen any more.
    pub(super) fn forget_while(&mut self, is_void: impl Fn(&Happening) -> bool) {
        while self.entries.peek().is_some_and(|Reverse(entry)| is_void(&entry.happening)) {
            self.entries.pop();
        }
    }

    /// The next thing to happen, if it is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<Happening> {
        if self.next_at()? > now {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| entry.happening)
    }
}
