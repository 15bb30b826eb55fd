//! The rules of the timetable: bookings of jobs that there are, and at no time more of a pool than the cluster has of it.
//!
//! Pools are derived anew: the nodes on which a booked job may run, with what they have of GPUs, or of cores where the job uses
//! no GPUs. A booking takes from its own pool and from every pool in which that one lies. Nodes count whatever their state: a
//! job goes on on a node that is drained, and a booking outlives a node that is lost for a while. Where the world has taken capacity
//! away, bookings that were there before may stay; no time may get worse. A job that has its place and cannot be stopped keeps
//! what it holds, whatever is booked: that comes off the capacity for all other bookings.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use crate::deadlines::{Booking, DeadlineEntry};
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::Node;
use crate::model::id::{JobId, NodeId};
use crate::model::job::{Eligibility, Job, JobSpec, Role};
use crate::model::plan::Amendment;
use crate::model::units::{Instant, Resources};

pub(super) fn keeps_rules_of_bookings(
    snapshot: &Snapshot<'_>,
    amendment: &Amendment,
) -> Result<(), Violation> {
    if amendment.bookings.is_empty() {
        return Ok(());
    }
    for (id, entry) in &amendment.bookings {
        let Some(entry) = entry else { continue };
        let job = snapshot.jobs.get(*id).ok_or(Violation::BookingWithoutJob(*id))?;
        let booking = entry.booking.as_ref();
        if job.spec.deadline.is_none() || booking.is_some_and(|booking| !is_in_order(booking)) {
            return Err(Violation::BookingBroken(*id));
        }
        if entry.node.is_some_and(|node| snapshot.cluster.nodes().get(node).is_none()) {
            return Err(Violation::BookingBroken(*id));
        }
    }
    let before = || snapshot.plan.timetable().iter();
    let unchanged = before().filter(|(id, _)| !amendment.bookings.contains_key(id));
    let changed = amendment.bookings.iter().filter_map(|(id, entry)| Some((*id, entry.as_ref()?)));
    let after = Taken::of(snapshot, unchanged.chain(changed));
    let before = Taken::of(snapshot, before());
    after.pools(snapshot).try_for_each(|pool| {
        let capacity = pool.capacity(snapshot);
        match after.first_above(snapshot, &before, &pool, capacity) {
            Some((at, job)) => Err(Violation::Overbooked(job, at)),
            None => Ok(()),
        }
    })
}

/// Segments that follow each other, none of them empty.
fn is_in_order(booking: &Booking) -> bool {
    let segments = &booking.segments;
    segments.iter().all(|segment| segment.from < segment.to && segment.members > 0)
        && segments.windows(2).all(|pair| pair[0].to <= pair[1].from)
}

/// What a booking takes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Gpus(Eligibility),
    Cores(Eligibility),
    /// Cores of one node, for jobs that are resized in place.
    CoresOf(Option<NodeId>),
}

impl Kind {
    fn of(spec: &JobSpec, node: Option<NodeId>) -> Self {
        let on = |role: &Role| role.shape.on;
        match spec.roles.iter().find(|role| !role.shape.each.gpus.is_zero()) {
            Some(role) => Self::Gpus(on(role)),
            None if spec.capabilities.resize_in_place => Self::CoresOf(node),
            None => Self::Cores(spec.roles.first().map(on).unwrap_or_default()),
        }
    }

    fn amount(self, of: Resources) -> u64 {
        match self {
            Self::Gpus(_) => of.gpus.0,
            Self::Cores(_) | Self::CoresOf(_) => of.cpu.0,
        }
    }

    fn anywhere(self) -> Self {
        match self {
            Self::Gpus(_) => Self::Gpus(Eligibility::default()),
            Self::Cores(_) | Self::CoresOf(_) => Self::Cores(Eligibility::default()),
        }
    }

    fn pool(self, snapshot: &Snapshot<'_>) -> Pool {
        let is_on = |id: NodeId, node: &Node| match self {
            Self::CoresOf(bound) => bound == Some(id),
            Self::Gpus(on) | Self::Cores(on) => {
                (on.gpu_type.is_none() || on.gpu_type == node.gpu_type)
                    && on
                        .set
                        .iter()
                        .all(|set| snapshot.cluster.sets().get(*set).is_some_and(|nodes| nodes.contains(id)))
            }
        };
        let nodes = snapshot.cluster.nodes().iter();
        let of_kind = nodes.filter(|(id, node)| self.amount(node.capacity) > 0 && is_on(*id, node));
        Pool { of_gpus: matches!(self, Self::Gpus(_)), nodes: of_kind.map(|(id, _)| id).collect() }
    }
}

/// GPUs or cores of some nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pool {
    of_gpus: bool,
    nodes: BTreeSet<NodeId>,
}

impl Pool {
    fn capacity(&self, snapshot: &Snapshot<'_>) -> u64 {
        let capacity = |node: &NodeId| snapshot.cluster.node(*node).capacity;
        let all: Resources = self.nodes.iter().map(capacity).sum();
        if self.of_gpus { all.gpus.0 } else { all.cpu.0 }
    }

    /// What a job holds of this pool by the plan before.
    fn held_by(&self, snapshot: &Snapshot<'_>, job: JobId) -> u64 {
        let held = snapshot.plan.get(job).into_iter().flat_map(|held| held.takes());
        let here: Resources =
            held.filter(|(node, _)| self.nodes.contains(node)).map(|(_, amount)| *amount).sum();
        if self.of_gpus { here.gpus.0 } else { here.cpu.0 }
    }

    fn lies_in(&self, other: &Self) -> bool {
        self.of_gpus == other.of_gpus && self.nodes.is_subset(&other.nodes)
    }
}

/// What bookings take: by the pool of their kind, from when to when, how much, and for which job.
struct Taken {
    by_pool: BTreeMap<Pool, Vec<Span>>,
}

/// What a job takes of a pool for a time.
struct Span {
    from: Instant,
    to: Instant,
    amount: u64,
    job: JobId,
    /// The job holds at least as much in the plan before, and cannot be stopped.
    kept: bool,
}

impl Taken {
    fn of<'e>(snapshot: &Snapshot<'_>, entries: impl Iterator<Item = (JobId, &'e DeadlineEntry)>) -> Self {
        let mut by_kind: BTreeMap<Kind, Vec<Span>> = BTreeMap::new();
        for (id, entry) in entries {
            let (Some(job), Some(booking)) = (snapshot.jobs.get(id), &entry.booking) else { continue };
            let kind = Kind::of(&job.spec, entry.node);
            let taken = by_kind.entry(kind).or_default();
            let still = booking.segments.iter().filter(|segment| segment.to > snapshot.now);
            let stays = !job.spec.capabilities.makes_room() || !job.spec.budgets.is_empty();
            let held = snapshot.plan.get(id).filter(|_| stays).map_or(0, |held| kind.amount(held.total()));
            taken.extend(still.map(|segment| {
                let amount = kind.amount(taken_by(snapshot, id, job, segment.members));
                Span { from: segment.from, to: segment.to, amount, job: id, kept: amount <= held }
            }));
        }
        let mut by_pool: BTreeMap<Pool, Vec<Span>> = BTreeMap::new();
        // Above this number of kinds of jobs, all of them are booked from the pools of the whole cluster.
        let pools_apart = kinds_of_jobs_with_deadlines(snapshot) < snapshot.tuning.decide.max_pool_kinds;
        for (kind, taken) in by_kind {
            let kind = if pools_apart { kind } else { kind.anywhere() };
            by_pool.entry(kind.pool(snapshot)).or_default().extend(taken);
        }
        Self { by_pool }
    }

    /// The pools of all bookings, and those of the whole cluster.
    fn pools(&self, snapshot: &Snapshot<'_>) -> impl Iterator<Item = Pool> {
        let anywhere = [Kind::Gpus(Eligibility::default()), Kind::Cores(Eligibility::default())];
        let all: BTreeSet<Pool> =
            self.by_pool.keys().cloned().chain(anywhere.map(|kind| kind.pool(snapshot))).collect();
        all.into_iter()
    }

    fn spans(&self, pool: &Pool) -> impl Iterator<Item = &Span> {
        self.by_pool.iter().filter(|(own, _)| own.lies_in(pool)).flat_map(|(_, taken)| taken)
    }

    /// The first time from which more is booked of a pool than it has beside kept places, and than was booked before, with a job
    /// whose booking begins then.
    fn first_above(
        &self,
        snapshot: &Snapshot<'_>,
        before: &Self,
        pool: &Pool,
        capacity: u64,
    ) -> Option<(Instant, JobId)> {
        let after = self.spans(pool).flat_map(|span| match span.kept {
            true => changes(span, Level::Kept, pool.held_by(snapshot, span.job)),
            false => changes(span, Level::After, span.amount),
        });
        let before = before.spans(pool).filter(|span| !span.kept);
        let before = before.flat_map(|span| changes(span, Level::Before, span.amount));
        let mut all: Vec<Change> = after.chain(before).collect();
        all.sort_unstable();
        let mut levels = BTreeMap::from([(Level::After, 0), (Level::Before, 0), (Level::Kept, 0)]);
        for at_once in all.chunk_by(|one, next| one.at == next.at) {
            for change in at_once {
                *levels.entry(change.level).or_default() += change.by;
            }
            let left = i128::from(capacity) - levels[&Level::Kept];
            if levels[&Level::After] > left.max(levels[&Level::Before]) {
                let begins = at_once.iter().find(|change| change.by > 0).unwrap_or(&at_once[0]);
                return Some((begins.at, begins.job));
            }
        }
        None
    }
}

/// What changes at one time of what is taken from a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Instant,
    level: Level,
    by: i128,
    job: JobId,
}

/// Which bookings a change is of: those that the amendment makes or leaves, those of the plan before, or kept places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    After,
    Before,
    Kept,
}

fn changes(span: &Span, level: Level, amount: u64) -> [Change; 2] {
    let by = i128::from(amount);
    let begin = Change { at: span.from, level, by, job: span.job };
    [begin, Change { at: span.to, by: -by, ..begin }]
}

fn kinds_of_jobs_with_deadlines(snapshot: &Snapshot<'_>) -> usize {
    let jobs = snapshot.timed.iter().filter_map(|id| snapshot.jobs.get(*id));
    jobs.map(|job| Kind::of(&job.spec, None)).collect::<BTreeSet<Kind>>().len()
}

/// What a job takes in all with so many members of its elastic role; a job that keeps its size takes what it holds or asks for.
fn taken_by(snapshot: &Snapshot<'_>, id: JobId, job: &Job, members: u32) -> Resources {
    match resized_role(&job.spec) {
        Some(role) => {
            let others: Resources = job.spec.roles.iter().map(least).sum::<Resources>() - least(role);
            others + role.shape.each.times(u64::from(members))
        }
        None => match snapshot.plan.get(id) {
            Some(held) => held.total(),
            None => job.spec.roles.iter().map(least).sum(),
        },
    }
}

fn least(role: &Role) -> Resources {
    role.shape.each.times(u64::from(role.gang.min()))
}

/// The role whose members come and go while the job runs: the only elastic one, of a job about which room alone decides.
fn resized_role(spec: &JobSpec) -> Option<&Role> {
    let resizes = spec.capabilities.rescale || spec.capabilities.resize_in_place;
    let is_plain = |role: &Role| role.shape.rules.is_empty() && role.shape.groups.is_empty();
    let mut elastic = spec.roles.iter().filter(|role| role.gang.is_elastic());
    let role = elastic.next().filter(|_| elastic.next().is_none())?;
    let stands_in_teams = spec.teams.is_some() && !role.shape.each.gpus.is_whole();
    (resizes && spec.budgets.is_empty() && spec.roles.iter().all(is_plain) && !stands_in_teams)
        .then_some(role)
}
