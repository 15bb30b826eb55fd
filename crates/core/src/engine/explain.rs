//! Answers to "why?", from the state and the last decision.

use std::collections::BTreeSet;

use super::Engine;
use super::deadlines::{booked, late};
use super::index::Index;
use super::state::State;
use crate::decide::QueueCursor;
use crate::decide::order;
use crate::model::allocated::is_eligible;
use crate::model::cluster::{Level, Name, NodeState};
use crate::model::id::{CounterId, JobId, NodeId};
use crate::model::job::{Eligibility, ExitReason, Job, Life, Priority, Role, Topology};
use crate::model::policy::Order;
use crate::model::report::{BestDomain, Explanation, JobAhead, Reason};
use crate::model::units::{Duration, Instant, Resources};

/// How many of those ahead, or in the way, are named.
const NAMED: usize = 5;

/// The reason of a waiting job: its own, or the one its class shares. One that runs needs none, unless it hangs.
pub(super) fn verdict(state: &State, index: &Index, id: JobId) -> Option<Reason> {
    let job = state.jobs.get(id)?;
    match &job.life {
        Life::Suspended => Some(Reason::Gated),
        Life::Degraded { lost, .. } => Some(Reason::NodeLost { node: *lost }),
        Life::Leaving { exit: ExitReason::Abort(failure), .. } => {
            Some(Reason::StartFailed { times: job.failed_starts + 1, failure: *failure })
        }
        Life::Leaving { exit: ExitReason::Miss(deadline), .. } => Some(late(*deadline)),
        Life::Queued | Life::Preempted if state.plan.get(id).is_some() => Some(Reason::WaitingForVictims),
        Life::Queued | Life::Preempted if state.plan.timetable.governs(id) => booked(state, id),
        Life::Queued | Life::Preempted => match (state.blocked_by, job.class) {
            (Some(ahead), _) if ahead != id => Some(Reason::BehindHigherPriority { ahead }),
            (_, Some(class)) => index.waiting.class(class)?.closed.as_ref().map(|(_, reason)| reason.clone()),
            // Neither planned nor in line: it backs off from a start that failed.
            (_, None) => {
                job.last_failure.map(|failure| Reason::StartFailed { times: job.failed_starts, failure })
            }
        },
        Life::Running(_) => stalled(job, state.now),
        _ => None,
    }
}

fn stalled(job: &Job, now: Instant) -> Option<Reason> {
    let since = job.progress.silent_since(now)?;
    Some(Reason::Stalled { since, silent: now.since(since) })
}

impl Engine {
    /// Everything there is to say about a job.
    pub fn explain(&self, id: JobId) -> Option<Explanation> {
        let explanation = self.explain_in(id, &self.line())?;
        let due = explanation.due.is_some().then(|| self.due_and_what_would_save_it(id)).flatten();
        Some(Explanation { best: self.best_domain(id), due, ..explanation })
    }

    /// The same but for the best domain and what would save a deadline, for who explains many and asks for the line once.
    pub fn explain_in(&self, id: JobId, line: &[JobId]) -> Option<Explanation> {
        let Some(job) = self.state.jobs.get(id) else { return self.explain_the_past(id) };
        let place = line.iter().position(|other| *other == id);
        let ahead = &line[..place.unwrap_or(0).min(NAMED)];
        Some(Explanation {
            job: job.spec.name.clone(),
            state: job.life.state(),
            submitted: job.submitted,
            waited: self.waited(job),
            reason: self.verdict(id),
            need: job.spec.least(),
            free: self.free_for(job),
            lacks: self.lacks(job),
            position: place.map(|place| place + 1),
            priority: job.spec.priority,
            ahead: ahead.iter().map(|id| self.ahead(&self.state.jobs[*id])).collect(),
            best: None,
            avoided: self.avoided_for(job),
            awaits: self.awaited_by(id),
            assignment: self.state.plan.get(id).map(|assignment| (**assignment).clone()),
            unwell: self.unwell_under(id),
            unconfirmed: self.unconfirmed_on(id),
            due: self.due(id),
            learned: self.learned(id),
        })
    }

    fn ahead(&self, job: &Job) -> JobAhead {
        let by_what_is_left = matches!(self.state.policy.order, Order::Srtf | Order::Srsf);
        JobAhead {
            job: job.spec.name.clone(),
            priority: job.spec.priority,
            waited: self.waited(job),
            left: job.remaining(self.state.now).filter(|_| by_what_is_left),
        }
    }

    /// Those who hold something on the nodes of a job that has a place and does not run yet, and who are not to stay there.
    fn awaited_by(&self, id: JobId) -> Vec<Name> {
        let waits = self.state.jobs[id].life.is_waiting();
        let Some(place) = self.state.plan.get(id).filter(|_| waits) else { return Vec::new() };
        let leaves = |other: &JobId| {
            let (planned, held) = (self.state.plan.get(*other), self.state.jobs[*other].life.holds());
            held.iter().any(|held| planned != Some(held) && held.nodes().any(|node| place.touches(node)))
        };
        let on_their_way = self.index.unsettled.iter().chain(self.state.under_way.keys()).copied();
        let there: BTreeSet<JobId> =
            on_their_way.filter(|other| self.state.jobs.get(*other).is_some() && leaves(other)).collect();
        there.into_iter().take(NAMED).map(|other| self.state.jobs[other].spec.name.clone()).collect()
    }

    fn waited(&self, job: &Job) -> Duration {
        self.state.now.since(job.submitted) - job.progress.useful_run_time(self.state.now)
    }

    /// For a job that waits and has no place: where it would come nearest to one, at the level it asks for, or else at
    /// the widest below the whole cluster. Every role is counted by itself.
    fn best_domain(&self, id: JobId) -> Option<BestDomain> {
        let job = self.state.jobs.get(id).filter(|job| job.life.is_waiting())?;
        if self.state.plan.get(id).is_some() {
            return None;
        }
        let level = match job.spec.topology {
            Topology::Required(level) | Topology::Preferred(level) => level,
            Topology::Anywhere => Level(0),
        };
        let fit = |nodes: &[NodeId]| job.spec.roles.iter().map(|role| self.fit_on(nodes, role)).sum::<u32>();
        let cluster = &self.state.cluster;
        let places: Vec<(&str, u32)> = if level == cluster.depth() {
            cluster.nodes().iter().map(|(id, node)| (&*node.name, fit(&[id]))).collect()
        } else {
            let domains = cluster.domains_at(level);
            domains.map(|domain| (cluster.domain_name(domain), fit(cluster.nodes_in(domain)))).collect()
        };
        // Of equals the first: `max_by_key` takes the last.
        let (domain, fit) = places.into_iter().rev().max_by_key(|(_, fit)| *fit)?;
        Some(BestDomain { level, domain: Name::from(domain), fit, members: job.spec.members() })
    }

    /// How many members of a role, at most as many as it needs, have room on these nodes.
    fn fit_on(&self, nodes: &[NodeId], role: &Role) -> u32 {
        let (cluster, taken) = (&self.state.cluster, self.index.room.taken());
        let ready = nodes.iter().filter(|node| cluster.node(**node).state == NodeState::Ready);
        let fits = ready.map(|node| taken.fit(cluster, *node, &role.shape));
        fits.fold(0, u32::saturating_add).min(role.gang.min())
    }

    /// What is free on the nodes that some member of the job may use.
    fn free_for(&self, job: &Job) -> Resources {
        let cluster = &self.state.cluster;
        let nodes = cluster.nodes().iter().filter(|(_, node)| node.state == NodeState::Ready);
        let may_use = |node| job.spec.roles.iter().any(|role| is_eligible(cluster, node, role.shape.on));
        let taken = self.index.room.taken();
        nodes.filter(|(node, _)| may_use(*node)).map(|(node, _)| taken.free(cluster, node)).sum()
    }

    /// The counters of which there is too little for a job that waits, where it may run.
    fn lacks(&self, job: &Job) -> Vec<(Name, u64, u64)> {
        let waits = job.life.is_waiting() && job.class.is_some();
        let roles = job.spec.roles.iter().filter(|_| waits);
        let needs = roles.flat_map(|role| role.shape.counters.iter().map(move |need| (role, need)));
        let short = needs.filter(|(_, (_, each))| *each > 0).filter_map(|(role, (counter, each))| {
            let left = self.left(role.shape.on, *counter);
            let fit: u64 = left.iter().map(|left| left / each).sum();
            let members = u64::from(role.gang.min());
            let name = self.state.cluster.counters().get(*counter)?.name.clone();
            (fit < members).then(|| (name, each.saturating_mul(members), left.iter().sum()))
        });
        short.collect()
    }

    /// What is left of a counter on each node that takes such members.
    fn left(&self, on: Eligibility, counter: CounterId) -> Vec<u64> {
        let cluster = &self.state.cluster;
        let nodes = cluster.nodes().iter().filter(|(_, node)| node.state == NodeState::Ready);
        let eligible = nodes.filter(|(node, _)| is_eligible(cluster, *node, on));
        eligible.map(|(node, _)| self.index.room.taken().left(cluster, node, counter)).collect()
    }

    /// The job of that name: the newest one, if several had it.
    pub fn find_job(&self, name: &str) -> Option<JobId> {
        let live = self.state.jobs.iter().filter(|(_, job)| &*job.spec.name == name).map(|(id, _)| id).last();
        live.or_else(|| {
            self.state.over.iter().rev().find(|(_, ended)| &*ended.name == name).map(|(id, _)| *id)
        })
    }

    fn explain_the_past(&self, id: JobId) -> Option<Explanation> {
        let (_, ended) = self.state.over.iter().find(|(over, _)| *over == id)?;
        Some(Explanation {
            job: ended.name.clone(),
            state: ended.state,
            submitted: ended.submitted,
            waited: Duration::ZERO,
            reason: ended.reason.clone(),
            need: Resources::NONE,
            free: self.index.room.total(&self.state.cluster),
            lacks: Vec::new(),
            position: None,
            priority: Priority::default(),
            ahead: Vec::new(),
            best: None,
            avoided: Vec::new(),
            awaits: Vec::new(),
            assignment: None,
            unwell: Vec::new(),
            unconfirmed: Vec::new(),
            due: None,
            learned: None,
        })
    }

    /// All that stand in line, first first.
    pub fn line(&self) -> Vec<JobId> {
        let snapshot = self.snapshot();
        let ranker = order::order(&snapshot, &self.state.policy);
        let mut line = QueueCursor::new(&ranker, |_| true);
        let mut all = Vec::with_capacity(snapshot.waiting.len());
        // Queues take turns as if everybody were served.
        let mut held = self.index.held.clone();
        while let Some((next, class)) = line.pop(held.by_queue()) {
            all.push(next);
            line.step_up(next, class);
            let spec = &self.state.jobs[next].spec;
            held.add(&self.state.queues, spec, spec.least());
        }
        all
    }
}
