//! The ledger: the only mutable state of a decision.
//!
//! A ledger owns free capacity and undo (`draft`), the queue of waiting jobs (`requests`), what is booked for deadlines
//! (`bookings`), work budgets (`work`), wake-ups and the report. Proposers read it, try things in its draft and put them
//! back, spend work and ask for wake-ups; jobs start, leave, move and change their size only by `apply`.

mod bookings;
mod entry;
mod request;
mod requests;
mod work;

use std::collections::BTreeMap;

use super::deadlines::Schedule;
use super::draft::Draft;
use super::view::View;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::job::ClassPosition;
use crate::model::report::Report;
use crate::model::units::{Instant, Share};
use crate::traffic::TrafficPolicy;
use crate::traffic::decision_inputs::DecisionInputs;

use bookings::Bookings;
pub(super) use entry::{Entry, Proposal, Room};
pub(super) use request::{Request, Serves};
use requests::Requests;
pub(super) use requests::{head_blocks, lacks_capacity};
use work::Work;

pub(super) struct Ledger<'a> {
    pub(super) draft: Draft<'a>,
    pub(super) requests: Requests<'a>,
    pub(super) bookings: Bookings<'a>,
    pub(super) directives: ChangedDirectives,
    pub(super) work: Work,
    pub(super) report: Report,
    /// Places among jobs of equal rank.
    pub(super) standings: Vec<(JobId, ClassPosition)>,
    /// The time of the next decision if nothing happens before.
    pub(super) wake: Option<Instant>,
}

/// Changes of traffic policies, what these rest on, and changes of CPU weights.
#[derive(Debug, Default)]
pub(super) struct ChangedDirectives {
    pub(super) traffic: Vec<(JobId, TrafficPolicy)>,
    pub(super) inputs: Vec<DecisionInputs>,
    pub(super) slowdowns: BTreeMap<JobId, Share>,
    pub(super) weights: Vec<(JobId, CpuWeight)>,
}

/// What traffic policies rest on, and what is predicted of them.
#[derive(Debug, Default)]
pub(super) struct Basis {
    pub(super) inputs: Vec<DecisionInputs>,
    /// Predicted slowdowns of highest-priority jobs against fair sharing.
    pub(super) slowdowns: BTreeMap<JobId, Share>,
}

impl<'a> Ledger<'a> {
    /// A ledger in which every job keeps what the plan gives it, and reservations of the last decision hold.
    pub(super) fn beside_the_plan(view: &View<'a>, schedule: Schedule<'a>) -> Self {
        let mut draft = Draft::beside_the_plan(view.snapshot);
        draft.reservations = view.snapshot.plan.reservations().to_vec();
        Self::over(view, draft, Bookings::of(schedule))
    }

    /// A ledger in which all capacity is handed out anew.
    pub(super) fn from_empty(view: &View<'a>) -> Self {
        Self::over(view, Draft::from_empty(view.snapshot), Bookings::default())
    }

    fn over(view: &View<'a>, draft: Draft<'a>, bookings: Bookings<'a>) -> Self {
        Self {
            draft,
            requests: Requests::closed(view),
            bookings,
            directives: ChangedDirectives::default(),
            work: Work::default(),
            report: Report::default(),
            standings: Vec::new(),
            wake: None,
        }
    }

    /// Asks for a decision at a time even if nothing happens before.
    pub(super) fn wake_at(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}
