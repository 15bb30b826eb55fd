//! Jobs that the engine did not start, that ask for something else, or that end bit by bit.

use std::sync::Arc;

use super::Engine;
use crate::model::cluster::NodeState;
use crate::model::id::JobId;
use crate::model::job::{Job, JobSpec, Life};
use crate::model::plan::{Assignment, Part};
use crate::model::units::Instant;

impl Engine {
    pub(super) fn was_found(&mut self, spec: Arc<JobSpec>, parts: Vec<Part>, since: Instant) {
        let mut spec = self.in_known_queue(spec);
        if spec.suspended {
            // It runs, whatever its owner wanted; to stop it is another event.
            Arc::make_mut(&mut spec).suspended = false;
        }
        let nodes = self.state.cluster.nodes();
        let known = parts.iter().all(|part| nodes.get(part.node).is_some());
        let held = Assignment::whole(&spec, parts).ok().filter(|_| known).map(Arc::new);
        let since = since.min(self.state.now);
        let id = self.state.jobs.push(Job { submitted: since, ..self.newcomer(spec) });
        let Some(held) = held else {
            self.state.jobs.remove(id);
            return;
        };
        self.index.welcome(&mut self.state, id);
        self.index.occupied.add_all(&held);
        self.state.jobs[id].life = Life::Running(held.clone());
        self.runs(id, &held, since);
        let gone = held.nodes().find(|node| self.state.cluster.node(*node).state == NodeState::Gone);
        self.put_back_into_plan(id, held);
        if let Some(lost) = gone {
            self.loses(id, lost);
        }
    }

    /// Some members of a job have ended. Where it is planned elsewhere than it is, it is planned anew.
    pub(super) fn members_left(&mut self, id: JobId, left: Part) {
        let Some(job) = self.state.jobs.get(id) else { return };
        let Some(spec) = shrunk(job, left) else { return };
        let (held, planned) = (job.life.holds(), self.state.plan.get(id).cloned());
        let rest =
            |before: &Arc<Assignment>| before.without(&spec, left).map_or_else(|| before.clone(), Arc::new);
        let life = job.life.with_each(rest);
        let planned = planned.filter(|planned| job.life.is_about(planned)).map(|planned| rest(&planned));
        if life.holds().iter().all(|held| held.members() == 0) {
            return self.over(id, Life::Done);
        }
        self.drop_from_plan(id);
        held.iter().for_each(|held| self.index.occupied.remove_all(held));
        life.holds().iter().for_each(|held| self.index.occupied.add_all(held));
        self.asks_for(id, spec);
        self.set_life(id, life.clone());
        if let Life::Running(held) = life {
            let job = &mut self.state.jobs[id];
            let pace = job.pace_on(&held);
            job.progress.start(self.state.now, held.total().gpus, pace);
            job.progress.record_nodes(self.state.now, &held);
        }
        if let Some(planned) = planned {
            self.put_where_it_is(id, planned);
        }
        self.state.dirty = true;
    }

    /// A job asks for something else now.
    pub(super) fn job_changed(&mut self, id: JobId, spec: Arc<JobSpec>) {
        let Some(job) = self.state.jobs.get(id) else { return };
        if job.life.holds().is_empty() {
            return self.begins_anew(id, spec);
        }
        let kept = JobSpec {
            name: spec.name.clone(),
            priority: spec.priority,
            budgets: spec.budgets.clone(),
            ..(*job.spec).clone()
        };
        self.asks_for(id, kept);
        self.victims_may_be_had();
    }

    fn begins_anew(&mut self, id: JobId, spec: Arc<JobSpec>) {
        self.drop_from_plan(id);
        let spec = self.in_known_queue(spec);
        let (suspended, unwanted) = (spec.suspended, self.exceeds_quota(&spec));
        self.asks_for(id, Arc::unwrap_or_clone(spec));
        if let Some(reason) = unwanted.or_else(|| self.refusal(id)) {
            return self.over(id, Life::Refused(reason));
        }
        if suspended {
            self.index.step_out(&mut self.state, id);
            self.set_life(id, Life::Suspended);
        } else {
            self.back_to_waiting(id);
        }
        self.state.dirty = true;
    }

    /// Replaces what a job asks for, wherever that is counted but in the plan.
    pub(super) fn asks_for(&mut self, id: JobId, spec: JobSpec) {
        self.index.unwelcome(&mut self.state, id);
        self.state.jobs[id].spec = Arc::new(spec);
        self.index.welcome(&mut self.state, id);
        self.index.recount(&mut self.state, id);
    }
}

/// What a job asks for once these members have ended; `None` if it has no such members.
fn shrunk(job: &Job, left: Part) -> Option<JobSpec> {
    let has = |held: &Assignment| {
        held.parts().iter().find(|part| part.is_with(&left)).is_some_and(|part| part.members >= left.members)
    };
    if left.members == 0 || !job.life.holds().iter().any(|held| has(held)) {
        return None;
    }
    // Who is on its way to another size has at least as many as at the smaller end.
    let of_role = |held: &Assignment| -> u32 {
        held.parts().iter().filter(|part| part.role == left.role).map(|part| part.members).sum()
    };
    let stay = job.life.ends().iter().map(|end| of_role(end)).min()?.saturating_sub(left.members);
    let mut spec = (*job.spec).clone();
    let gang = &mut spec.roles.get_mut(usize::from(left.role))?.gang;
    *gang = gang.without(left.members, stay);
    Some(spec)
}
