//! All capacity is handed out anew, in the order of ranks: for policies that may stop any job at any decision.
//!
//! Jobs in the plan and waiting jobs are ranked together. A job in the plan keeps its place if no job of higher rank has
//! taken it. Rules about other members are judged against all that are placed or planned, displaced in the same decision
//! or not.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::decide::admission::admit;
use crate::decide::draft::Reach;
use crate::decide::ledger::{Entry, Ledger, Proposal, Room};
use crate::decide::order::{QueueCursor, Rank};
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::id::{ClassId, JobId};
use crate::model::job::Job;
use crate::model::plan::Assignment;

/// Each proposal settles one job; the ledger begins without any.
#[derive(Default)]
pub(in crate::decide) struct RankOrder<'a> {
    state: Option<State<'a>>,
}

struct State<'a> {
    /// Jobs in the plan that may be stopped, the highest rank last.
    ranked: Vec<(Rank, JobId, &'a Arc<Assignment>)>,
    waiting: QueueCursor<'a>,
    /// Jobs in the order of their turns, each with whether it is in the plan from now on.
    served: Vec<(JobId, bool)>,
}

impl<'a> Proposer<'a> for RankOrder<'a> {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let Some(state) = &mut self.state else { return Some(self.open(view, ledger)) };
        while let Some(turn) = state.next(ledger) {
            if let Some(entry) = state.take(view, ledger, turn) {
                return Some(Proposal::of(vec![entry]));
            }
        }
        ledger.standings = view.ranker.standings(&state.served);
        None
    }
}

impl<'a> RankOrder<'a> {
    /// Ranks the jobs that may be stopped; the others keep what they have.
    fn open(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Proposal {
        let mut ranked = Vec::with_capacity(view.snapshot.plan.len());
        let mut entries = Vec::new();
        for (id, assignment) in view.snapshot.plan.iter() {
            let job = &view.snapshot.jobs[id];
            if may_be_stopped(view, job) {
                ranked.push((view.ranker.running(id, job), id, assignment));
            } else {
                ledger.draft.drop_claims(assignment);
                entries.push(Entry::Keep { job: id, place: Arc::clone(assignment) });
            }
        }
        ranked.sort_unstable_by_key(|(rank, _, _)| Reverse(*rank));
        let served = Vec::with_capacity(ranked.len());
        self.state = Some(State { ranked, waiting: QueueCursor::new(view.ranker, |_| true), served });
        Proposal::of(entries)
    }
}

/// The job that is next.
#[derive(Clone, Copy)]
enum Turn<'a> {
    Waiting(JobId, ClassId),
    Planned(JobId, &'a Arc<Assignment>),
}

impl<'a> State<'a> {
    fn next(&mut self, ledger: &Ledger<'a>) -> Option<Turn<'a>> {
        let waiting_first = match (self.waiting.peek(), self.ranked.last()) {
            (Some(waiting), Some((planned, _, _))) => waiting < planned,
            (waiting, _) => waiting.is_some(),
        };
        if waiting_first {
            let (job, class) = self.waiting.pop(ledger.draft.held().by_queue())?;
            return Some(Turn::Waiting(job, class));
        }
        self.ranked.pop().map(|(_, job, assignment)| Turn::Planned(job, assignment))
    }

    /// What a job gets at its turn; nothing for a waiting job that is refused.
    fn take(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>, turn: Turn<'a>) -> Option<Entry> {
        match turn {
            Turn::Waiting(job, class) => match admit(view, ledger, job, Reach::Claimed) {
                Ok(place) => {
                    self.served.push((job, true));
                    self.waiting.step_up(job, class);
                    Some(Entry::Start { job, place, room: Room::Taken })
                }
                Err(reason) => {
                    ledger.report.waiting.push((class, reason));
                    None
                }
            },
            Turn::Planned(job, assignment) => {
                let entry = self.keep_or_place(view, ledger, job, assignment);
                self.served.push((job, !matches!(entry, Entry::Stop(_))));
                Some(entry)
            }
        }
    }

    fn keep_or_place(
        &self,
        view: &View<'a>,
        ledger: &mut Ledger<'a>,
        job: JobId,
        assignment: &Arc<Assignment>,
    ) -> Entry {
        ledger.draft.drop_claims(assignment);
        let allowed = view.quota_allows(&ledger.draft, &view.snapshot.jobs[job]).is_ok();
        if allowed && ledger.draft.has_capacity_for(assignment) {
            return Entry::Keep { job, place: Arc::clone(assignment) };
        }
        match admit(view, ledger, job, Reach::Claimed) {
            Ok(place) => Entry::Start { job, place, room: Room::Taken },
            Err(_) => Entry::Stop(job),
        }
    }
}

fn may_be_stopped(view: &View<'_>, job: &Job) -> bool {
    job.spec.capabilities.suspend && job.not_before <= view.snapshot.now
}
