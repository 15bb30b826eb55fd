//! Jobs without deadlines: what bookings leave to them.
//!
//! Free capacity is shared between jobs without deadlines and booked jobs by what each has left to do, in units times
//! time: the job with less goes first, and the work of a job with a deadline counts for a tenth, so that slack is
//! built up while capacity is free. The work of a running job counts for half: no job is stopped for one that has
//! hardly less to do.

use super::capacity_pools::{Pools, best_effort_part};
use super::kind::{Kind, makes_room};
use super::need::DeadlineJob;
use crate::deadlines::Units;
use crate::decide::snapshot::Snapshot;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Job;
use crate::model::units::Resources;

/// What jobs without deadlines would take now, by what they have left to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BestEffortDemand {
    gpus: CumulativeDemand,
    cores: CumulativeDemand,
}

/// Jobs in the order of the work they have left; each with what all jobs up to it would take.
#[derive(Debug, Default, PartialEq, Eq)]
struct CumulativeDemand(Vec<(u128, Units)>);

impl BestEffortDemand {
    pub(super) fn of(snapshot: &Snapshot<'_>) -> Self {
        let tuning = &snapshot.tuning.decide;
        let running_weight = u128::from(tuning.running_weight);
        let running = snapshot.plan.iter().filter(|(id, _)| is_other(snapshot, *id));
        let running = running.map(|(id, held)| (&snapshot.jobs[id], held.total(), running_weight));
        let waiting =
            waiting(snapshot).take(tuning.max_best_effort_jobs).map(|job| (job, job.spec.least(), 1));
        let (mut gpus, mut cores) = (Vec::new(), Vec::new());
        for (job, takes, part) in running.filter(|(job, ..)| makes_room(job)).chain(waiting) {
            let kind = Kind::of(job);
            let (units, Some(left)) = (kind.units(takes), job.remaining(snapshot.now)) else { continue };
            let line = if matches!(kind, Kind::Gpus(_)) { &mut gpus } else { &mut cores };
            line.push((left_to_do(units, left.0) / part, units));
        }
        Self { gpus: CumulativeDemand::of(gpus), cores: CumulativeDemand::of(cores) }
    }

    /// What the jobs take of a pool that go ahead of a booked job.
    pub(super) fn ahead_of(
        &self,
        snapshot: &Snapshot<'_>,
        pools: &Pools,
        timed: &DeadlineJob<'_>,
        node: Option<NodeId>,
    ) -> Units {
        let least = timed.need.sizes[0].units;
        let tuning = &snapshot.tuning.decide;
        let (due, running) = (u128::from(tuning.deadline_slack_weight), u128::from(tuning.running_weight));
        let part = if timed.need.has.members > 0 { due * running } else { due };
        let left = left_to_do(least, timed.need.work.0) / part;
        let line = if matches!(timed.kind, Kind::Gpus(_)) { &self.gpus } else { &self.cores };
        pools.part_of(snapshot, timed.kind, node, line.before(left))
    }
}

impl CumulativeDemand {
    fn of(mut wants: Vec<(u128, Units)>) -> Self {
        wants.sort_unstable();
        let mut all: Units = 0;
        for (_, units) in &mut wants {
            all = all.saturating_add(*units);
            *units = all;
        }
        Self(wants)
    }

    fn before(&self, left: u128) -> Units {
        let ahead = self.0.partition_point(|(other, _)| *other < left);
        ahead.checked_sub(1).map_or(0, |last| self.0[last].1)
    }
}

/// Whether jobs without deadlines wait and have less than their part.
pub(super) fn lack_capacity(snapshot: &Snapshot<'_>) -> bool {
    let held = snapshot.plan.iter().filter(|(id, _)| is_other(snapshot, *id));
    let held = held.fold(Resources::NONE, |sum, (_, held)| sum + held.total());
    let all = snapshot.cluster.capacity();
    waiting(snapshot).any(|job| {
        let kind = Kind::of(job);
        kind.units(held) < kind.units(all) / best_effort_part(snapshot)
    })
}

/// Whether there are jobs without deadlines.
pub(super) fn any_jobs(snapshot: &Snapshot<'_>) -> bool {
    waiting(snapshot).next().is_some() || snapshot.plan.iter().any(|(id, _)| is_other(snapshot, id))
}

fn is_other(snapshot: &Snapshot<'_>, id: JobId) -> bool {
    !snapshot.timed.contains(&id)
}

fn waiting<'a>(snapshot: &Snapshot<'a>) -> impl Iterator<Item = &'a Job> {
    let Snapshot { jobs, timed, .. } = *snapshot;
    let untimed = snapshot.waiting.classes().filter(|(_, class)| class.key.due.is_none());
    let first = untimed
        .flat_map(|(_, class)| class.line.iter().take(snapshot.tuning.decide.max_best_effort_per_class));
    first.filter(|place| !timed.contains(&place.job)).map(|place| &jobs[place.job])
}

fn left_to_do(units: Units, time: u64) -> u128 {
    u128::from(units.unsigned_abs()) * u128::from(time)
}
