//! What jobs with deadlines need, as the planner sees it.

use std::sync::Arc;

use super::kind::{Kind, makes_room};
use super::memory::MemoryNeed;
use crate::deadlines::{BookingSize, PoolDemand, PresentSize, ResizePauses, Stops, Units};
use crate::decide::elastic_gang::ElasticGang;
use crate::decide::snapshot::Snapshot;
use crate::model::id::{JobId, NodeId};
use crate::model::job::{Binding, Checkpointing, ExitReason, Job, Life};
use crate::model::plan::Assignment;
use crate::model::policy::Deadlines;
use crate::model::units::{Duration, Instant, Share};
use crate::observe::scaling::{Speed, useful};

/// A job whose deadline counts.
#[derive(Clone, Debug)]
pub(in crate::decide) struct DeadlineJob<'a> {
    pub(in crate::decide) id: JobId,
    pub(in crate::decide) job: &'a Job,
    pub(super) kind: Kind,
    pub(in crate::decide) need: PoolDemand,
    pub(super) stops: Stops,
    pub(super) memory: MemoryNeed,
    /// How long the job may wait for other jobs to make room for it.
    pub(super) handover: Duration,
}

/// What a job is booked to have now: members, and the node where it is bound to one.
#[derive(Clone, Debug)]
pub(in crate::decide) struct BookedSize<'a> {
    pub(in crate::decide) timed: DeadlineJob<'a>,
    pub(in crate::decide) members: u32,
    pub(in crate::decide) node: Option<NodeId>,
}

/// All jobs whose deadlines count and that are to run, by deadline.
pub(super) fn timed<'a>(snapshot: &Snapshot<'a>, deadlines: Deadlines) -> Vec<DeadlineJob<'a>> {
    let handover = handover(snapshot, deadlines);
    let live = snapshot.timed.iter().map(|id| (*id, &snapshot.jobs[*id]));
    let mut timed: Vec<DeadlineJob<'a>> =
        live.filter_map(|(id, job)| DeadlineJob::of(snapshot, deadlines, handover, id, job)).collect();
    timed.sort_by_key(|timed| (timed.need.until, timed.id));
    timed
}

/// The longest time that a job takes to make room: it ends the start or resize that is under way, then saves its work
/// and leaves, or goes on with fewer members; what it gives back is free only then. That matters only where deadlines
/// are promised.
fn handover(snapshot: &Snapshot<'_>, deadlines: Deadlines) -> Duration {
    let timed = snapshot.timed.iter().map(|id| &snapshot.jobs[*id]);
    let others = snapshot.plan.iter().filter(|(id, _)| !snapshot.timed.contains(id));
    let others = others.map(|(id, _)| &snapshot.jobs[id]).filter(|job| makes_room(job));
    timed.chain(others).map(|job| makes_room_within(job, deadlines)).max().unwrap_or_default()
}

fn makes_room_within(job: &Job, deadlines: Deadlines) -> Duration {
    let Checkpointing { takes, restart, .. } = job.spec.checkpointing.unwrap_or_default();
    let elastic = job.spec.capabilities.rescale && job.spec.roles.iter().any(|role| role.gang.is_elastic());
    let goes_on = elastic && deadlines == Deadlines::Promised;
    let gives_back = if goes_on { takes + restart } else { takes };
    takes + restart + gives_back
}

impl<'a> DeadlineJob<'a> {
    fn of(
        snapshot: &Snapshot<'a>,
        deadlines: Deadlines,
        handover: Duration,
        id: JobId,
        job: &'a Job,
    ) -> Option<Self> {
        if job.spec.suspended || is_over(&job.life) {
            return None;
        }
        let kind = Kind::of(job);
        let need = PoolDemand {
            work: with_margin(snapshot, deadlines, job)?.max(Duration(1)),
            sizes: sizes(snapshot, id, job, kind, deadlines, snapshot.plan.get(id)),
            now: snapshot.now,
            until: job.spec.deadline?.at,
            has: PresentSize::default(),
            pauses: pauses(job, kind, handover, snapshot.now),
        };
        let stops = if job.spec.capabilities.suspend { Stops::AtAnyTime } else { Stops::Never };
        let memory = MemoryNeed::of(id, job, snapshot.plan.get(id).map(|held| &**held));
        let timed = Self { id, job, kind, need, stops, memory, handover };
        Some(Self { need: PoolDemand { has: timed.has(snapshot), ..timed.need.clone() }, ..timed })
    }

    /// The same job, if other jobs make room within this time.
    pub(super) fn with_handover(&self, snapshot: &Snapshot<'_>, handover: Duration) -> Self {
        let pauses = pauses(self.job, self.kind, handover, snapshot.now);
        let timed = Self { need: PoolDemand { pauses, ..self.need.clone() }, handover, ..self.clone() };
        Self { need: PoolDemand { has: timed.has(snapshot), ..timed.need.clone() }, ..timed }
    }

    /// How many members of an assignment count in its size.
    pub(in crate::decide) fn members(&self, held: &Assignment) -> u32 {
        match ElasticGang::of(self.id, self.job) {
            Some(gang) => gang.members(held),
            None => held.members(),
        }
    }

    /// The size that the plan gives it, and how long it takes until that size works.
    fn has(&self, snapshot: &Snapshot<'_>) -> PresentSize {
        let Some(planned) = snapshot.plan.get(self.id) else { return PresentSize::default() };
        let members = self.members(planned);
        let runs = matches!(&self.job.life, Life::Running(held) if held == planned);
        let since = snapshot.plan.timetable().get(self.id).map_or(snapshot.now, |entry| entry.since);
        let ResizePauses { first, again, more, .. } = self.need.pauses;
        let runs_on = matches!(self.job.life, Life::Resizing { .. } | Life::Running(_));
        let all = match self.is_fresh(snapshot.now) {
            true => first,
            false if runs_on => more,
            false => again,
        };
        let pause = if runs { Duration::ZERO } else { all - snapshot.now.since(since) };
        PresentSize { members, pause }
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.job.progress.executed(now).is_zero()
    }

    /// Whether it is resized in place, without a restart.
    pub(super) fn is_in_place(&self) -> bool {
        self.kind == Kind::CoresInPlace
    }
}

/// Whether a job does not run again by itself.
fn is_over(life: &Life) -> bool {
    let ends =
        |exit: &ExitReason| matches!(exit, ExitReason::Cancel | ExitReason::Miss(_) | ExitReason::Suspend);
    match life {
        Life::Leaving { exit, .. } => ends(exit),
        life => matches!(life, Life::Suspended | Life::Refused(_) | Life::Failed(_) | Life::Done),
    }
}

/// The remaining work. Promised jobs are planned with the recent error of predictions as margin; more of the other
/// jobs can be in time without one.
fn with_margin(snapshot: &Snapshot<'_>, deadlines: Deadlines, job: &Job) -> Option<Duration> {
    let left = job.foreseen(snapshot.now)?;
    let strict = job.spec.deadline.is_some_and(|deadline| deadline.binding == Binding::Strict);
    let margin = match deadlines {
        Deadlines::Promised if strict => {
            own_error(job).max(snapshot.plan.timetable().error(&snapshot.tuning.deadlines))
        }
        _ => Share::NONE,
    };
    let more = u128::from(left.0) * u128::from(margin.0) / u128::from(Share::WHOLE.0);
    Some(left + Duration(u64::try_from(more).unwrap_or(u64::MAX)))
}

/// The error of the scaling fit of this job against its own measurements.
fn own_error(job: &Job) -> Share {
    job.fit().map_or(Share::NONE, |fit| fit.error())
}

/// The pauses of a job. A job that is resized in place loses nothing. Other jobs save their work and go on from there,
/// and a job that starts or grows may have to wait until another has made room.
fn pauses(job: &Job, kind: Kind, handover: Duration, now: Instant) -> ResizePauses {
    let Checkpointing { takes, restart, .. } = job.spec.checkpointing.unwrap_or_default();
    let resize = if kind == Kind::CoresInPlace { Duration::ZERO } else { takes + restart };
    let again = restart + handover;
    let first = if job.progress.executed(now).is_zero() { handover } else { again };
    ResizePauses { first, again, more: resize + handover, fewer: resize }
}

/// The sizes a job may have: those that are of use, or all that are known where the policy gives as many members as
/// there are.
fn sizes(
    snapshot: &Snapshot<'_>,
    id: JobId,
    job: &Job,
    kind: Kind,
    deadlines: Deadlines,
    held: Option<&Arc<Assignment>>,
) -> Arc<[BookingSize]> {
    let Some(gang) = ElasticGang::of(id, job).filter(|gang| gang.may_be_resized()) else {
        return Arc::new([the_only_size(id, job, kind, held)]);
    };
    let (least, each) = (gang.least(), kind.units(gang.of_one()));
    let others = kind.units(job.spec.least()) - each * Units::from(least);
    let size = |(members, speed): (u32, Speed)| {
        let units = others + each * Units::from(members);
        BookingSize { members, units, speed }
    };
    let fits = |(members, _): &(u32, Speed)| (least..=gang.most()).contains(members);
    let declared = match &job.spec.scaling {
        Some(scaling) => scaling.sizes().iter().copied().filter(fits).collect(),
        None => in_proportion(&gang, snapshot.tuning.decide.max_booked_sizes),
    };
    let known = job.corrected_by_measurements(declared);
    let known = if deadlines == Deadlines::Earliest { &known } else { useful(&known) };
    known.iter().map(|known| size(*known)).collect()
}

/// The size of a job that is not resized: what it has, or asks for.
fn the_only_size(id: JobId, job: &Job, kind: Kind, held: Option<&Arc<Assignment>>) -> BookingSize {
    let members =
        |held: &Assignment| ElasticGang::of(id, job).map_or(held.members(), |gang| gang.members(held));
    match held {
        Some(held) => BookingSize {
            members: members(held),
            units: kind.units(held.total()),
            speed: job.pace_on(held).speed(),
        },
        None => BookingSize {
            members: ElasticGang::of(id, job).map_or(job.spec.members(), |gang| gang.least()),
            units: kind.units(job.spec.least()),
            speed: Speed::PLAIN,
        },
    }
}

/// Speeds in proportion to the number of members, where nothing else is known.
fn in_proportion(gang: &ElasticGang<'_>, max_sizes: u32) -> Vec<(u32, Speed)> {
    let (least, unit) = (gang.least().max(1), gang.unit());
    let steps = (gang.most() - least) / unit;
    let stride = steps / max_sizes + 1;
    let members = (0..=steps).step_by(stride as usize).map(|step| least + step * unit);
    members.map(|members| (members, Speed(Speed::PLAIN.0 * u64::from(members) / u64::from(least)))).collect()
}
