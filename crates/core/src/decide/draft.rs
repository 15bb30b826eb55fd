//! A plan in the making: the room that is left, what has changed, and a log by which tries are undone.

mod trial;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Decision;
use super::deadlines::Pools;
use super::group_counts::{Counts, RuleKind};
use crate::deadlines::Timetable;
use crate::decide::snapshot::{Class, Snapshot};
use crate::model::allocated::{Allocated, fit};
use crate::model::cluster::NodeState;
use crate::model::cpu_weight::CpuWeight;
use crate::model::devices::Devices;
use crate::model::id::{GroupId, IdVec, JobId, NodeId, QueueId, ShapeId};
use crate::model::job::{JobSpec, Rule, Shape, Standing};
use crate::model::plan::{Amendment, Assignment, Generation, Part, Reservation, difference};
use crate::model::queue::{Holdings, Queue};
use crate::model::report::{Reason, Report};
use crate::model::units::{Instant, Resources, Share};
use crate::traffic::TrafficPolicy;
use crate::traffic::contention_graph::ContentionGraph;
use crate::traffic::decision_inputs::DecisionInputs;

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    taken: Allocated,
    /// Free on all nodes together.
    total: Resources,
    /// What jobs hold that have not been looked at yet: theirs unless somebody ahead of them needs it.
    claims: Option<Allocated>,
    /// How many more members of each shape fit, at most. Beside the plan the count is exact; where everything is
    /// handed out anew it is what the last search that failed has found, because room only shrinks from then on.
    fits: IdVec<ShapeId, u64>,
    exact: bool,
    held: Holdings,
    pub(super) contention: Cow<'a, ContentionGraph>,
    /// Who waits for a time at which there is room, and what of that whoever is being placed must leave alone.
    pub(super) reservations: Vec<Reservation>,
    spare: BTreeMap<NodeId, Resources>,
    /// Whether nodes are left alone for now on which members fall behind.
    spares_slow: bool,
    pub(super) counts: Counts<'a>,
    log: Vec<(Part, &'a Shape)>,
    changes: BTreeMap<JobId, Option<Arc<Assignment>>>,
    /// How often somebody was told to leave, or got a place that was kept: whoever did not fit before may fit now.
    growth: u64,
    pub(super) report: Report,
    /// When to decide again even if nothing happens.
    pub(super) wake: Option<Instant>,
    pub(super) standings: Vec<(JobId, Standing)>,
    pub(super) traffic: Vec<(JobId, TrafficPolicy)>,
    /// Predicted slowdowns of highest-priority jobs against fair sharing.
    pub(super) slowdowns: BTreeMap<JobId, Share>,
    pub(super) decision_inputs: Vec<DecisionInputs>,
    pub(super) weights: Vec<(JobId, CpuWeight)>,
    /// What is booked for jobs with deadlines, and what is free beside that.
    pub(super) timetable: Timetable,
    pub(super) pools: Option<Pools>,
    pub(super) refused: Vec<(JobId, Reason)>,
    /// How many jobs were looked at on links so far, each as often as it was.
    pub(super) looks: Cell<u64>,
}

/// A point in the log to go back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

/// Which room a placement may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Only what nobody holds.
    Unclaimed,
    /// Also what jobs further down the list hold.
    Claimed,
}

impl<'a> Draft<'a> {
    /// Everybody in the plan keeps what they have.
    pub(super) fn beside_the_plan(snapshot: &'a Snapshot<'a>) -> Self {
        let (taken, fits) = (snapshot.room.taken().clone(), snapshot.room.fits().clone());
        Self { exact: true, ..Self::over(snapshot, taken, None, fits, snapshot.held.clone()) }
    }

    /// Everything is free again, but claimed by who has it now.
    pub(super) fn afresh(snapshot: &'a Snapshot<'a>) -> Self {
        let taken = Allocated::nothing(snapshot.cluster.nodes().len());
        let claims = snapshot.room.taken().clone();
        let held = Holdings::nothing(snapshot.queues.len());
        let fits = IdVec::filled(u64::MAX, snapshot.room.fits().len());
        Self::over(snapshot, taken, Some(claims), fits, held)
    }

    fn over(
        snapshot: &'a Snapshot<'a>,
        taken: Allocated,
        claims: Option<Allocated>,
        fits: IdVec<ShapeId, u64>,
        held: Holdings,
    ) -> Self {
        let total = snapshot.cluster.nodes().ids().map(|node| taken.free(snapshot.cluster, node)).sum();
        Self {
            snapshot,
            taken,
            total,
            claims,
            fits,
            exact: false,
            held,
            contention: Cow::Borrowed(snapshot.contention),
            reservations: Vec::new(),
            spare: BTreeMap::new(),
            spares_slow: false,
            counts: Counts::new(snapshot),
            log: Vec::new(),
            changes: BTreeMap::new(),
            growth: 0,
            report: Report::default(),
            wake: None,
            standings: Vec::new(),
            traffic: Vec::new(),
            slowdowns: BTreeMap::new(),
            decision_inputs: Vec::new(),
            weights: Vec::new(),
            timetable: Timetable::default(),
            pools: None,
            refused: Vec::new(),
            looks: Cell::new(0),
        }
    }

    /// Zero, and grows whenever something is done in the draft by which a class that was refused may be served.
    pub(super) fn stamp(&self, class: &Class) -> u64 {
        self.growth + self.counts.changes(&class.watches)
    }

    /// Somebody may give way from now on to whom it was not asked to before.
    pub(super) fn others_may_give_way(&mut self) {
        self.growth += 1;
    }

    /// Whether the stamp of any class may have grown.
    pub(super) fn has_changed_for_others(&self) -> bool {
        self.growth > 0 || self.counts.have_changed()
    }

    /// An upper bound on the free room: what exceeds it fits nowhere.
    pub(super) fn total(&self) -> Resources {
        self.total
    }

    pub(super) fn room_on(&self, node: NodeId, reach: Reach) -> Resources {
        let free = self.taken.free(self.snapshot.cluster, node);
        match (&self.claims, reach) {
            (Some(claims), Reach::Unclaimed) => free - claims.resources()[node],
            _ => free,
        }
    }

    /// How many more members of a shape a node takes.
    pub(super) fn fit_on(&self, node: NodeId, shape: &Shape, reach: Reach) -> u32 {
        let cluster = self.snapshot.cluster;
        if cluster.node(node).state != NodeState::Ready || self.spares_slow && self.is_slow(node) {
            return 0;
        }
        let claims = self.claims.as_ref().filter(|_| reach == Reach::Unclaimed);
        let spare = self.spare.get(&node);
        if claims.is_none() && spare.is_none() {
            return self.taken.fit(cluster, node, shape);
        }
        let room = self.room_on(node, reach);
        let room = spare.map_or(room, |spare| room.common(*spare));
        let minds = self.taken.minds_devices(node, shape)
            || claims.is_some_and(|claims| claims.minds_devices(node, shape));
        let devices = minds.then(|| self.devices_on(node, reach));
        fit(cluster, node, shape, room, devices.as_ref(), |counter| {
            let claimed = claims.map_or(0, |claims| claims.count(node, counter));
            self.taken.left(cluster, node, counter).saturating_sub(claimed)
        })
    }

    /// Whether members fall behind there.
    pub(super) fn is_slow(&self, node: NodeId) -> bool {
        self.snapshot.slow.contains_key(&node)
    }

    /// What is found if nodes on which members fall behind are left alone; what is found anywhere, if nothing is.
    pub(super) fn rather_not_on_slow_nodes<T>(&mut self, find: impl Fn(&mut Self) -> Option<T>) -> Option<T> {
        self.spares_slow = !self.snapshot.slow.is_empty();
        let found = if self.spares_slow { find(self) } else { None };
        self.spares_slow = false;
        found.or_else(|| find(self))
    }

    pub(super) fn devices_on(&self, node: NodeId, reach: Reach) -> Devices<'_> {
        let devices = self.taken.devices(self.snapshot.cluster, node);
        match (&self.claims, reach) {
            (Some(claims), Reach::Unclaimed) => {
                devices.beside(claims.resources()[node].gpus, claims.shares(node))
            }
            _ => devices,
        }
    }

    /// What taking from this node would take away from others.
    pub(super) fn claimed_on(&self, node: NodeId) -> Resources {
        self.claims.as_ref().map_or(Resources::NONE, |claims| claims.resources()[node])
    }

    /// How many members of that shape fit in all, at most.
    pub(super) fn fits(&self, shape: ShapeId) -> u64 {
        self.fits[shape]
    }

    /// The same beside what is heeded of what is kept, where the count is exact.
    pub(super) fn fits_beside_what_is_kept(&self, shape: ShapeId) -> u64 {
        let Snapshot { cluster, room, .. } = self.snapshot;
        let each = room.shapes.get(shape);
        let lost =
            self.spare.keys().filter(|node| cluster.node(**node).state == NodeState::Ready).map(|node| {
                let beside = self.fit_on(*node, each, Reach::Unclaimed);
                u64::from(self.taken.fit(cluster, *node, each).saturating_sub(beside))
            });
        self.fits[shape].saturating_sub(lost.sum())
    }

    /// A search over all there is has found room for so many and no more.
    pub(super) fn found_to_fit(&mut self, shape: ShapeId, fit: u64) {
        self.fits[shape] = self.fits[shape].min(fit);
    }

    pub(super) fn held(&self) -> &Holdings {
        &self.held
    }

    pub(super) fn queues(&self) -> &'a IdVec<QueueId, Queue> {
        self.snapshot.queues
    }

    pub(super) fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Takes room for members of a shape where the part says.
    pub(super) fn take(&mut self, part: Part, shape: &'a Shape) {
        let Part { node, device, members, .. } = part;
        let count = u64::from(members);
        self.change(node, |taken| {
            taken.add(node, shape.each.times(count));
            for (counter, each) in &*shape.counters {
                taken.add_count(node, *counter, each.saturating_mul(count));
            }
            if let Some(device) = device {
                taken.add_share(node, device, shape.each.gpus.times(count));
            }
        });
        self.counts.add(&shape.groups, node, i64::from(members));
        self.log.push((part, shape));
    }

    /// The kind of rule that keeps one more member of a shape off a node: its own, or one of a member of the same job
    /// that was placed before it.
    pub(super) fn forbid(&self, shape: &Shape, node: NodeId) -> Option<RuleKind> {
        let domain = |group: GroupId, node: NodeId| self.snapshot.groups.domain(group, node);
        let intrudes = |(there, other): (NodeId, GroupId)| {
            domain(other, node).is_some_and(|here| domain(other, there) == Some(here))
        };
        let own = self.counts.forbid(shape, node);
        own.or_else(|| self.guards(shape).any(intrudes).then_some(RuleKind::Apart))
    }

    /// Whether members of this shape must be placed one at a time, because each may decide about the next.
    pub(super) fn is_ruled(&self, shape: &Shape) -> bool {
        !shape.rules.is_empty() || self.guards(shape).next().is_some()
    }

    /// Where members of the job that is being placed are who must be apart from a group of this shape.
    fn guards(&self, shape: &Shape) -> impl Iterator<Item = (NodeId, GroupId)> {
        let placed = self.log.iter().filter(|_| !shape.groups.is_empty());
        let rules =
            placed.flat_map(|(part, other)| other.rules.iter().map(move |rule| (part.node, other, rule)));
        rules.filter_map(|(node, other, rule)| match rule {
            // Who has the same rule finds those by their count who are counted.
            Rule::Apart(group) if other.groups.contains(group) && shape.rules.contains(rule) => None,
            Rule::Apart(group) if shape.groups.contains(group) => Some((node, *group)),
            _ => None,
        })
    }

    /// Where members of the job that is being placed are by now.
    pub(super) fn placed(&self) -> impl Iterator<Item = Part> {
        self.log.iter().map(|(part, _)| *part)
    }

    /// Undoes everything since the mark.
    pub(super) fn rollback(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            let (part, shape) = self.log.pop().expect("the log is longer than the mark");
            let Part { node, device, members, .. } = part;
            let count = u64::from(members);
            self.change(node, |taken| {
                taken.remove(node, shape.each.times(count));
                for (counter, each) in &*shape.counters {
                    taken.remove_count(node, *counter, each.saturating_mul(count));
                }
                if let Some(device) = device {
                    taken.remove_share(node, device, shape.each.gpus.times(count));
                }
            });
            self.counts.add(&shape.groups, node, -i64::from(members));
        }
    }

    /// Changes what is taken from a node, and whatever was counted of it.
    fn change(&mut self, node: NodeId, change: impl FnOnce(&mut Allocated)) {
        self.count_out(node);
        change(&mut self.taken);
        self.count_in(node);
    }

    fn count_out(&mut self, node: NodeId) {
        self.total = self.total - self.taken.free(self.snapshot.cluster, node);
        if self.exact {
            self.count_fits(node, |fits, fit| fits - fit);
        }
    }

    fn count_in(&mut self, node: NodeId) {
        self.total = self.total + self.taken.free(self.snapshot.cluster, node);
        if self.exact {
            self.count_fits(node, |fits, fit| fits + fit);
        }
    }

    fn count_fits(&mut self, node: NodeId, count: impl Fn(u64, u64) -> u64) {
        let Snapshot { cluster, room, .. } = self.snapshot;
        if cluster.node(node).state == NodeState::Ready {
            for (id, shape) in room.shapes.live() {
                self.fits[id] = count(self.fits[id], u64::from(self.taken.fit(cluster, node, shape)));
            }
        }
    }

    /// The claims of a job are settled one way or the other: it is its turn.
    pub(super) fn lift_claims(&mut self, assignment: &Assignment) {
        if let Some(claims) = &mut self.claims {
            claims.remove_all(assignment);
        }
    }

    /// Takes the room of an assignment that exists already, if all of it is left.
    pub(super) fn keep(&mut self, spec: &JobSpec, assignment: &Assignment) -> bool {
        let fits = self.taken.lacking(self.snapshot.cluster, assignment).is_empty();
        if fits {
            self.keep_anyway(spec, assignment);
        }
        fits
    }

    /// The same, of somebody who stays even where that is more than there is.
    pub(super) fn keep_anyway(&mut self, spec: &JobSpec, assignment: &Assignment) {
        assignment.nodes().for_each(|node| self.count_out(node));
        self.taken.add_all(assignment);
        assignment.nodes().for_each(|node| self.count_in(node));
        self.held.add(self.snapshot.queues, spec, assignment.total());
    }

    /// Writes down an assignment whose room placement has taken.
    pub(super) fn assign(&mut self, job: JobId, spec: &JobSpec, assignment: Assignment) {
        self.held.add(self.snapshot.queues, spec, assignment.total());
        if !self.contention.knows_no_links() {
            self.contention.to_mut().join(job, spec, &assignment);
        }
        self.changes.insert(job, Some(Arc::new(assignment)));
        self.log.clear();
    }

    pub(super) fn unassign(&mut self, job: JobId) {
        self.changes.insert(job, None);
    }

    /// What was decided about a job in this draft.
    pub(super) fn assigned(&self, job: JobId) -> Option<&Arc<Assignment>> {
        self.changes.get(&job)?.as_ref()
    }

    /// Who was given a place or another size in this draft.
    pub(super) fn starting(&self) -> impl Iterator<Item = (JobId, &Arc<Assignment>)> {
        self.changes.iter().filter_map(|(job, change)| Some((*job, change.as_ref()?)))
    }

    /// Whether somebody in the plan was told to leave in this draft.
    pub(super) fn is_leaving(&self, job: JobId) -> bool {
        self.changes.get(&job).is_some_and(Option::is_none)
    }

    /// Whether anything was decided about a job in this draft.
    pub(super) fn is_changed(&self, job: JobId) -> bool {
        self.changes.contains_key(&job)
    }

    /// From now on what is kept for these must be left alone, until somebody else is placed.
    pub(super) fn heed(&mut self, heeded: impl Fn(&Reservation) -> bool) {
        self.spare.clear();
        for reservation in self.reservations.iter().filter(|reservation| heeded(reservation)) {
            for (node, spare) in &reservation.spare {
                let left = self.spare.entry(*node).or_insert(*spare);
                *left = left.common(*spare);
            }
        }
    }

    /// Somebody for whom room was kept has a place. Whoever was held up by that may fit now.
    pub(super) fn keep_nothing_for(&mut self, job: JobId) {
        let before = self.reservations.len();
        self.reservations.retain(|kept| kept.job != job);
        self.growth += u64::from(self.reservations.len() < before);
    }

    /// Somebody was placed who will still be there when these start.
    pub(super) fn use_up_spare(&mut self, job: JobId, still_there: impl Fn(&Reservation) -> bool) {
        let Some(assignment) = self.assigned(job).cloned() else { return };
        for kept in self.reservations.iter_mut().filter(|kept| still_there(kept)) {
            for (node, taken) in assignment.takes() {
                kept.spare.entry(*node).and_modify(|spare| *spare = *spare - *taken);
            }
        }
    }

    pub(super) fn heeds_nobody(&self) -> bool {
        self.spare.is_empty()
    }

    pub(super) fn finish(self, wake: Option<Instant>) -> Decision {
        let kept = self.reservations.iter().map(|reservation| reservation.from);
        let wake = kept.chain(wake).chain(self.wake).min();
        let before = self.snapshot.plan;
        let reservations = Some(self.reservations).filter(|kept| kept != before.reservations());
        let bookings = difference(&before.timetable().entries, &self.timetable.entries);
        let changes_what_worlds_do =
            !(self.changes.is_empty() && self.traffic.is_empty() && self.weights.is_empty());
        let amendment = Amendment {
            generation: Generation(before.generation().0 + u64::from(changes_what_worlds_do)),
            assignments: self.changes,
            traffic: self.traffic.into_iter().collect(),
            weights: self.weights.into_iter().collect(),
            slowdowns: difference(before.slowdowns(), &self.slowdowns),
            reservations,
            bookings,
        };
        let report = Report {
            standings: self.standings,
            decision_inputs: self.decision_inputs,
            refused: self.refused,
            timetable_basis: self.timetable.basis(),
            ..self.report
        };
        Decision { amendment, report, wake }
    }
}
