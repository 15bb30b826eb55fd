//! One training job as it really runs: its members, its work, what of it is saved.

use std::sync::Arc;

use metronome_core::cluster::Name;
use metronome_core::id::{JobId, NodeId};
use metronome_core::job::{Checkpointing, Priority};
use metronome_core::plan::Assignment;
use metronome_core::report::Reason;
use metronome_core::units::{Duration, GpuTime, Gpus, Instant};

use crate::outcome::{Fate, JobOutcome};
use crate::scenario::Arrival;

#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) job: Option<JobId>,
    /// What it holds in fact.
    pub(super) on: Vec<Arc<Assignment>>,
    pub(super) up: bool,
}

#[derive(Debug)]
pub(super) struct Training {
    name: Name,
    priority: Priority,
    submit: Instant,
    deadline: Option<Instant>,
    alone: Duration,
    gpus: Gpus,
    size: u32,
    pub(super) checkpointing: Option<Checkpointing>,
    /// One for the whole gang, or one for each member where they are scheduled apart.
    pub(super) members: Vec<Member>,
    /// Work done, up to the last halt, and how much of it is saved.
    done: Duration,
    saved: Duration,
    since: Option<Instant>,
    /// Counts the times it went on or halted: a finish foreseen before is void.
    pub(super) epoch: u64,
    start: Option<Instant>,
    end: Option<(Instant, Fate)>,
    ran: Duration,
    pub(super) nodes: u32,
    pub(super) preemptions: u32,
    pub(super) moves: u32,
    pub(super) resizes: u32,
    pub(super) wait_reason: Option<Reason>,
}

impl Training {
    pub(super) fn of(arrival: &Arrival, split: bool) -> Self {
        let spec = &arrival.spec;
        let members = if split { spec.members() as usize } else { 1 };
        Self {
            name: spec.name.clone(),
            priority: spec.priority,
            submit: arrival.at,
            deadline: spec.deadline,
            alone: spec.work.alone.unwrap_or_default(),
            gpus: spec.gpus(),
            size: spec.members(),
            checkpointing: spec.checkpointing,
            members: vec![Member::default(); members],
            done: Duration::ZERO,
            saved: Duration::ZERO,
            since: None,
            epoch: 0,
            start: None,
            end: None,
            ran: Duration::ZERO,
            nodes: 0,
            preemptions: 0,
            moves: 0,
            resizes: 0,
            wait_reason: None,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn is_training(&self) -> bool {
        self.since.is_some()
    }

    pub(super) fn has_run(&self) -> bool {
        self.start.is_some()
    }

    pub(super) fn runs_on(&self, node: NodeId) -> bool {
        self.members.iter().flat_map(|member| &member.on).any(|on| on.touches(node))
    }

    pub(super) fn executed(&self, now: Instant) -> Duration {
        self.done + self.since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Trains from now on if every member is up; says how long it still takes.
    pub(super) fn go_on(&mut self, now: Instant) -> Option<Duration> {
        if self.since.is_some() || !self.members.iter().all(|member| member.up) {
            return None;
        }
        self.since = Some(now);
        self.start.get_or_insert(now);
        self.epoch += 1;
        Some(self.alone - self.done)
    }

    /// Stops training; keeps all of its work if it can save it first, else what was saved.
    pub(super) fn halt(&mut self, now: Instant, saving: bool) {
        let Some(since) = self.since.take() else { return };
        self.epoch += 1;
        self.ran += now.since(since);
        self.done += now.since(since);
        self.saved = match self.checkpointing {
            Some(_) if saving => self.done,
            Some(Checkpointing { every: Some(every), .. }) if !every.is_zero() => {
                self.saved.max(Duration(self.done.0 / every.0 * every.0))
            }
            _ => self.saved,
        };
        self.done = self.saved;
    }

    pub(super) fn end(&mut self, now: Instant, fate: Fate) {
        self.end = Some((now, fate));
    }

    /// GPU-time in which it trained.
    pub(super) fn gpu_time(&self) -> GpuTime {
        GpuTime::of(self.gpus, self.ran)
    }

    pub(super) fn outcome(self, now: Instant) -> JobOutcome {
        let holds = self.members.iter().any(|member| member.up);
        let fate = match self.end {
            Some((_, fate)) => fate,
            // A run ends when nothing can change any more: who holds nodes without training blocks others for ever.
            None if holds => Fate::Deadlocked,
            None => Fate::Unfinished,
        };
        JobOutcome {
            name: self.name,
            model: None,
            priority: self.priority,
            submit: self.submit,
            start: self.start,
            end: self.end.map(|(at, _)| at),
            ran: self.ran + self.since.map_or(Duration::ZERO, |since| now.since(since)),
            alone: self.alone,
            deadline: self.deadline,
            gpus: self.gpus,
            members: self.size,
            nodes: self.nodes,
            fate,
            preemptions: self.preemptions,
            moves: self.moves,
            resizes: self.resizes,
            wait_reason: self.wait_reason,
            slowdown: None,
            segments: Vec::new(),
        }
    }
}
