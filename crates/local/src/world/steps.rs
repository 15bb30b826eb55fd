//! Steps of the engine, on this machine.

use std::sync::Arc;

use metronome_core::engine::{Event, NodeOutcome};
use metronome_core::model::cluster::Name;
use metronome_core::model::plan::{Action, Assignment, Step};
use metronome_core::model::report::Failure;

use super::course::{Doing, Then};
use super::{Told, World};
use crate::LocalError;
use crate::fault::{self, FaultPoint};

impl World<'_> {
    pub(super) fn take(&mut self, step: &Step) {
        if let Action::Direct { .. } = step.action {
            // What became of it is reported once the agent is told.
            self.changed = true;
            return;
        }
        let index = self.index_of(step.job);
        if step.id < self.courses[index].newest || self.courses[index].is_over() {
            self.fail(step, Failure::Stale);
            return;
        }
        self.courses[index].newest = step.id;
        self.changed = true;
        match &step.action {
            Action::Start(to) => match self.courses[index].doing {
                Doing::Out => self.start(index, to, Some(step.id)),
                _ => self.fail(step, Failure::NoRoom),
            },
            Action::Stop => self.leave(index, Then::Done(Some(step.id)), true),
            Action::Preempt { .. } | Action::Suspend => self.leave(index, Then::Done(Some(step.id)), false),
            Action::Move { to, .. } => {
                self.courses[index].tally.moves += 1;
                let nodes = to.nodes().map(|node| &*self.setup.cluster.node(node).name).collect();
                (self.tell)(Told::Moved { job: &self.setup.jobs[index].spec.name, nodes });
                self.leave(index, Then::Start { to: to.clone(), step: step.id }, false);
            }
            Action::Rescale { to, .. } => {
                self.courses[index].tally.resizes += 1;
                self.leave(index, Then::Start { to: to.clone(), step: step.id }, false);
            }
            Action::ResizeInPlace { to, .. } => self.resize_in_place(index, step, to),
            Action::Direct { .. } => {}
        }
    }

    /// Its cores are more or fewer from one moment to the next.
    fn resize_in_place(&mut self, index: usize, step: &Step, to: &Arc<Assignment>) {
        let now = self.now();
        let resized = self.courses[index].up().map(|up| self.say_size(index, to, &up.seats));
        match (resized, &mut self.courses[index].doing) {
            (Some(Ok(())), Doing::Up(up)) => up.held = to.clone(),
            (Some(Err(error)), _) => {
                let what = format!("cannot {error}");
                (self.tell)(Told::Trouble { job: Some(&self.setup.jobs[index].spec.name), what: &what });
                return self.fail(step, Failure::Other);
            }
            _ => return self.fail(step, Failure::Other),
        }
        self.courses[index].tally.resizes += 1;
        let cores = to.total().cpu.0 / 1000;
        (self.tell)(Told::Resized { job: &self.setup.jobs[index].spec.name, cores });
        self.engine.observe(now, Event::StepDone { job: step.job, step: step.id });
    }

    fn fail(&mut self, step: &Step, failure: Failure) {
        let now = self.now();
        self.engine.observe(now, Event::StepFailed { job: step.job, step: step.id, failure });
    }

    /// Reports of every directive that nodes have not confirmed whether it is in effect, for jobs whose members are up. `told` is
    /// whether the agent could be told of all traffic policies.
    pub(super) fn report_directives(&mut self, told: &Result<(), LocalError>) {
        let now = self.now();
        let mut outcomes = Vec::new();
        for (id, directive) in self.engine.directives() {
            let Some(course) = self.courses.iter().find(|course| course.id == Some(*id)) else { continue };
            let Some(up) = course.up() else { continue };
            let groups = up.seats.iter().filter_map(|seat| seat.member.group()).filter(|_| self.rights.cpu);
            let weighed = groups.map(|group| group.set_cpu_weight(directive.weight.get()));
            let failure = match (told, weighed.collect::<Result<Vec<()>, LocalError>>()) {
                (Err(error), _) => Some(format!("cannot {error}")),
                (_, Err(error)) => Some(format!("cannot {error}")),
                (Ok(()), Ok(_)) if self.agent.is_none() && !directive.traffic.is_default() => {
                    Some("no agent runs".to_owned())
                }
                (Ok(()), Ok(_)) => None,
            };
            let awaited = directive.nodes.iter().filter(|(_, outcome)| **outcome != NodeOutcome::Applied);
            outcomes.extend(awaited.map(|(node, _)| (*id, *node, directive.generation, failure.clone())));
        }
        for (job, node, generation, failure) in outcomes {
            let event = match failure {
                None => Event::DirectiveApplied { job, node, generation },
                Some(why) => Event::DirectiveFailed { job, node, generation, reason: Name::from(why) },
            };
            self.engine.observe(now, event);
        }
    }

    /// Sets the CPU weights of jobs that share cores. Where a weight cannot be set the job has the one it had.
    pub(super) fn keep_to_weights(&self) {
        if !self.rights.cpu {
            return;
        }
        for course in &self.courses {
            let (Some(id), Some(up)) = (course.id, course.up()) else { continue };
            let weight = self.engine.weight(id);
            for group in up.seats.iter().filter_map(|seat| seat.member.group()) {
                let _ = group.set_cpu_weight(weight.get());
                fault::after(FaultPoint::WeightSet);
            }
        }
    }
}
