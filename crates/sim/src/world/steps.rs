//! Steps at the machines: what they take, what they free, how long that is, and what may befall them on the way.

use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::plan::{Action, Assignment, Step};
use metronome_core::model::report::Failure;
use metronome_core::model::units::Duration;

use super::agenda::Happening;
use super::dice::Fortune;
use super::{Keeping, Owner, World};

impl World<'_> {
    /// A step leaves the engine: it comes at once, late, not at all, or fails.
    pub(super) fn hand_over(&mut self, step: Step) {
        if let Action::Direct { nodes, .. } = &step.action {
            return self.direct(step.job, nodes, step.generation);
        }
        match self.dice.fortune() {
            Fortune::Comes => self.step_comes(step),
            Fortune::ComesLate(by) => self.agenda.add(self.now + by, Happening::StepComes(step)),
            Fortune::IsLost => {}
            Fortune::Fails => self.step_fails(step),
        }
    }

    /// A step fails at the machines: everything is as it was, and older steps are void. What is happening already
    /// cannot fail to happen.
    fn step_fails(&mut self, step: Step) {
        let owner = self.owners[step.job];
        let leaves = matches!(step.action, Action::Preempt { .. } | Action::Suspend);
        if leaves && !self.trainings[owner.training].is_training() {
            return self.step_comes(step);
        }
        self.owners[step.job].newest = step.id;
        self.fail(&step, if leaves { Failure::WouldNotStop } else { Failure::Other });
    }

    fn tell(&mut self, event: Event) {
        self.agenda.add(self.now, Happening::IsTold(event));
    }

    fn fail(&mut self, step: &Step, failure: Failure) {
        self.tell(Event::StepFailed { job: step.job, step: step.id, failure });
    }

    /// A step reaches the machines. What it frees is free, and what it starts trains, when `step_ends`.
    pub(super) fn step_comes(&mut self, step: Step) {
        let owner = self.owners[step.job];
        if step.id < owner.newest || self.trainings[owner.training].is_over() {
            return self.fail(&step, Failure::Stale);
        }
        self.owners[step.job].newest = step.id;
        let takes = match &step.action {
            Action::Start(to) => match self.settle(&step, owner, to) {
                Ok(()) => self.start_cost(owner.training),
                Err(failure) => return self.fail(&step, failure),
            },
            Action::Move { from, to } | Action::Rescale { from, to } | Action::ResizeInPlace { from, to } => {
                let in_place = matches!(step.action, Action::ResizeInPlace { .. });
                self.halt(owner.training, if in_place { Keeping::Running } else { Keeping::All });
                // Members that stay where they are need no second place.
                let resizes = !matches!(step.action, Action::Move { .. });
                let stays = resizes && to.covers(from);
                let gives_back = resizes && from.covers(to);
                if stays {
                    self.clear(owner, |on| on == from);
                }
                let settled = if gives_back { Ok(()) } else { self.settle(&step, owner, to) };
                match settled {
                    Ok(()) => self.change_cost(owner.training, &step.action),
                    Err(failure) => {
                        if stays {
                            self.enter(&step, owner, from);
                        }
                        self.train_if_complete(owner.training);
                        return self.fail(&step, failure);
                    }
                }
            }
            Action::Preempt { .. } | Action::Suspend => {
                self.halt(owner.training, Keeping::All);
                self.stop_cost(owner.training, Keeping::All)
            }
            Action::Stop => {
                self.halt(owner.training, Keeping::Saved);
                self.stop_cost(owner.training, Keeping::Saved)
            }
            Action::Direct { .. } => return,
        };
        self.note(owner.training);
        let tells = self.dice.report_delay();
        self.agenda.add(self.now + takes, Happening::StepEnds { step, tells });
    }

    /// Puts a member on its nodes, if they are there and have room: they must, by the engine's own word.
    fn settle(&mut self, step: &Step, owner: Owner, to: &Arc<Assignment>) -> Result<(), Failure> {
        if to.nodes().any(|node| self.gone[node]) {
            return Err(Failure::NodeGone);
        }
        if let Some(node) = to.nodes().find(|node| self.spoilt[*node]) {
            let of = self.arrivals[owner.training].spec.name.clone();
            self.tell(Event::MemberFailed { node, of });
            return Err(Failure::Other);
        }
        let spec = &self.arrivals[owner.training].spec;
        let most = spec.roles.iter().map(|role| role.gang.max()).sum();
        let whole = if self.split { 1..=1 } else { spec.members()..=most };
        if !whole.contains(&to.members()) {
            self.violations.push(format!(
                "{} was to run with {} of {whole:?} members",
                spec.name,
                to.members()
            ));
        }
        self.enter(step, owner, to);
        Ok(())
    }

    fn enter(&mut self, step: &Step, owner: Owner, to: &Arc<Assignment>) {
        for node in self.books.enter(&self.scenario.cluster, to) {
            self.violations.push(format!("step {:?} oversubscribed {node:?} at {:?}", step.id, self.now));
        }
        self.trainings[owner.training].members[owner.member].on.push(to.clone());
    }

    pub(super) fn step_ends(&mut self, step: &Step, tells: Option<Duration>) {
        let owner = self.owners[step.job];
        // Whatever came after it sees to what it left behind.
        if step.id < owner.newest || self.trainings[owner.training].is_over() {
            return;
        }
        match &step.action {
            Action::Start(to) => {
                self.trainings[owner.training].members[owner.member].up = true;
                self.trainings[owner.training].nodes = to.nodes().len() as u32;
                self.train_if_complete(owner.training);
            }
            Action::Move { from, to } | Action::Rescale { from, to } | Action::ResizeInPlace { from, to } => {
                self.clear(owner, |on| Arc::ptr_eq(on, from) || on == from);
                if !matches!(step.action, Action::Move { .. }) && from.covers(to) {
                    self.enter(step, owner, to);
                }
                let training = &mut self.trainings[owner.training];
                training.nodes = to.nodes().len() as u32;
                match step.action {
                    Action::Move { .. } => training.moves += 1,
                    Action::ResizeInPlace { .. } => training.resizes_in_place += 1,
                    _ => training.resizes += 1,
                }
                self.tell_work(owner.training);
                self.train_if_complete(owner.training);
            }
            Action::Direct { .. } => {}
            Action::Preempt { .. } | Action::Suspend | Action::Stop => {
                self.clear(owner, |_| true);
                let training = &mut self.trainings[owner.training];
                training.members[owner.member].up = false;
                training.preemptions += u32::from(matches!(step.action, Action::Preempt { .. }));
                self.tell_work(owner.training);
            }
        }
        self.note(owner.training);
        if let Some(delay) = tells {
            let done = Event::StepDone { job: step.job, step: step.id };
            self.agenda.add(self.now + delay, Happening::IsTold(done));
        }
    }

    /// The engine may have counted on more or less work than was done and saved.
    pub(super) fn tell_work(&mut self, index: usize) {
        let executed = self.trainings[index].executed(self.now);
        let jobs: Vec<JobId> = self.trainings[index].members.iter().filter_map(|member| member.job).collect();
        for job in jobs {
            self.engine.observe(self.now, Event::Worked { job, executed });
        }
    }

    /// Takes a member off those of its nodes that `which` names.
    pub(super) fn clear(&mut self, owner: Owner, which: impl Fn(&Arc<Assignment>) -> bool) {
        let on = &mut self.trainings[owner.training].members[owner.member].on;
        let (leaves, stays): (Vec<_>, Vec<_>) = std::mem::take(on).into_iter().partition(which);
        *on = stays;
        for assignment in leaves {
            self.books.strike(&assignment);
        }
    }

    /// What another place or size costs: nothing where the job goes on meanwhile.
    fn change_cost(&self, index: usize, action: &Action) -> Duration {
        match action {
            Action::ResizeInPlace { .. } => Duration::ZERO,
            _ => self.stop_cost(index, Keeping::All) + self.start_cost(index),
        }
    }

    fn start_cost(&self, index: usize) -> Duration {
        let training = &self.trainings[index];
        let restart = training.checkpointing.filter(|_| training.goes_on()).map(|costs| costs.restart);
        self.scenario.costs.start + restart.unwrap_or_default()
    }

    fn stop_cost(&self, index: usize, keeping: Keeping) -> Duration {
        let save =
            self.trainings[index].checkpointing.filter(|_| keeping == Keeping::All).map(|costs| costs.takes);
        self.scenario.costs.stop + save.unwrap_or_default()
    }
}
