//! Steps: what lies between the plan and what is. Room is freed before it is taken, and a step goes out only when
//! what it takes is free in fact.

use std::sync::Arc;

use super::Engine;
use super::state::UnderWay;
use crate::check::{Checked, check_steps};
use crate::model::cluster::NodeState;
use crate::model::id::JobId;
use crate::model::job::{ExitReason, Life};
use crate::model::plan::{Action, Assignment, Step, StepId, action_towards};
use crate::model::report::Failure;

impl Engine {
    /// The steps that can be carried out now, assumed from here on to be under way.
    pub(super) fn ready_steps(&mut self) -> Checked<Vec<Step>> {
        let mut steps = Vec::new();
        let unsettled: Vec<JobId> = self.index.unsettled.iter().copied().collect();
        for freeing in [true, false] {
            for id in &unsettled {
                if let Some(action) =
                    self.next_action(*id).filter(|action| action.takes().is_none() == freeing)
                {
                    steps.push(self.issue(*id, action));
                }
            }
        }
        for id in unsettled {
            if self.is_settled(id) {
                self.index.unsettled.remove(&id);
            }
        }
        // Directives come last: no step of a job waits for one.
        steps.extend(self.directive_steps());
        self.pass(steps)
    }

    /// Passes the steps that keep all rules. A step that breaks one is withdrawn with an alarm, as if a world could not carry it
    /// out, so that the steps of other jobs go on.
    fn pass(&mut self, mut steps: Vec<Step>) -> Checked<Vec<Step>> {
        loop {
            let spec = |id| self.state.jobs.get(id).map(|job| job.spec.clone());
            let occupied = &self.index.occupied;
            let counted = |node, counter| occupied.count(node, counter);
            let shared = |node| occupied.shares(node);
            let cluster = &self.state.cluster;
            let rejected = match check_steps(cluster, spec, occupied.resources(), counted, shared, steps) {
                Ok(checked) => return checked,
                Err(rejected) => rejected,
            };
            steps = rejected.steps;
            let step = steps.remove(rejected.at);
            self.alarm(rejected.violation.to_string());
            self.step_failed(step.job, step.id, Failure::Rejected);
        }
    }

    fn next_action(&self, id: JobId) -> Option<Action> {
        let job = self.state.jobs.get(id)?;
        if self.state.under_way.contains_key(&id) {
            return None;
        }
        let beneficiary = self.state.displaced.get(&id).copied();
        match &job.life {
            Life::Degraded { .. } => Some(Action::Stop),
            Life::Leaving { exit: ExitReason::Preempt, .. } => Some(Action::Preempt { beneficiary }),
            Life::Leaving { exit: ExitReason::Suspend, .. } => Some(Action::Suspend),
            Life::Leaving {
                exit: ExitReason::Cancel | ExitReason::Miss(_) | ExitReason::Abort(_), ..
            } => Some(Action::Stop),
            life => {
                let intended = self.state.plan.get(id);
                let may_go = |to: &Assignment, beside: Option<&Assignment>| {
                    self.has_room(to, beside) && !self.awaits_others(id)
                };
                action_towards(life, intended, job.spec.capabilities, beneficiary, may_go)
            }
        }
    }

    /// Whether somebody who leaves for its sake is still there. More than their room may have stood in its way.
    fn awaits_others(&self, id: JobId) -> bool {
        self.state.displaced.values().any(|beneficiary| *beneficiary == id)
    }

    /// Whether there is room in fact; for who has some of it already, beside what it has.
    fn has_room(&self, to: &Assignment, beside: Option<&Assignment>) -> bool {
        let cluster = &self.state.cluster;
        let state = |node| cluster.nodes().get(node).map(|node| node.state);
        if !to.nodes().all(|node| state(node) == Some(NodeState::Ready)) {
            return false;
        }
        let lacking = match beside.filter(|held| to.covers(held)) {
            Some(held) => {
                let mut others = self.index.occupied.clone();
                others.remove_all(held);
                others.lacking(cluster, to)
            }
            None => self.index.occupied.lacking(cluster, to),
        };
        lacking.is_empty()
    }

    fn issue(&mut self, id: JobId, action: Action) -> Step {
        let step = self.state.next_step;
        self.state.next_step = StepId(step.0 + 1);
        let deadline = self.state.now + self.state.settings.step_timeout;
        self.state.under_way.insert(id, UnderWay { step, action: action.clone(), deadline });
        self.index.deadlines.insert((deadline, id));
        self.assume(id, &action);
        Step { id: step, generation: self.state.plan.generation, job: id, action }
    }

    /// The life that a job has while a step is under way. What it will take counts as held from now on.
    fn assume(&mut self, id: JobId, action: &Action) {
        let before = self.state.jobs[id].life.holds();
        let next = match (&self.state.jobs[id].life, action) {
            (_, Action::Start(to)) => Life::Starting(to.clone()),
            (_, Action::Move { from, to }) => Life::Moving { from: from.clone(), to: to.clone() },
            (_, Action::Rescale { from, to } | Action::ResizeInPlace { from, to }) => {
                Life::Resizing { from: from.clone(), to: to.clone() }
            }
            (Life::Running(held), Action::Preempt { .. }) => {
                Life::Leaving { held: vec![Arc::clone(held)], exit: ExitReason::Preempt }
            }
            (unchanged, Action::Stop | Action::Suspend | Action::Preempt { .. } | Action::Direct { .. }) => {
                unchanged.clone()
            }
        };
        before.iter().for_each(|held| self.index.occupied.remove_all(held));
        next.holds().iter().for_each(|held| self.index.occupied.add_all(held));
        self.set_life(id, next);
        self.expect_no_report_of(id);
    }

    /// Nothing is to be done about it until something happens to it.
    pub(super) fn is_settled(&self, id: JobId) -> bool {
        let Some(job) = self.state.jobs.get(id) else { return true };
        self.state.under_way.contains_key(&id)
            || match (&job.life, self.state.plan.get(id)) {
                (Life::Running(held), Some(planned)) => held == planned,
                (Life::Queued | Life::Preempted, planned) => planned.is_none(),
                (Life::Suspended, _) => true,
                _ => false,
            }
    }

    /// Gives up waiting for steps past their deadline; true if there were any. A start that was not heard of is
    /// cleared away, because it may have happened; anything else is asked for again.
    pub(super) fn expire_steps(&mut self) -> bool {
        let mut any = false;
        while let Some((at, id)) =
            self.index.deadlines.first().copied().filter(|(at, _)| *at <= self.state.now)
        {
            self.index.deadlines.remove(&(at, id));
            self.state.under_way.remove(&id);
            self.index.unsettled.insert(id);
            any = true;
            let life = &self.state.jobs[id].life;
            if matches!(life, Life::Starting(_) | Life::Moving { .. } | Life::Resizing { .. }) {
                let held = life.holds();
                self.drop_from_plan(id);
                self.set_life(id, Life::Leaving { held, exit: ExitReason::Abort(Failure::TimedOut) });
            }
        }
        any
    }
}
