//! Extras are given back to whoever waits and would fit with them.
//!
//! All that run above their least are thought down to it. If that makes room for the job, each keeps its size in turn
//! without whom the job still fits, whoever would lose most first; those left over give back no more members than they
//! must. Gangs of queues that hold more than their own give back first.

use std::cmp::Reverse;
use std::sync::Arc;

use super::Extras;
use crate::decide::admit::Rules;
use crate::decide::draft::Draft;
use crate::decide::queue_shares::Rights;
use crate::decide::snapshot::Snapshot;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::units::{GpuTime, Resources};

/// A cycle gives up after so many searches that found nothing: each looks at every node.
const MOST_SEARCHES_IN_VAIN: usize = 100;

/// Gangs that may give members back in one pass.
#[derive(Debug, Default)]
pub(in crate::decide) struct Giving {
    in_vain: usize,
    /// What all could give back when somebody first asked; in the course of a pass it only becomes less.
    most: Option<Resources>,
}

/// A gang that gives so many back.
#[derive(Clone)]
struct Giver<'a> {
    gang: Extras<'a>,
    held: Arc<Assignment>,
    smaller: Arc<Assignment>,
}

impl Giving {
    /// Has gangs give back in the draft what a job lacks; what to undo if that was in vain. `None` if it would not do.
    pub(in crate::decide) fn make_room<'a>(
        &mut self,
        rules: &Rules<'a>,
        rights: Option<&Rights<'a>>,
        draft: &mut Draft<'a>,
        id: JobId,
    ) -> Option<Given<'a>> {
        let job = &rules.snapshot.jobs[id];
        let most = *self.most.get_or_insert_with(|| total(&givers(rights, draft)));
        let would_do = |theirs: Resources| job.spec.least().fits_in(draft.total() + theirs);
        if most == Resources::NONE || !would_do(most) || self.in_vain >= MOST_SEARCHES_IN_VAIN {
            return None;
        }
        let givers = givers(rights, draft);
        if givers.is_empty() || !would_do(total(&givers)) {
            return None;
        }
        let chosen = Search { rules, job }.choose(draft.trial(), givers);
        self.in_vain += usize::from(chosen.is_none());
        let chosen = chosen?;
        for Giver { gang, held, smaller } in &chosen {
            draft.resize(gang.id, &gang.job.spec, held, smaller.clone());
        }
        Some(Given(chosen))
    }
}

/// Members that were given back in a draft.
pub(in crate::decide) struct Given<'a>(Vec<Giver<'a>>);

impl<'a> Given<'a> {
    /// They were given back in vain.
    pub(in crate::decide) fn undo(self, draft: &mut Draft<'a>) {
        for Giver { gang, held, smaller } in self.0 {
            draft.undo_resize(gang.id, &gang.job.spec, &smaller, &held);
        }
    }
}

/// What they could give back together.
fn total(givers: &[Giver<'_>]) -> Resources {
    givers.iter().map(|giver| giver.gang.total(&giver.held)).sum()
}

/// Those that run above their least, whoever loses most by giving back first.
fn givers<'a>(rights: Option<&Rights<'a>>, draft: &Draft<'a>) -> Vec<Giver<'a>> {
    let Snapshot { jobs, plan, elastic, .. } = *draft.snapshot;
    let planned = elastic.iter().filter(|id| !draft.is_leaving(**id) && !draft.timetable.governs(**id));
    let gangs = planned.filter_map(|id| Some((Extras::of(*id, &jobs[*id])?, plan.get(*id)?)));
    let may_give = gangs.filter(|(gang, held)| gang.may_change(draft.snapshot, held));
    // Some may have given members back already in this pass.
    let held = may_give.map(|(gang, held)| (gang, draft.assigned(gang.id).unwrap_or(held)));
    let large = held.filter(|(gang, held)| gang.count(held) > 0);
    let mut givers: Vec<Giver<'a>> =
        large.filter_map(|(gang, held)| Giver::at_least(draft, gang, held)).collect();
    let queues = draft.held().by_queue();
    let beyond = |queue| rights.is_some_and(|rights| rights.is_beyond(queues, queue));
    givers.sort_by_cached_key(|Giver { gang, held, .. }| {
        let loss = GpuTime::of(held.total().gpus, gang.cost());
        (beyond(gang.job.spec.queue), Reverse(loss), Reverse(gang.job.spec.priority), gang.id)
    });
    givers
}

impl<'a> Giver<'a> {
    /// A gang that gives all back that it could do without.
    fn at_least(draft: &Draft<'a>, gang: Extras<'a>, held: &Arc<Assignment>) -> Option<Self> {
        let smaller = Arc::new(gang.without(draft.snapshot.cluster, held, gang.count(held))?);
        Some(Self { gang, held: held.clone(), smaller })
    }

    /// The same, giving so many back.
    fn giving(&self, draft: &Draft<'a>, count: u32) -> Option<Self> {
        let smaller = Arc::new(self.gang.without(draft.snapshot.cluster, &self.held, count)?);
        Some(Self { smaller, ..self.clone() })
    }
}

/// One job looking for members to be given back.
struct Search<'s, 'a> {
    rules: &'s Rules<'a>,
    job: &'a Job,
}

impl<'a> Search<'_, 'a> {
    fn choose(&self, mut trial: Draft<'a>, all: Vec<Giver<'a>>) -> Option<Vec<Giver<'a>>> {
        let all: Vec<Giver<'a>> = all.into_iter().filter(|giver| give(&mut trial, giver)).collect();
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
    fn as_few_as_will_do(&self, trial: &mut Draft<'a>, all: Giver<'a>) -> Giver<'a> {
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
        self.rules.would_admit(trial, self.job)
    }
}

fn give<'a>(trial: &mut Draft<'a>, giver: &Giver<'a>) -> bool {
    let Giver { gang, held, smaller } = giver;
    trial.resize(gang.id, &gang.job.spec, held, smaller.clone())
}

fn take<'a>(trial: &mut Draft<'a>, giver: &Giver<'a>) {
    let Giver { gang, held, smaller } = giver;
    trial.undo_resize(gang.id, &gang.job.spec, smaller, held);
}
