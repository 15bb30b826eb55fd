//! Jobs that could be moved, and a way to move some of them.

use std::sync::Arc;

use crate::decide::ledger::Ledger;
use crate::decide::link_cost::priority_weight;
use crate::decide::movable::{can_be_moved, has_run_for_long, runs_at_least, takes};
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant};

/// Jobs that could be moved, and when the next job could be that has not run long enough.
pub(super) struct Movers<'a> {
    pub(super) ripe: Vec<Mover<'a>>,
    pub(super) next: Option<Instant>,
}

/// A job that could be moved, and the seconds that costs, weighted by its priority.
#[derive(Clone, Copy)]
pub(super) struct Mover<'a> {
    pub(super) id: JobId,
    pub(super) job: &'a Job,
    pub(super) held: &'a Arc<Assignment>,
    pub(super) costs: f64,
}

/// The place of a gang once these moves are made.
pub(super) struct MovePlan {
    pub(super) place: Assignment,
    pub(super) moves: Vec<(JobId, Assignment)>,
    pub(super) saves: Duration,
}

impl<'a> Movers<'a> {
    pub(super) fn of(view: &View<'a>, ledger: &Ledger<'a>) -> Self {
        let snapshot = view.snapshot;
        let planned = snapshot.plan.iter().map(|(id, held)| (id, &snapshot.jobs[id], held));
        let movable = planned.filter(|(id, job, held)| {
            let as_asked = job.spec.members() == held.members() && job.spec.budgets.is_empty();
            as_asked && !ledger.bookings.govern(*id) && can_be_moved(view, *id)
        });
        let (ripe, unripe): (Vec<_>, Vec<_>) = movable.partition(|(_, job, _)| has_run_for_long(view, job));
        let next = unripe.iter().filter_map(|(_, job, _)| job.ripe(runs_at_least(view, job))).min();
        let mover = |(id, job, held): (JobId, &'a Job, &'a Arc<Assignment>)| {
            // A job that could not be moved the last times is expected to cost as many tries more.
            let tries = 1.0 + f64::from(job.failed_moves);
            let costs = tries * priority_weight(snapshot, job) * takes(job).as_secs_f64();
            Mover { id, job, held, costs }
        };
        let mut ripe: Vec<Mover<'a>> = ripe.into_iter().map(mover).collect();
        ripe.sort_by(|one, other| one.costs.total_cmp(&other.costs).then(one.id.cmp(&other.id)));
        Self { ripe, next }
    }
}
