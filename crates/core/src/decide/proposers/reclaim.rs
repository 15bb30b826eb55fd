//! Elastic gangs give members beyond their minimum back to a waiting job that fits then.
//!
//! All gangs that run above their minimum are shrunk to it in a trial. If the job fits there, each gang in turn gets its
//! size back if the job still fits without it, the gang that would lose most first; the others give back no more members
//! than they must. Gangs of queues that hold more than their own give back first.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::decide::admission::admit_beside_reservations;
use crate::decide::draft::{Draft, Reach};
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::gang_size::GangSize;
use crate::decide::ledger::{Entry, Ledger, Proposal, Request, Room, Serves, head_blocks, lacks_capacity};
use crate::decide::placement;
use crate::decide::proposer::Proposer;
use crate::decide::snapshot::Snapshot;
use crate::decide::view::View;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::policy::Sizing;
use crate::model::report::Reason;
use crate::model::units::{GpuTime, Resources};

#[derive(Debug, Default)]
pub(in crate::decide) struct Reclaim {
    /// What all gangs could give back when this was first asked; in the course of a decision it only becomes less.
    most: Option<Resources>,
}

/// A gang that gives members back.
#[derive(Clone)]
struct ShrinkingGang<'a> {
    gang: ElasticGang<'a>,
    held: Arc<Assignment>,
    smaller: Arc<Assignment>,
}

impl<'a> Proposer<'a> for Reclaim {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let none = view.policy.sizing == Sizing::Least || view.snapshot.elastic.is_empty();
        if none || head_blocks(view) || ledger.report.cut_short {
            return None;
        }
        let over_quota = |reason: &Reason| matches!(reason, Reason::WaitingForQuota { .. });
        let mut queue = ledger.refused_queue(view, |reason| lacks_capacity(reason) || over_quota(reason));
        while let Some((job, class)) = queue.pop(ledger.draft.held().by_queue()) {
            if let Some(proposal) = self.propose_for(view, ledger, Request { job, class }) {
                return Some(proposal);
            }
        }
        None
    }
}

impl Reclaim {
    /// The members that are given back for a request, and its place then.
    fn propose_for<'a>(
        &mut self,
        view: &View<'a>,
        ledger: &mut Ledger<'a>,
        request: Request,
    ) -> Option<Proposal> {
        let chosen = self.choose(view, ledger, &view.snapshot.jobs[request.job])?;
        for ShrinkingGang { gang, held, smaller } in &chosen {
            ledger.draft.resize(gang.id, &gang.job.spec, held, smaller.clone());
        }
        let mark = ledger.draft.mark();
        let admitted = admit_beside_reservations(view, ledger, request);
        ledger.draft.rollback(mark);
        for ShrinkingGang { gang, held, smaller } in &chosen {
            ledger.draft.undo_resize(gang.id, &gang.job.spec, smaller, held);
        }
        let resize =
            |ShrinkingGang { gang, held, smaller }| Entry::Resize { job: gang.id, from: held, to: smaller };
        let mut entries: Vec<Entry> = chosen.into_iter().map(resize).collect();
        entries.extend(admitted.ok()?.into_iter().map(with_room_free));
        Some(Proposal { serves: Some((request, Serves::ByRearranging)), entries })
    }

    /// As few gangs as suffice, each with the smaller size that it gets.
    fn choose<'a>(
        &mut self,
        view: &View<'a>,
        ledger: &mut Ledger<'a>,
        job: &'a Job,
    ) -> Option<Vec<ShrinkingGang<'a>>> {
        let most = *self.most.get_or_insert_with(|| total(&givers(ledger)));
        let would_do = |theirs: Resources| job.spec.least().fits_in(ledger.draft.total() + theirs);
        let is_spent =
            ledger.work.vain_reclaim_searches >= view.snapshot.tuning.decide.max_vain_reclaim_searches;
        if most == Resources::NONE || !would_do(most) || is_spent {
            return None;
        }
        let givers = givers(ledger);
        if givers.is_empty() || !would_do(total(&givers)) {
            return None;
        }
        let chosen = Search { view, job }.choose(ledger.draft.trial(), givers);
        ledger.work.vain_reclaim_searches += usize::from(chosen.is_none());
        chosen
    }
}

/// The same entry, for a place whose capacity was given back after it was found.
fn with_room_free(entry: Entry) -> Entry {
    match entry {
        Entry::Start { job, place, .. } => Entry::Start { job, place, room: Room::Free },
        other => other,
    }
}

/// What these gangs could give back together.
fn total(givers: &[ShrinkingGang<'_>]) -> Resources {
    givers.iter().map(|giver| giver.gang.total(&giver.held)).sum()
}

/// Gangs that run above their minimum, the gang that loses most first.
fn givers<'a>(ledger: &Ledger<'a>) -> Vec<ShrinkingGang<'a>> {
    let (draft, rights) = (&ledger.draft, ledger.requests.rights.as_ref());
    let Snapshot { jobs, plan, elastic, .. } = *draft.snapshot;
    let planned = elastic.iter().filter(|id| !draft.is_leaving(**id) && !ledger.bookings.govern(**id));
    let gangs = planned.filter_map(|id| Some((ElasticGang::of(*id, &jobs[*id])?, plan.get(*id)?)));
    let may_give = gangs.filter(|(gang, held)| gang.may_change(draft.snapshot, held));
    // A gang may have given members back already in this decision.
    let held = may_give.map(|(gang, held)| (gang, draft.assigned(gang.id).unwrap_or(held)));
    let large = held.filter(|(gang, held)| gang.count(held) > 0);
    let mut givers: Vec<ShrinkingGang<'a>> =
        large.filter_map(|(gang, held)| ShrinkingGang::at_least(draft, gang, held)).collect();
    let queues = draft.held().by_queue();
    let beyond = |queue| rights.is_some_and(|rights| rights.is_beyond(queues, queue));
    givers.sort_by_cached_key(|ShrinkingGang { gang, held, .. }| {
        let loss = GpuTime::of(held.total().gpus, gang.cost());
        (beyond(gang.job.spec.queue), Reverse(loss), Reverse(gang.job.spec.priority), gang.id)
    });
    givers
}

impl<'a> ShrinkingGang<'a> {
    /// A gang that shrinks to its minimum.
    fn at_least(draft: &Draft<'a>, gang: ElasticGang<'a>, held: &Arc<Assignment>) -> Option<Self> {
        let smaller = Arc::new(gang.without(draft.snapshot.cluster, held, gang.count(held))?);
        Some(Self { gang, held: held.clone(), smaller })
    }

    /// The same gang, giving this many members or teams back.
    fn giving(&self, draft: &Draft<'a>, count: u32) -> Option<Self> {
        let smaller = Arc::new(self.gang.without(draft.snapshot.cluster, &self.held, count)?);
        Some(Self { smaller, ..self.clone() })
    }
}

/// The search for members that one job needs.
struct Search<'s, 'a> {
    view: &'s View<'a>,
    job: &'a Job,
}

impl<'a> Search<'_, 'a> {
    fn choose(&self, mut trial: Draft<'a>, all: Vec<ShrinkingGang<'a>>) -> Option<Vec<ShrinkingGang<'a>>> {
        let all: Vec<ShrinkingGang<'a>> = all.into_iter().filter(|giver| give(&mut trial, giver)).collect();
        if !self.fits(&mut trial) {
            return None;
        }
        let mut needed = Vec::new();
        for giver in all {
            take(&mut trial, &giver);
            if !self.fits(&mut trial) {
                give(&mut trial, &giver);
                needed.push(giver);
            }
        }
        Some(needed.into_iter().map(|giver| self.as_few_as_will_do(&mut trial, giver)).collect())
    }

    /// Fewer members are given back where fewer will do: found by halving, for what fits with some given back fits with
    /// more. The trial is left with these given back.
    fn as_few_as_will_do(&self, trial: &mut Draft<'a>, all: ShrinkingGang<'a>) -> ShrinkingGang<'a> {
        let (mut too_few, mut enough) = (0, all.gang.count(&all.held));
        let mut best = all;
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            let Some(fewer) = best.giving(trial, middle) else { break };
            take(trial, &best);
            let given = give(trial, &fewer);
            if given && self.fits(trial) {
                (enough, best) = (middle, fewer);
                continue;
            }
            if given {
                take(trial, &fewer);
            }
            give(trial, &best);
            too_few = middle;
        }
        best
    }

    /// Whether the job would be admitted in a trial, which stays as it was.
    fn fits(&self, trial: &mut Draft<'a>) -> bool {
        trial.forget_fits();
        self.view.quota_allows(trial, self.job).is_ok()
            && self.view.borrowing_allows(trial, self.job).is_ok()
            && placement::fit(self.view, trial, self.job, GangSize::Minimum, Reach::Unclaimed).is_ok()
    }
}

fn give<'a>(trial: &mut Draft<'a>, giver: &ShrinkingGang<'a>) -> bool {
    let ShrinkingGang { gang, held, smaller } = giver;
    trial.resize(gang.id, &gang.job.spec, held, smaller.clone())
}

fn take<'a>(trial: &mut Draft<'a>, giver: &ShrinkingGang<'a>) {
    let ShrinkingGang { gang, held, smaller } = giver;
    trial.undo_resize(gang.id, &gang.job.spec, smaller, held);
}
