//! Assignment of jobs to components as jobs start and stop and time advances.

use crate::model::id::LinkId;
use crate::model::units::Instant;
use std::collections::BTreeMap;

use super::component::Component;
use super::pattern::NEVER;
use super::running::{LoopPhase, RunningLoop};
use super::sharing::Contention;
use super::{ComponentIndex, Network};

impl Network {
    /// Advances to `now`. Completions on the way are kept for [`Network::run_until`].
    pub(super) fn advance_to(&mut self, now: Instant) {
        while self.advance_next(now.0) {}
        self.now = self.now.max(now.0);
    }

    /// Advances the component with the earliest event if that is at or before `goal`; returns whether there was one.
    pub(super) fn advance_next(&mut self, goal: u64) -> bool {
        match self.wakes.first().copied() {
            Some((wake, index)) if wake <= goal && wake != NEVER => {
                self.advance_component(index, wake);
                true
            }
            _ => false,
        }
    }

    /// Advances a component to `goal`, or to the first completion of one of its jobs.
    fn advance_component(&mut self, index: ComponentIndex, goal: u64) {
        let component = self.components[index].as_mut().expect("a component that is due is here");
        self.wakes.remove(&(component.wake(), index));
        let completed = component.advance(goal, &mut self.totals);
        self.wakes.insert((component.wake(), index));
        if let Some(at) = completed {
            self.remove_completed(index, at);
        }
    }

    /// Removes the completed jobs of a component; the other jobs stay together or form several components.
    fn remove_completed(&mut self, index: ComponentIndex, at: u64) {
        let jobs = self.remove(index);
        let (completed, stay): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.phase == LoopPhase::Completed);
        for mut job in completed {
            self.totals.add_sent(&mut job);
            self.jobs.remove(&job.key);
            self.completed.insert((at, job.key), job.progress(at));
        }
        self.group_into_components(stay, at);
    }

    /// Removes a component and returns its jobs in their state now. No job of it is completed: that completion would
    /// have been an earlier event.
    pub(super) fn dissolve(&mut self, index: ComponentIndex) -> Vec<RunningLoop> {
        self.advance_to_now(index);
        self.remove(index)
    }

    fn advance_to_now(&mut self, index: ComponentIndex) {
        self.advance_component(index, self.now);
    }

    /// Advances every component to now.
    pub(super) fn advance_all(&mut self) {
        for index in 0..self.components.len() {
            if self.components[index].is_some() {
                self.advance_to_now(index);
            }
        }
    }

    /// A running job, advanced to now.
    pub(super) fn job(&mut self, key: usize) -> &RunningLoop {
        let index = self.jobs[&key];
        self.advance_to_now(index);
        let component = self.components[index].as_ref().expect("a running job has a component");
        component.jobs.iter().find(|job| job.key == key).expect("a running job is in its component")
    }

    /// Changes one running job and regroups the jobs of its component. Does nothing if no job has the key.
    pub(super) fn change_job(&mut self, now: Instant, key: usize, change: impl FnOnce(&mut RunningLoop)) {
        self.advance_to(now);
        let Some(index) = self.jobs.get(&key) else { return };
        let mut jobs = self.dissolve(*index);
        change(jobs.iter_mut().find(|job| job.key == key).expect("a running job is in its component"));
        self.group_into_components(jobs, self.now);
    }

    /// Groups jobs into components by the links that they share.
    pub(super) fn group_into_components(&mut self, mut jobs: Vec<RunningLoop>, now: u64) {
        jobs.sort_unstable_by_key(|job| job.key);
        let groups = match self.sharing.contention {
            Contention::Shared => groups(&jobs),
            Contention::None => (0..jobs.len()).collect(),
        };
        let mut members: BTreeMap<usize, Vec<RunningLoop>> = BTreeMap::new();
        for (group, job) in groups.into_iter().zip(jobs) {
            members.entry(group).or_default().push(job);
        }
        for jobs in members.into_values() {
            self.insert(jobs, now);
        }
    }

    fn insert(&mut self, jobs: Vec<RunningLoop>, now: u64) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.components.push(None);
            self.components.len() - 1
        });
        self.jobs.extend(jobs.iter().map(|job| (job.key, index)));
        let capacity = |link| self.capacity[link];
        let component = Component::new(jobs, now, self.sharing.floor, capacity, &mut self.totals);
        self.set_owner(component.links(), Some(index));
        self.wakes.insert((component.wake(), index));
        self.components[index] = Some(component);
    }

    fn remove(&mut self, index: ComponentIndex) -> Vec<RunningLoop> {
        let component = self.components[index].take().expect("a component that is here");
        self.wakes.remove(&(component.wake(), index));
        self.set_owner(component.links(), None);
        self.free.push(index);
        component.jobs
    }

    /// Records the component of links. With [`Contention::None`] links have none.
    fn set_owner(&mut self, links: &[LinkId], owner: Option<ComponentIndex>) {
        if self.sharing.contention == Contention::Shared {
            for link in links {
                self.owners[*link] = owner;
            }
        }
    }
}

/// For each job the index of the first job with which it shares links, directly or through other jobs (union-find).
fn groups(jobs: &[RunningLoop]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..jobs.len()).collect();
    let mut users: BTreeMap<LinkId, usize> = BTreeMap::new();
    for (job, running) in jobs.iter().enumerate() {
        for (link, _) in running.links() {
            let other = *users.entry(*link).or_insert(job);
            let (mine, theirs) = (root(&groups, job), root(&groups, other));
            groups[mine.max(theirs)] = mine.min(theirs);
        }
    }
    (0..jobs.len()).map(|job| root(&groups, job)).collect()
}

/// Representative of a group: it points to itself, every other job points to an earlier one.
fn root(groups: &[usize], mut job: usize) -> usize {
    while groups[job] != job {
        job = groups[job];
    }
    job
}
