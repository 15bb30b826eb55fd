//! Re-derives every rule from the finished plan. Shares no code with `decide`: it adds up by itself what it passes,
//! and is the only maker of `Checked`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::cluster::{Cluster, NodeState};
use crate::id::{IdVec, JobId, NodeId, QueueId};
use crate::job::{Exit, Job, JobSpec, Life, Topology};
use crate::plan::{Amendment, Assignment, Step};
use crate::snapshot::Snapshot;
use crate::units::Resources;

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
    #[error("job {0:?} holds resources but is not to run")]
    NotToRun(JobId),
    #[error("job {0:?} would be taken off its nodes, which it does not allow")]
    NotToBeDisturbed(JobId),
    #[error("job {0:?} would be spread over more than its topology allows")]
    TopologyBroken(JobId),
    #[error("queue {0:?} would hold more than its quota")]
    QuotaExceeded(QueueId),
    #[error("the totals kept for node {0:?} are not those of the plan")]
    TotalsDiffer(NodeId),
    #[error("a step would start job {0:?} on room that is not free yet")]
    RoomNotFree(JobId),
}

/// The checker's own books: what each node and queue holds by the plans it has passed.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    held: BTreeMap<JobId, (QueueId, Arc<Assignment>)>,
    nodes: IdVec<NodeId, Resources>,
    queues: IdVec<QueueId, Resources>,
}

impl Checker {
    pub(crate) fn new(nodes: usize, queues: usize) -> Self {
        Self {
            held: BTreeMap::new(),
            nodes: IdVec::filled(Resources::NONE, nodes),
            queues: IdVec::filled(Resources::NONE, queues),
        }
    }

    /// Passes an amendment, or names the first rule it breaks. Looks only at what changes.
    pub fn check(
        &self,
        snapshot: &Snapshot<'_>,
        amendment: Amendment,
    ) -> Result<Checked<Amendment>, Violation> {
        let mut nodes: BTreeMap<NodeId, Resources> = BTreeMap::new();
        let mut queues: BTreeMap<QueueId, Resources> = BTreeMap::new();
        for id in amendment.changes.keys() {
            if let Some((queue, old)) = self.held.get(id) {
                for (node, amount) in amounts(&snapshot.jobs[*id].spec, old) {
                    let left = nodes.entry(node).or_insert(self.nodes[node]);
                    *left = *left - amount;
                    let left = queues.entry(*queue).or_insert(self.queues[*queue]);
                    *left = *left - amount;
                }
            }
        }
        for (id, change) in &amendment.changes {
            let job = snapshot.jobs.get(*id).ok_or(Violation::NotToRun(*id))?;
            may_be_disturbed(*id, job)?;
            let Some(new) = change else { continue };
            is_to_run(*id, job)?;
            is_whole(*id, &job.spec, new)?;
            is_eligible(*id, &job.spec, new, snapshot.cluster)?;
            keeps_topology(*id, &job.spec, new, snapshot.cluster)?;
            for (node, amount) in amounts(&job.spec, new) {
                let used = nodes.entry(node).or_insert(self.nodes[node]);
                *used = *used + amount;
                let used = queues.entry(job.spec.queue).or_insert(self.queues[job.spec.queue]);
                *used = *used + amount;
            }
        }
        for (node, used) in nodes {
            if !used.fits_in(snapshot.cluster.node(node).capacity) {
                return Err(Violation::Oversubscribed(node));
            }
        }
        for (queue, used) in queues {
            let grown = !used.fits_in(self.queues[queue]);
            if grown && snapshot.queues[queue].bound().is_some_and(|bound| !used.fits_in(bound)) {
                return Err(Violation::QuotaExceeded(queue));
            }
        }
        Ok(Checked(amendment))
    }

    /// Enters a change into the books: one that was passed, or one that the world made.
    pub(crate) fn record(&mut self, id: JobId, spec: &JobSpec, change: Option<&Arc<Assignment>>) {
        if let Some((queue, old)) = self.held.remove(&id) {
            for (node, amount) in amounts(spec, &old) {
                self.nodes[node] = self.nodes[node] - amount;
                self.queues[queue] = self.queues[queue] - amount;
            }
        }
        if let Some(new) = change {
            for (node, amount) in amounts(spec, new) {
                self.nodes[node] = self.nodes[node] + amount;
                self.queues[spec.queue] = self.queues[spec.queue] + amount;
            }
            self.held.insert(id, (spec.queue, new.clone()));
        }
    }

    pub(crate) fn add_node(&mut self) {
        self.nodes.push(Resources::NONE);
    }

    /// Adds up the whole plan from nothing: every assignment whole, every job in it to run, no node over its
    /// capacity, and the books right.
    pub fn check_all(&self, snapshot: &Snapshot<'_>) -> Result<(), Violation> {
        let mut nodes: IdVec<NodeId, Resources> = IdVec::filled(Resources::NONE, self.nodes.len());
        for (id, assignment) in snapshot.plan.iter() {
            let job = snapshot.jobs.get(id).ok_or(Violation::NotToRun(id))?;
            is_to_run(id, job)?;
            is_whole(id, &job.spec, assignment)?;
            for (node, amount) in amounts(&job.spec, assignment) {
                nodes[node] = nodes[node] + amount;
            }
        }
        for (node, used) in nodes.iter() {
            if !used.fits_in(snapshot.cluster.node(node).capacity) {
                return Err(Violation::Oversubscribed(node));
            }
            if *used != self.nodes[node] {
                return Err(Violation::TotalsDiffer(node));
            }
        }
        Ok(())
    }
}

/// Passes steps if all they take is counted as held and no node then holds more than it has. `occupied` is what jobs
/// hold in fact once these steps are under way; a step that frees room has freed it only when the world says so.
pub fn check_steps(
    cluster: &Cluster,
    jobs: impl Fn(JobId) -> Option<Arc<JobSpec>>,
    occupied: &IdVec<NodeId, Resources>,
    steps: Vec<Step>,
) -> Result<Checked<Vec<Step>>, Violation> {
    let mut taken: BTreeMap<NodeId, Resources> = BTreeMap::new();
    for step in &steps {
        let Some(assignment) = step.action.takes() else { continue };
        let spec = jobs(step.job).ok_or(Violation::NotToRun(step.job))?;
        is_whole(step.job, &spec, assignment)?;
        for (node, amount) in amounts(&spec, assignment) {
            let used = taken.entry(node).or_default();
            *used = *used + amount;
            let counted = used.fits_in(occupied[node]);
            if !counted || !occupied[node].fits_in(cluster.node(node).capacity) {
                return Err(Violation::RoomNotFree(step.job));
            }
        }
    }
    Ok(Checked(steps))
}

/// What all jobs hold in fact, added up from their lives.
pub fn occupied<'a>(nodes: usize, jobs: impl Iterator<Item = &'a Job>) -> IdVec<NodeId, Resources> {
    let mut used = IdVec::filled(Resources::NONE, nodes);
    for job in jobs {
        for assignment in job.life.holds() {
            for (node, amount) in amounts(&job.spec, &assignment) {
                used[node] = used[node] + amount;
            }
        }
    }
    used
}

/// What an assignment takes, computed from the members it names.
fn amounts<'a>(
    spec: &'a JobSpec,
    assignment: &'a Assignment,
) -> impl Iterator<Item = (NodeId, Resources)> + 'a {
    assignment.parts().iter().map(|part| {
        let each = spec.roles[usize::from(part.role)].shape.each;
        (part.node, each.times(u64::from(part.members)))
    })
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
    Ok(())
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
                && on.nodes.iter().all(|only| only.contains(&part.node))
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
    let Topology::Required(level) = spec.topology else { return Ok(()) };
    let domain = |node: NodeId| cluster.node(node).domains.get(usize::from(level.0)).copied();
    let apart = if level == cluster.depth() {
        assignment.parts().iter().map(|part| part.node).collect::<BTreeSet<_>>().len()
    } else {
        assignment.parts().iter().map(|part| domain(part.node)).collect::<BTreeSet<_>>().len()
    };
    if apart > 1 { Err(Violation::TopologyBroken(id)) } else { Ok(()) }
}

/// A job that makes room may be planned elsewhere already; one that leaves for any other reason may not.
fn is_to_run(id: JobId, job: &Job) -> Result<(), Violation> {
    let runs = match job.life {
        Life::Queued | Life::Preempted | Life::Starting(_) | Life::Running(_) => true,
        Life::Moving { .. } | Life::Resizing { .. } | Life::Leaving { exit: Exit::Preempt, .. } => true,
        Life::Leaving { .. } | Life::Degraded { .. } | Life::Suspended => false,
        Life::Refused(_) | Life::Failed(_) | Life::Done => false,
    };
    if runs && !job.spec.suspended { Ok(()) } else { Err(Violation::NotToRun(id)) }
}

/// Whoever waits may be planned anew; whoever has nodes must allow to be taken off them.
fn may_be_disturbed(id: JobId, job: &Job) -> Result<(), Violation> {
    let may = job.spec.capabilities.suspend || job.spec.capabilities.relocate;
    if job.life.is_waiting() || may { Ok(()) } else { Err(Violation::NotToBeDisturbed(id)) }
}
