//! Derives every rule anew from the previous plan, its amendment and the cluster. The checker shares no code with `decide`: it
//! adds up by itself what it passes, and is the only maker of `Checked`.
//!
//! | file | rules |
//! |---|---|
//! | `check.rs` | gangs, capacity of nodes and queues, eligibility, topology |
//! | `check/devices.rs` | shares of GPUs |
//! | `check/rules.rs` | affinity, anti-affinity and spread of members |
//! | `check/directives.rs` | traffic policies, CPU weights and predicted slowdowns of running jobs |
//! | `check/reservations.rs` | backfill reservations |
//! | `check/bookings.rs` | bookings of jobs with deadlines |
//! | `check/steps.rs` | steps towards a plan |

mod amounts;
mod bookings;
mod devices;
mod directives;
mod reservations;
mod rules;
mod steps;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::decide::snapshot::Snapshot;
use crate::model::cluster::{Cluster, NodeState};
use crate::model::id::{CounterId, IdVec, JobId, NodeId, QueueId, Window};
use crate::model::job::{Capabilities, ExitReason, Job, JobSpec, Life, RoleKind, Teams, Topology};
use crate::model::plan::{Amendment, Assignment, Part};
use crate::model::queue::{Queue, lineage};
use crate::model::units::{Instant, Resources};

use amounts::{Counts, add_counts, amounts, counts};
pub use amounts::{occupied, occupied_counters};
pub use devices::occupied_shares;
use devices::{Shares, add_shares, lies_on_devices, remove_shares};
pub use directives::TrafficFault;
pub use steps::{Rejected, check_steps};

/// Something that passed the checker. Worlds accept nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked<T>(T);

impl<T> Checked<T> {
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Checked<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A rule that a plan broke. Always a bug of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("job {0:?} would run with role {1} split")]
    SplitGang(JobId, usize),
    #[error("node {0:?} would hold more than it has")]
    Oversubscribed(NodeId),
    #[error("job {0:?} would run on node {1:?}, which is not for it")]
    NotEligible(JobId, NodeId),
    #[error("job {0:?} would have shares of GPUs on node {1:?} that lie on no device")]
    NotOnDevices(JobId, NodeId),
    #[error("job {0:?} holds resources but is not to run")]
    NotToRun(JobId),
    #[error("job {0:?} would be taken off its nodes, which it does not allow")]
    NotToBeDisturbed(JobId),
    #[error("job {0:?} would be spread over more than its topology allows")]
    TopologyBroken(JobId),
    #[error("job {0:?} would run on node {1:?}, where those are not whom it must be with")]
    AffinityBroken(JobId, NodeId),
    #[error("job {0:?} would run on node {1:?}, beside those it must not be with")]
    AntiAffinityBroken(JobId, NodeId),
    #[error("job {0:?} would run on node {1:?}, where more of its kind are than it allows")]
    SpreadBroken(JobId, NodeId),
    #[error("queue {0:?} would hold more than its quota")]
    QuotaExceeded(QueueId),
    #[error("the totals kept for node {0:?} are not those of the plan")]
    TotalsDiffer(NodeId),
    #[error("a step would start job {0:?} on room that is not free yet")]
    RoomNotFree(JobId),
    #[error("the generation of the plan would fall")]
    GenerationFalls,
    #[error("the generation of the plan would stay, and what the world is to do would change")]
    GenerationStays,
    #[error("job {0:?} would have a traffic policy or a CPU weight and does not run")]
    DirectiveWithoutRunningJob(JobId),
    #[error("the traffic policy of job {0:?} is out of range: {1:?}")]
    Traffic(JobId, TrafficFault),
    #[error("the CPU weight of job {0:?} is out of range")]
    CpuWeight(JobId),
    #[error("a reservation is for job {0:?}, which does not wait")]
    ReservationWithoutWaitingJob(JobId),
    #[error("the reservation of job {0:?} leaves more of node {1:?} to other jobs than there is")]
    ReservedBeyond(JobId, NodeId),
    #[error("job {0:?} would have a reservation and a booking")]
    ReservedAndBooked(JobId),
    #[error("job {0:?} is of the highest priority and predicted to be slower than under fair sharing")]
    SlowerThanFair(JobId),
    #[error("a booking is for job {0:?}, which does not exist")]
    BookingWithoutJob(JobId),
    #[error(
        "the booking of job {0:?} has empty or overlapping segments, no deadline, or a node that does not exist"
    )]
    BookingBroken(JobId),
    #[error("the booking of job {0:?} takes more from {1:?} on than its pool has")]
    Overbooked(JobId, Instant),
}

/// The checker's own books: what each node and queue holds by the plans it has passed.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    held: BTreeMap<JobId, (QueueId, Arc<Assignment>)>,
    nodes: IdVec<NodeId, Resources>,
    counters: Counts,
    shares: Shares,
    queues: IdVec<QueueId, Resources>,
    /// Nodes on which the world has put more than they have.
    excused: BTreeSet<NodeId>,
}

/// What an amendment makes of a node or queue it touches.
#[derive(Clone, Copy, Debug)]
struct Touched {
    used: Resources,
    added: Resources,
}

impl Touched {
    fn before(used: Resources) -> Self {
        Self { used, added: Resources::NONE }
    }

    /// Whether something was added of which there is now more than `most`.
    fn exceeds(self, most: Resources) -> bool {
        let over = |added: u64, used: u64, most: u64| added > 0 && used > most;
        over(self.added.cpu.0, self.used.cpu.0, most.cpu.0)
            || over(self.added.memory.0, self.used.memory.0, most.memory.0)
            || over(self.added.gpus.0, self.used.gpus.0, most.gpus.0)
    }
}

impl Checker {
    pub(crate) fn new(nodes: usize, queues: usize) -> Self {
        Self {
            nodes: IdVec::filled(Resources::NONE, nodes),
            queues: IdVec::filled(Resources::NONE, queues),
            ..Self::default()
        }
    }

    /// Passes an amendment, or names the first rule that it breaks. Looks only at what changes.
    pub fn check(
        &self,
        snapshot: &Snapshot<'_>,
        amendment: Amendment,
    ) -> Result<Checked<Amendment>, Violation> {
        keeps_generations(snapshot, &amendment)?;
        for (id, change) in &amendment.assignments {
            let job = snapshot.jobs.get(*id).ok_or(Violation::NotToRun(*id))?;
            may_be_disturbed(*id, job, change.as_ref())?;
            let Some(new) = change else { continue };
            is_to_run(*id, job)?;
            is_whole(*id, &job.spec, new)?;
            lies_on_devices(*id, &job.spec, new)?;
            is_eligible(*id, &job.spec, new, snapshot.cluster)?;
            keeps_topology(*id, &job.spec, new, snapshot.cluster)?;
        }
        self.leaves_room(snapshot, &amendment)?;
        self.counters_suffice(snapshot, &amendment)?;
        rules::keeps_rules(snapshot, &amendment)?;
        directives::keeps_rules_of_directives(snapshot, &amendment)?;
        bookings::keeps_rules_of_bookings(snapshot, &amendment)?;
        reservations::keeps_rules_of_reservations(snapshot, &amendment)?;
        Ok(Checked(amendment))
    }

    /// Whether nothing is added to a node or queue that then holds more than it may. What the world has put there
    /// is there, and may stay.
    fn leaves_room(&self, snapshot: &Snapshot<'_>, amendment: &Amendment) -> Result<(), Violation> {
        let mut nodes: BTreeMap<NodeId, Touched> = BTreeMap::new();
        let mut queues: BTreeMap<QueueId, Resources> = BTreeMap::new();
        for id in amendment.assignments.keys() {
            if let Some((queue, old)) = self.held.get(id) {
                for (node, amount) in amounts(&snapshot.jobs[*id].spec, old) {
                    let left = nodes.entry(node).or_insert(Touched::before(self.nodes[node]));
                    left.used = left.used - amount;
                    for queue in lineage(snapshot.queues, *queue) {
                        let left = queues.entry(queue).or_insert(self.queues[queue]);
                        *left = *left - amount;
                    }
                }
            }
        }
        for (id, change) in &amendment.assignments {
            let Some(new) = change else { continue };
            let spec = &snapshot.jobs[*id].spec;
            for (node, amount) in amounts(spec, new) {
                let touched = nodes.entry(node).or_insert(Touched::before(self.nodes[node]));
                touched.used = touched.used + amount;
                touched.added = touched.added + amount;
                for queue in lineage(snapshot.queues, spec.queue) {
                    let used = queues.entry(queue).or_insert(self.queues[queue]);
                    *used = *used + amount;
                }
            }
        }
        for (node, touched) in &nodes {
            if touched.exceeds(snapshot.cluster.node(*node).capacity) {
                return Err(Violation::Oversubscribed(*node));
            }
        }
        let with_more = nodes.iter().filter(|(_, touched)| touched.added.gpus.0 > 0);
        self.devices_suffice(
            snapshot,
            amendment,
            with_more.map(|(node, touched)| (*node, touched.used.gpus)),
        )?;
        for (queue, used) in queues {
            // It may hold more of something than it is allowed by now, but no more of that than before.
            let may_hold = |bound: Resources| bound.either(self.queues[queue]);
            if snapshot.queues[queue].bound().is_some_and(|bound| !used.fits_in(may_hold(bound))) {
                return Err(Violation::QuotaExceeded(queue));
            }
        }
        Ok(())
    }

    /// The same for counters.
    fn counters_suffice(&self, snapshot: &Snapshot<'_>, amendment: &Amendment) -> Result<(), Violation> {
        let mut added = Counts::new();
        let mut removed = Counts::new();
        for (id, change) in &amendment.assignments {
            let spec = &snapshot.jobs[*id].spec;
            if let Some((_, old)) = self.held.get(id) {
                add_counts(&mut removed, spec, old);
            }
            if let Some(new) = change {
                add_counts(&mut added, spec, new);
            }
        }
        for (place @ (counter, node), added) in added {
            let count = |counts: &Counts| counts.get(&place).copied().unwrap_or(0);
            let used = count(&self.counters).saturating_sub(count(&removed)).saturating_add(added);
            if added > 0 && used > snapshot.cluster.count(node, counter) {
                return Err(Violation::Oversubscribed(node));
            }
        }
        Ok(())
    }

    /// Enters a change into the books: one that was passed, or one that the world made.
    pub(crate) fn record(
        &mut self,
        cluster: &Cluster,
        queues: &IdVec<QueueId, Queue>,
        id: JobId,
        spec: &JobSpec,
        change: Option<&Arc<Assignment>>,
    ) {
        if let Some((queue, old)) = self.held.remove(&id) {
            for (node, amount) in amounts(spec, &old) {
                self.nodes[node] = self.nodes[node] - amount;
                for queue in lineage(queues, queue) {
                    self.queues[queue] = self.queues[queue] - amount;
                }
            }
            for (place, amount) in counts(spec, &old) {
                let left = self.counters.remove(&place).unwrap_or(0).saturating_sub(amount);
                if left > 0 {
                    self.counters.insert(place, left);
                }
            }
            remove_shares(&mut self.shares, spec, &old);
            if !self.excused.is_empty() {
                self.excuse(cluster, old.nodes());
            }
        }
        if let Some(new) = change {
            for (node, amount) in amounts(spec, new) {
                self.nodes[node] = self.nodes[node] + amount;
                for queue in lineage(queues, spec.queue) {
                    self.queues[queue] = self.queues[queue] + amount;
                }
            }
            add_counts(&mut self.counters, spec, new);
            add_shares(&mut self.shares, spec, new);
            self.held.insert(id, (spec.queue, new.clone()));
        }
    }

    /// Where queues lie has changed, and with that what they hold.
    pub(crate) fn queues_changed(&mut self, queues: &IdVec<QueueId, Queue>, jobs: &Window<JobId, Job>) {
        self.queues = IdVec::filled(Resources::NONE, queues.len());
        for (id, (queue, assignment)) in &self.held {
            for (_, amount) in amounts(&jobs[*id].spec, assignment) {
                for queue in lineage(queues, *queue) {
                    self.queues[queue] = self.queues[queue] + amount;
                }
            }
        }
    }

    pub(crate) fn queues(&self) -> &IdVec<QueueId, Resources> {
        &self.queues
    }

    pub(crate) fn add_node(&mut self) {
        self.nodes.push(Resources::NONE);
    }

    /// The world has changed these nodes, or what is on them: where that is too much now, it is no fault of a plan.
    pub(crate) fn excuse(&mut self, cluster: &Cluster, nodes: impl IntoIterator<Item = NodeId>) {
        for node in nodes {
            if self.is_over(cluster, node) {
                self.excused.insert(node);
            } else {
                self.excused.remove(&node);
            }
        }
    }

    fn is_over(&self, cluster: &Cluster, node: NodeId) -> bool {
        let used = |counter| self.counters.get(&(counter, node)).copied().unwrap_or(0);
        let outnumbered = |counter| used(counter) > cluster.count(node, counter);
        !self.nodes[node].fits_in(cluster.node(node).capacity)
            || self.devices_are_over(cluster, node)
            || cluster.counters().ids().any(outnumbered)
    }

    /// Adds up the whole plan from nothing: every assignment whole, every job in it to run, no node over its
    /// capacity but by the world's doing, and the books right.
    pub fn check_all(&self, snapshot: &Snapshot<'_>) -> Result<(), Violation> {
        let mut nodes: IdVec<NodeId, Resources> = IdVec::filled(Resources::NONE, self.nodes.len());
        let mut counters = Counts::new();
        let mut shares = Shares::new();
        for (id, assignment) in snapshot.plan.iter() {
            let job = snapshot.jobs.get(id).ok_or(Violation::NotToRun(id))?;
            is_to_run(id, job)?;
            is_whole(id, &job.spec, assignment)?;
            for (node, amount) in amounts(&job.spec, assignment) {
                nodes[node] = nodes[node] + amount;
            }
            add_counts(&mut counters, &job.spec, assignment);
            add_shares(&mut shares, &job.spec, assignment);
        }
        for (node, used) in nodes.iter() {
            if *used != self.nodes[node] {
                return Err(Violation::TotalsDiffer(node));
            }
            if self.is_over(snapshot.cluster, node) && !self.excused.contains(&node) {
                return Err(Violation::Oversubscribed(node));
            }
        }
        let differs = |(place, used): (&(CounterId, NodeId), &u64)| {
            (self.counters.get(place) != Some(used)).then_some(place.1)
        };
        let shared = shares.iter().find(|(place, used)| self.shares.get(place) != Some(used));
        match counters.iter().find_map(differs).or(shared.map(|((node, _), _)| *node)) {
            Some(node) => Err(Violation::TotalsDiffer(node)),
            None => Ok(()),
        }
    }
}

/// Whether a job has nodes in the amended plan.
fn runs(snapshot: &Snapshot<'_>, amendment: &Amendment, job: JobId) -> bool {
    match amendment.assignments.get(&job) {
        Some(change) => change.is_some(),
        None => snapshot.plan.get(job).is_some(),
    }
}

/// Worlds tell newer orders from older ones by the generation, so it rises with every change of what they are to do.
fn keeps_generations(snapshot: &Snapshot<'_>, amendment: &Amendment) -> Result<(), Violation> {
    let Amendment { generation, assignments, traffic, weights, .. } = amendment;
    let changes = !(assignments.is_empty() && traffic.is_empty() && weights.is_empty());
    match generation.cmp(&snapshot.plan.generation()) {
        Ordering::Less => Err(Violation::GenerationFalls),
        Ordering::Equal if changes => Err(Violation::GenerationStays),
        Ordering::Equal | Ordering::Greater => Ok(()),
    }
}

fn is_whole(id: JobId, spec: &JobSpec, assignment: &Assignment) -> Result<(), Violation> {
    for (index, role) in spec.roles.iter().enumerate() {
        let mut members = 0u64;
        for part in assignment.parts() {
            if usize::from(part.role) == index {
                members += u64::from(part.members);
            }
        }
        if !(u64::from(role.gang.min())..=u64::from(role.gang.max())).contains(&members) {
            return Err(Violation::SplitGang(id, index));
        }
    }
    // Members of a role that the job does not have: an assignment that was made for another job.
    let role = |part: &Part| usize::from(part.role);
    match assignment.parts().iter().map(role).find(|role| *role >= spec.roles.len()) {
        Some(role) => Err(Violation::SplitGang(id, role)),
        None => Ok(()),
    }
}

fn is_eligible(
    id: JobId,
    spec: &JobSpec,
    assignment: &Assignment,
    cluster: &Cluster,
) -> Result<(), Violation> {
    for part in assignment.parts() {
        let on = &spec.roles[usize::from(part.role)].shape.on;
        let allowed = cluster.nodes().get(part.node).is_some_and(|node| {
            node.state == NodeState::Ready
                && (on.gpu_type.is_none() || on.gpu_type == node.gpu_type)
                && on
                    .set
                    .iter()
                    .all(|set| cluster.sets().get(*set).is_some_and(|nodes| nodes.contains(part.node)))
        });
        if !allowed {
            return Err(Violation::NotEligible(id, part.node));
        }
    }
    Ok(())
}

fn keeps_topology(
    id: JobId,
    spec: &JobSpec,
    assignment: &Assignment,
    cluster: &Cluster,
) -> Result<(), Violation> {
    if spec.teams.is_some_and(|teams| splits_a_team(spec, teams, assignment, cluster)) {
        return Err(Violation::TopologyBroken(id));
    }
    let Topology::Required(level) = spec.topology else { return Ok(()) };
    let domain = |node: NodeId| cluster.node(node).domains.get(usize::from(level.0)).copied();
    let apart = if level == cluster.depth() {
        assignment.parts().iter().map(|part| part.node).collect::<BTreeSet<_>>().len()
    } else {
        assignment.parts().iter().map(|part| domain(part.node)).collect::<BTreeSet<_>>().len()
    };
    if apart > 1 { Err(Violation::TopologyBroken(id)) } else { Ok(()) }
}

/// Whether a domain has a part of a group.
fn splits_a_team(spec: &JobSpec, teams: Teams, assignment: &Assignment, cluster: &Cluster) -> bool {
    let mut members: BTreeMap<_, u64> = BTreeMap::new();
    let works = |role: u8| spec.roles[usize::from(role)].kind == RoleKind::Worker;
    for part in assignment.parts().iter().filter(|part| works(part.role)) {
        let domain = cluster.node(part.node).domains.get(usize::from(teams.within.0)).copied();
        *members.entry((part.role, domain.ok_or(part.node))).or_default() += u64::from(part.members);
    }
    members.into_values().any(|members| teams.whole(members) < members)
}

/// A job that makes room may be planned elsewhere already; one that leaves for any other reason may not.
fn is_to_run(id: JobId, job: &Job) -> Result<(), Violation> {
    let runs = match job.life {
        Life::Queued | Life::Preempted | Life::Starting(_) | Life::Running(_) => true,
        Life::Moving { .. } | Life::Resizing { .. } | Life::Leaving { exit: ExitReason::Preempt, .. } => true,
        Life::Leaving { .. } | Life::Degraded { .. } | Life::Suspended => false,
        Life::Refused(_) | Life::Failed(_) | Life::Done => false,
    };
    if runs && !job.spec.suspended { Ok(()) } else { Err(Violation::NotToRun(id)) }
}

/// Whoever waits may be planned anew; whoever has nodes must allow to be taken off them.
fn may_be_disturbed(id: JobId, job: &Job, change: Option<&Arc<Assignment>>) -> Result<(), Violation> {
    let Capabilities { suspend, relocate, evict, rescale, resize_in_place, .. } = job.spec.capabilities;
    let resized = (rescale || resize_in_place) && change.is_some_and(|new| is_resized(job, new));
    let may = suspend || relocate || evict || resized;
    if job.life.is_waiting() || may { Ok(()) } else { Err(Violation::NotToBeDisturbed(id)) }
}

/// Whether somebody who runs has more members or fewer in a new assignment, and the others where they are.
fn is_resized(job: &Job, new: &Assignment) -> bool {
    let counts = |assignment: &Assignment| {
        let mut counts: BTreeMap<_, u64> = BTreeMap::new();
        for part in assignment.parts() {
            *counts.entry((part.role, part.node, part.device)).or_default() += u64::from(part.members);
        }
        counts
    };
    let within = |few: &BTreeMap<_, u64>, many: &BTreeMap<_, u64>| {
        few.iter().all(|(place, count)| many.get(place).is_some_and(|more| more >= count))
    };
    let Life::Running(held) = &job.life else { return false };
    let (before, after) = (counts(held), counts(new));
    within(&before, &after) || within(&after, &before)
}
