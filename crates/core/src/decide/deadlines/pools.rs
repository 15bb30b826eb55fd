//! What there is to book: for each kind of thing that jobs with deadlines share, what is free of it from now on.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::need::{Kind, Timed};
use crate::cluster::NodeState;
use crate::decide::reserve::{end_if_started, expected_end};
use crate::id::{JobId, NodeId};
use crate::job::Job;
use crate::plan::Assignment;
use crate::report::Reason;
use crate::snapshot::Snapshot;
use crate::taken::is_eligible;
use crate::timetable::{Booking, Need, Outlook, Pool, Timetable, Units};
use crate::units::Instant;

/// Work without deadlines keeps one part in so many of a pool while some of it is there.
const FLOOR: Units = 10;

/// The outlook of each pool.
#[derive(Clone, Debug)]
pub(in crate::decide) struct Pools {
    outlooks: BTreeMap<Pool, Outlook>,
    capacity: Vec<(Pool, Units)>,
    /// Whether some take from cores wherever they are, or from GPUs of any type.
    wide: Wide,
    /// The kinds that jobs with deadlines take from.
    kinds: Vec<Kind>,
}

/// Which wholes somebody takes from: only then do those count who take from a part.
#[derive(Clone, Copy, Debug, Default)]
struct Wide {
    cores: bool,
    gpus: bool,
    /// Whether GPUs are of more than one type.
    types: bool,
}

impl Wide {
    fn of(snapshot: &Snapshot<'_>, jobs: &[Timed<'_>]) -> Self {
        let mut types = snapshot.cluster.nodes().iter().filter(|(_, node)| !node.capacity.gpus.is_zero());
        let first = types.next().map(|(_, node)| node.gpu_type);
        Self {
            cores: jobs.iter().any(|job| job.kind == Kind::Cores),
            gpus: jobs.iter().any(|job| job.kind == Kind::Gpus(None)),
            types: types.any(|(_, node)| Some(node.gpu_type) != first),
        }
    }

    /// The pools that a job takes from; on a node, where it is bound to one.
    fn pools(self, kind: Kind, node: Option<NodeId>) -> Vec<Pool> {
        match (kind, node) {
            (Kind::Gpus(Some(of)), _) if self.types && self.gpus => {
                vec![Pool::Gpus(Some(of)), Pool::Gpus(None)]
            }
            (Kind::Gpus(Some(of)), _) if self.types => vec![Pool::Gpus(Some(of))],
            (Kind::Gpus(_), _) => vec![Pool::Gpus(None)],
            (Kind::CoresInPlace, Some(node)) if self.cores => vec![Pool::CoresOf(node), Pool::Cores],
            (Kind::CoresInPlace, Some(node)) => vec![Pool::CoresOf(node)],
            (Kind::CoresInPlace | Kind::Cores, _) => vec![Pool::Cores],
        }
    }
}

impl Pools {
    /// What nodes that are well have, without what those hold who cannot be stopped.
    pub(super) fn of(snapshot: &Snapshot<'_>, jobs: &[Timed<'_>]) -> Self {
        let wide = Wide::of(snapshot, jobs);
        let mut capacity: BTreeMap<Pool, Units> = BTreeMap::new();
        let kinds = kinds(jobs);
        let ready = snapshot.cluster.nodes().iter().filter(|(_, node)| node.state == NodeState::Ready);
        for (id, node) in ready {
            for (pool, kind) in pools_of(&kinds, wide, id) {
                let counts = match pool {
                    Pool::Gpus(Some(of)) => node.gpu_type == Some(of),
                    _ => true,
                };
                *capacity.entry(pool).or_default() += if counts { kind.units(node.capacity) } else { 0 };
            }
        }
        let outlooks = capacity.iter().map(|(pool, units)| (*pool, Outlook::new(snapshot.now, *units)));
        let outlooks = outlooks.collect();
        let mut pools = Self { outlooks, capacity: capacity.into_iter().collect(), wide, kinds };
        pools.leave_to_those_that_stay(snapshot);
        pools
    }

    fn leave_to_those_that_stay(&mut self, snapshot: &Snapshot<'_>) {
        let untimed = snapshot.plan.iter().filter(|(id, _)| !snapshot.timed.contains(id));
        let jobs = untimed.map(|(id, held)| (&snapshot.jobs[id], held));
        for (job, held) in jobs.filter(|(job, _)| !makes_room(job)) {
            let until = match (job.spec.work.alone, job.runs_since) {
                (Some(_), Some(_)) => expected_end(job, snapshot.now),
                _ => end_of(job, snapshot.now),
            };
            self.leave_to(snapshot, held, until);
        }
    }

    /// Somebody keeps what it holds until then.
    pub(super) fn leave_to(&mut self, snapshot: &Snapshot<'_>, held: &Assignment, until: Instant) {
        for (node, amount) in held.takes() {
            let described = snapshot.cluster.node(*node);
            if described.state != NodeState::Ready {
                continue;
            }
            for (pool, kind) in pools_of(&self.kinds, self.wide, *node) {
                let other_type = matches!(pool, Pool::Gpus(Some(of)) if described.gpu_type != Some(of));
                if let Some(outlook) = self.outlooks.get_mut(&pool).filter(|_| !other_type) {
                    outlook.take(snapshot.now, until, kind.units(*amount));
                }
            }
        }
    }

    /// Keeps a part of each pool from who comes from now on, for work without deadlines.
    pub(super) fn keep_the_floor(&mut self) {
        self.take_the_floor(1);
    }

    /// The floor is for others, who come now.
    pub(super) fn open_the_floor(&mut self) {
        self.take_the_floor(-1);
    }

    fn take_the_floor(&mut self, sign: Units) {
        for (pool, units) in &self.capacity {
            if let Some(outlook) = self.outlooks.get_mut(pool) {
                outlook.take(Instant::START, Instant(u64::MAX), sign * (units / FLOOR));
            }
        }
    }

    /// The first time after now at which more or less is free of some pool.
    pub(in crate::decide) fn first_change(&self) -> Option<Instant> {
        self.outlooks.values().filter_map(Outlook::first_change).min()
    }

    pub(super) fn capacity(&self) -> &[(Pool, Units)] {
        &self.capacity
    }

    /// What is free for a job.
    pub(super) fn outlook(&self, kind: Kind, node: Option<NodeId>) -> Option<Cow<'_, Outlook>> {
        match self.wide.pools(kind, node)[..] {
            [part, whole] => Some(Cow::Owned(self.outlooks.get(&part)?.common(self.outlooks.get(&whole)?))),
            [pool, ..] => self.outlooks.get(&pool).map(Cow::Borrowed),
            [] => None,
        }
    }

    pub(super) fn book(&mut self, kind: Kind, node: Option<NodeId>, need: &Need, booking: &Booking) {
        self.change(kind, node, |outlook| outlook.book(need, booking));
    }

    pub(super) fn cancel(&mut self, kind: Kind, node: Option<NodeId>, need: &Need, booking: &Booking) {
        self.change(kind, node, |outlook| outlook.cancel(need, booking));
    }

    fn change(&mut self, kind: Kind, node: Option<NodeId>, change: impl Fn(&mut Outlook)) {
        for pool in self.wide.pools(kind, node) {
            self.outlooks.get_mut(&pool).into_iter().for_each(&change);
        }
    }

    /// Whether more is booked of any pool at some time than there is.
    pub(super) fn is_overbooked(&self) -> bool {
        let end = Instant(u64::MAX);
        self.outlooks.values().any(|outlook| outlook.least(Instant::START, end) < 0)
    }

    /// Nodes on which a job that is bound to one might be, most free until its deadline first.
    pub(super) fn nodes_for(&self, snapshot: &Snapshot<'_>, timed: &Timed<'_>) -> Vec<NodeId> {
        let [role] = &timed.job.spec.roles[..] else { return Vec::new() };
        let least = timed.job.spec.least();
        let nodes = snapshot.cluster.nodes().iter().filter(|(id, node)| {
            node.state == NodeState::Ready
                && is_eligible(snapshot.cluster, *id, role.shape.on)
                && least.fits_in(node.capacity)
        });
        let free = |id: NodeId| -> i128 {
            let outlook = self.outlooks.get(&Pool::CoresOf(id));
            let pieces = outlook.map(|outlook| outlook.between(timed.need.now, timed.need.until));
            let areas = pieces.into_iter().flatten();
            areas.map(|piece| i128::from(piece.free) * i128::from(piece.to.since(piece.from).0)).sum()
        };
        let mut nodes: Vec<(i128, NodeId)> = nodes.map(|(id, _)| (-free(id), id)).collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|(_, id)| id).collect()
    }
}

impl Pools {
    /// Whether what a job would take that cannot be stopped is free until it would be gone.
    pub(super) fn leave_room_for(
        &self,
        snapshot: &Snapshot<'_>,
        table: &Timetable,
        id: JobId,
    ) -> Result<(), Reason> {
        let job = &snapshot.jobs[id];
        let kind = Kind::of(job);
        let Some(outlook) = self.outlook(kind, None).filter(|_| !makes_room(job)) else { return Ok(()) };
        if outlook.least(snapshot.now, end_of(job, snapshot.now)) >= kind.units(job.spec.least()) {
            return Ok(());
        }
        let booked = table.iter().filter_map(|(id, entry)| Some((id, entry.booking.as_ref()?)));
        let next = booked.filter_map(|(id, booking)| Some((booking.next_change(snapshot.now)?, id))).min();
        next.map_or(Ok(()), |(until, ahead)| Err(Reason::ReservedUntil { ahead, until }))
    }

    /// Somebody starts who cannot be stopped.
    pub(super) fn leave_to_who_starts(&mut self, snapshot: &Snapshot<'_>, id: JobId, held: &Assignment) {
        let job = &snapshot.jobs[id];
        if !makes_room(job) {
            self.leave_to(snapshot, held, end_of(job, snapshot.now));
        }
    }
}

/// When a job would be gone that starts now; never, as far as anybody knows, if its work is unknown.
fn end_of(job: &Job, now: Instant) -> Instant {
    end_if_started(job, now).unwrap_or(Instant(u64::MAX))
}

/// Whether somebody without a booking may be stopped for those who have one.
pub(super) fn makes_room(job: &Job) -> bool {
    job.spec.capabilities.makes_room() && job.spec.budgets.is_empty()
}

fn kinds(jobs: &[Timed<'_>]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for job in jobs {
        if !kinds.contains(&job.kind) {
            kinds.push(job.kind);
        }
    }
    kinds
}

/// The pools of those kinds that a node is part of, each once.
fn pools_of(kinds: &[Kind], wide: Wide, node: NodeId) -> BTreeMap<Pool, Kind> {
    let all =
        kinds.iter().flat_map(|kind| wide.pools(*kind, Some(node)).into_iter().map(|pool| (pool, *kind)));
    all.collect()
}
