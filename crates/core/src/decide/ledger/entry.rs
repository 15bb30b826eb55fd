//! Proposals: what a proposer asks the ledger to write down.

use std::sync::Arc;

use super::request::{Request, Serves};
use super::{Basis, ChangedDirectives, Ledger};
use crate::decide::view::View;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::units::Instant;
use crate::traffic::TrafficPolicy;
use crate::traffic::decision_inputs::Reconfiguration;

/// Entries that the ledger writes in this order, and the waiting job that is served by them.
#[derive(Default)]
pub(in crate::decide) struct Proposal {
    pub(in crate::decide) serves: Option<(Request, Serves)>,
    pub(in crate::decide) entries: Vec<Entry>,
}

pub(in crate::decide) enum Entry {
    /// A waiting job gets a place.
    Start {
        job: JobId,
        place: Assignment,
        room: Room,
    },
    /// A job that was given a place in this decision waits again.
    Withdraw {
        job: JobId,
        place: Arc<Assignment>,
    },
    /// A job in the plan leaves; for a beneficiary, where there is one.
    Evict {
        job: JobId,
        place: Arc<Assignment>,
        beneficiary: Option<JobId>,
    },
    /// A job in the plan keeps its place, in a ledger that began without any.
    Keep {
        job: JobId,
        place: Arc<Assignment>,
    },
    /// A job in the plan gets no place, in a ledger that began without any.
    Stop(JobId),
    /// A job in the plan goes to another place.
    Move {
        job: JobId,
        to: Assignment,
    },
    /// A job in the plan gets another number of members.
    Resize {
        job: JobId,
        from: Arc<Assignment>,
        to: Arc<Assignment>,
    },
    /// The reservation of a job ends, because it has a place.
    ReleaseReservation(JobId),
    /// What a job was given comes off the spare capacity of reservations that begin before its end.
    UseSpareCapacity {
        job: JobId,
        end: Option<Instant>,
    },
    /// What a job was given comes off what can be booked.
    BookStart(JobId),
    /// Why running jobs are moved, for the report.
    Report(Reconfiguration),
    /// The next decision follows at once: this one leaves something to look at.
    DecideAgain,
    CpuWeights(Vec<(JobId, CpuWeight)>),
    Traffic(Vec<(JobId, TrafficPolicy)>, Basis),
}

/// Whether the capacity of a place is taken in the draft already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) enum Room {
    Taken,
    Free,
}

impl Proposal {
    /// Entries that serve no waiting job.
    pub(in crate::decide) fn of(entries: Vec<Entry>) -> Self {
        Self { serves: None, entries }
    }
}

impl<'a> Ledger<'a> {
    /// Writes a proposal down.
    pub(in crate::decide) fn apply(&mut self, view: &View<'a>, proposal: Proposal) {
        for entry in proposal.entries {
            self.write(view, entry);
        }
        if let Some((request, serves)) = proposal.serves {
            self.note_served(view, request, serves);
        }
    }

    fn write(&mut self, view: &View<'a>, entry: Entry) {
        let jobs = view.snapshot.jobs;
        match entry {
            Entry::Start { job, place, room } => {
                if room == Room::Free {
                    self.draft.take_all(&jobs[job], &place);
                }
                self.draft.assign(job, &jobs[job].spec, place);
            }
            Entry::Withdraw { job, place } => {
                self.draft.withdraw(job, &jobs[job], &place);
                self.requeue(view, job);
            }
            Entry::Evict { job, place, beneficiary } => {
                self.draft.evict(job, &jobs[job].spec, &place);
                self.report.displaced.extend(beneficiary.map(|beneficiary| (job, beneficiary)));
            }
            Entry::Keep { job, place } => self.draft.keep(&jobs[job].spec, &place),
            Entry::Stop(job) => self.draft.unassign(job),
            Entry::Move { job, to } => self.draft.relocate(job, &jobs[job], to),
            Entry::Resize { job, from, to } => {
                self.draft.resize(job, &jobs[job].spec, &from, to);
            }
            Entry::ReleaseReservation(job) => self.draft.release_reservation(job),
            Entry::UseSpareCapacity { job, end } => {
                self.draft.use_spare_capacity(job, |kept| end.is_none_or(|end| end > kept.from));
            }
            Entry::BookStart(job) => self.book_start(view, job),
            Entry::Report(reconfiguration) => self.report.reconfigured.push(reconfiguration),
            Entry::DecideAgain => self.report.cut_short = true,
            Entry::CpuWeights(weights) => self.directives.weights = weights,
            Entry::Traffic(traffic, Basis { inputs, slowdowns }) => {
                let weights = std::mem::take(&mut self.directives.weights);
                self.directives = ChangedDirectives { traffic, inputs, slowdowns, weights };
            }
        }
    }
}
