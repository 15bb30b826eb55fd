//! Moves that let somebody start: a gang that does not fit, though there is room enough for it in all, fits once a few who
//! run have moved closer together.
//!
//! What is gained is the time for which the gang would wait otherwise: until the room that is kept for it comes free, or
//! until so many are expected to have left that it fits (`reserve`; who does not say how long it takes is expected to
//! take as long again as it has). What is paid is what those who move lose by saving and starting again, and by what they
//! meet on links at their new places. Each second counts by the priority of whose it is, and a move must gain half as
//! much again as it costs. Those who move go into room that is free now and kept for nobody, so that they never wait for
//! each other; the gang is in the plan at once and starts when the last of them has left. If one of them cannot be moved,
//! it keeps its place, and the gang waits on.
//!
//! The room that a gang gets by this is what others wait for, too. So nobody is moved for it while another who lacks room
//! has less to do and no lower priority: a long gang would start earlier, and many short jobs later.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::admit::Rules;
use super::super::deadlines::{book_start, leaves_what_is_booked};
use super::super::draft::Draft;
use super::super::placement_cost::counts;
use super::super::reservations::reserve;
use super::{can_be_moved, has_run_for_long, is_time_to_look, runs_at_least, takes};
use crate::model::id::{ClassId, JobId};
use crate::model::job::{Job, Priority};
use crate::model::plan::Assignment;
use crate::model::units::{Duration, GpuTime, Instant};
use crate::traffic::decision_inputs::{Reconfiguration, What, Why};
use search::Search;

/// So many who wait are looked at in one decision, the first in line: each costs a look at everybody who runs.
const MOST_GANGS: usize = 2;

/// And so often: a look costs more than most decisions, and room that is in pieces is so for long.
const LOOKED_EVERY: Duration = Duration::MINUTE;

/// Moves for those who wait, in one pass over the line.
#[derive(Default)]
pub(in crate::decide) struct Gathering<'a> {
    movers: Option<Movers<'a>>,
    looked_at: BTreeSet<JobId>,
}

/// The least that anybody who lacks room has to do, in GPU-time, by priority.
pub(in crate::decide) struct Least(BTreeMap<Priority, u128>);

impl Least {
    pub(in crate::decide) fn of<'a>(rules: &Rules<'a>, lacking: &[(JobId, ClassId)]) -> Self {
        let mut least: BTreeMap<Priority, u128> = BTreeMap::new();
        for job in lacking.iter().map(|(id, _)| &rules.snapshot.jobs[*id]) {
            let has = least.entry(job.spec.priority).or_insert(u128::MAX);
            *has = to_do(job, rules.snapshot.now).min(*has);
        }
        Self(least)
    }

    /// Whether nobody who counts for as much has less to do than a job.
    fn is_of(&self, job: &Job, now: Instant) -> bool {
        self.0.range(job.spec.priority..).all(|(_, least)| to_do(job, now) <= *least)
    }
}

/// Whoever does not say how long it takes has most to do.
fn to_do(job: &Job, now: Instant) -> u128 {
    job.remaining(now).map_or(u128::MAX, |left| GpuTime::of(job.spec.gpus(), left).0)
}

/// Those who could be moved, and when the next could be who has not run for long enough.
struct Movers<'a> {
    ripe: Vec<Mover<'a>>,
    next: Option<Instant>,
}

/// Somebody who could be moved, and the seconds that costs, counted by its priority.
#[derive(Clone, Copy)]
struct Mover<'a> {
    id: JobId,
    job: &'a Job,
    held: &'a Arc<Assignment>,
    costs: f64,
}

/// Where a gang starts when these have gone where they are to go.
struct Gathered {
    place: Assignment,
    moves: Vec<(JobId, Assignment)>,
    saves: Duration,
}

impl<'a> Gathering<'a> {
    /// Whether nothing is lacking to a job but a place: there is room enough for it in all, and nobody is leaving for it.
    pub(in crate::decide) fn may_help(
        &self,
        rules: &Rules<'a>,
        draft: &Draft<'a>,
        least: &Least,
        id: JobId,
    ) -> bool {
        let job = &rules.snapshot.jobs[id];
        let (queue, need) = (job.spec.queue, job.spec.least());
        need.fits_in(draft.total())
            && !self.looked_at.contains(&id)
            && least.is_of(job, rules.snapshot.now)
            && rules.quota_allows(draft, job).is_ok()
            && rules.leaves_what_is_kept(draft, queue, need, draft.total())
            && leaves_what_is_booked(rules, draft, id).is_ok()
            && rules.snapshot.displaced.values().all(|beneficiary| *beneficiary != id)
    }

    /// Whether those who could be helped are looked at now. Where it is too early, they are at the next time for it.
    pub(in crate::decide) fn may_look(&self, rules: &Rules<'a>, draft: &mut Draft<'a>) -> bool {
        let is_time = is_time_to_look(rules, LOOKED_EVERY);
        if !is_time {
            wake_at(draft, rules.snapshot.now + Duration(1));
        }
        is_time && self.looked_at.len() < MOST_GANGS
    }

    /// Moves others together so that a job fits, and gives it its place; false if that is impossible or does not pay.
    pub(in crate::decide) fn make_room(
        &mut self,
        rules: &Rules<'a>,
        draft: &mut Draft<'a>,
        id: JobId,
    ) -> bool {
        self.looked_at.insert(id);
        let movers = self.movers.get_or_insert_with(|| Movers::of(rules, draft));
        let Some(gathered) = Search::of(rules, draft, id, &movers.ripe).best() else {
            movers.next.into_iter().for_each(|next| wake_at(draft, next));
            return false;
        };
        carry_out(rules, draft, id, gathered);
        true
    }
}

fn carry_out<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId, gathered: Gathered) {
    let Gathered { place, moves, saves } = gathered;
    let jobs: BTreeSet<JobId> = moves.iter().map(|(mover, _)| *mover).collect();
    let (why, what, jobs) = (Why::Fragmentation { job: id }, What::Place, jobs.into_iter().collect());
    draft.report.reconfigured.push(Reconfiguration { why, what, jobs, saves });
    for (mover, to) in moves {
        draft.relocate(mover, &rules.snapshot.jobs[mover], to);
    }
    draft.settle(id, &rules.snapshot.jobs[id], place);
    draft.keep_nothing_for(id);
    draft.use_up_spare(id, |_| true);
    book_start(rules, draft, id);
}

/// There is a decision at the first time to look from then on, even if nothing happens.
fn wake_at(draft: &mut Draft<'_>, at: Instant) {
    let at = at.rounded_up(LOOKED_EVERY);
    draft.wake = Some(draft.wake.map_or(at, |wake| wake.min(at)));
}

/// When a job is expected to fit if nobody is moved for it.
fn fits_from<'a>(rules: &Rules<'a>, draft: &Draft<'a>, id: JobId) -> Option<Instant> {
    let kept = draft.reservations.iter().find(|kept| kept.job == id).map(|kept| kept.from);
    kept.or_else(|| reserve(rules, draft, id).map(|kept| kept.from))
}

impl<'a> Movers<'a> {
    fn of(rules: &Rules<'a>, draft: &Draft<'a>) -> Self {
        let snapshot = rules.snapshot;
        let planned = snapshot.plan.iter().map(|(id, held)| (id, &snapshot.jobs[id], held));
        let movable = planned.filter(|(id, job, held)| {
            let as_asked = job.spec.members() == held.members() && job.spec.budgets.is_empty();
            as_asked && !draft.timetable.governs(*id) && can_be_moved(rules, *id)
        });
        let (ripe, unripe): (Vec<_>, Vec<_>) = movable.partition(|(_, job, _)| has_run_for_long(rules, job));
        let next = unripe.iter().filter_map(|(_, job, _)| job.ripe(runs_at_least(rules, job))).min();
        let mover = |(id, job, held): (JobId, &'a Job, &'a Arc<Assignment>)| {
            // Who could not be moved the last times is expected to cost as many tries more.
            let tries = 1.0 + f64::from(job.failed_moves);
            let costs = tries * counts(snapshot, job) * takes(job).as_secs_f64();
            Mover { id, job, held, costs }
        };
        let mut ripe: Vec<Mover<'a>> = ripe.into_iter().map(mover).collect();
        ripe.sort_by(|one, other| one.costs.total_cmp(&other.costs).then(one.id.cmp(&other.id)));
        Self { ripe, next }
    }
}
