//! Which jobs form which component, as jobs come and go and time goes on.

use crate::model::id::LinkId;
use crate::model::units::Instant;
use std::collections::BTreeMap;

use super::component::Component;
use super::pattern::NEVER;
use super::running::{Doing, Running};
use super::sharing::Contention;
use super::{Network, Slot};

impl Network {
    /// Time goes on to `now` without anyone asking who was over before: that is remembered.
    pub(super) fn reach(&mut self, now: Instant) {
        while self.wake_first(now.0) {}
        self.now = self.now.max(now.0);
    }

    /// Moves on the component that is due first, if that is not after `goal`.
    pub(super) fn wake_first(&mut self, goal: u64) -> bool {
        match self.wakes.first().copied() {
            Some((wake, slot)) if wake <= goal && wake != NEVER => {
                self.move_on(slot, wake);
                true
            }
            _ => false,
        }
    }

    /// Moves a component on to `goal`, or to the first end of one of its jobs.
    fn move_on(&mut self, slot: Slot, goal: u64) {
        let component = self.components[slot].as_mut().expect("a component that is due is here");
        self.wakes.remove(&(component.wake(), slot));
        let over = component.advance(goal, &mut self.ledger);
        self.wakes.insert((component.wake(), slot));
        if let Some(at) = over {
            self.part_with(slot, at);
        }
    }

    /// Jobs of a component are over: what is left of it stays together or falls apart.
    fn part_with(&mut self, slot: Slot, at: u64) {
        let jobs = self.remove(slot);
        let (over, stay): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.doing == Doing::Over);
        for mut job in over {
            self.ledger.book(&mut job);
            self.jobs.remove(&job.key);
            self.over.insert((at, job.key), job.result(at));
        }
        self.put_together(stay, at);
    }

    /// The jobs of a component as they stand now. None of them is over: it would have been due.
    pub(super) fn take_apart(&mut self, slot: Slot) -> Vec<Running> {
        self.settle(slot);
        self.remove(slot)
    }

    fn settle(&mut self, slot: Slot) {
        self.move_on(slot, self.now);
    }

    pub(super) fn settle_all(&mut self) {
        for slot in 0..self.components.len() {
            if self.components[slot].is_some() {
                self.settle(slot);
            }
        }
    }

    pub(super) fn job(&mut self, key: usize) -> &Running {
        let slot = self.jobs[&key];
        self.settle(slot);
        let component = self.components[slot].as_ref().expect("a running job has a component");
        component.jobs.iter().find(|job| job.key == key).expect("a running job is in its component")
    }

    pub(super) fn change(&mut self, now: Instant, key: usize, change: impl FnOnce(&mut Running)) {
        self.reach(now);
        let Some(slot) = self.jobs.get(&key) else { return };
        let mut jobs = self.take_apart(*slot);
        change(jobs.iter_mut().find(|job| job.key == key).expect("a running job is in its component"));
        self.put_together(jobs, self.now);
    }

    /// Makes components of jobs that may share links.
    pub(super) fn put_together(&mut self, mut jobs: Vec<Running>, now: u64) {
        jobs.sort_unstable_by_key(|job| job.key);
        let groups = match self.sharing.contention {
            Contention::Shared => groups(&jobs),
            Contention::None => (0..jobs.len()).collect(),
        };
        let mut members: BTreeMap<usize, Vec<Running>> = BTreeMap::new();
        for (group, job) in groups.into_iter().zip(jobs) {
            members.entry(group).or_default().push(job);
        }
        for jobs in members.into_values() {
            self.insert(jobs, now);
        }
    }

    fn insert(&mut self, jobs: Vec<Running>, now: u64) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.components.push(None);
            self.components.len() - 1
        });
        self.jobs.extend(jobs.iter().map(|job| (job.key, slot)));
        let capacity = |link| self.capacity[link];
        let component = Component::new(jobs, now, self.sharing.floor, capacity, &mut self.ledger);
        self.own(component.links(), Some(slot));
        self.wakes.insert((component.wake(), slot));
        self.components[slot] = Some(component);
    }

    fn remove(&mut self, slot: Slot) -> Vec<Running> {
        let component = self.components[slot].take().expect("a component that is here");
        self.wakes.remove(&(component.wake(), slot));
        self.own(component.links(), None);
        self.free.push(slot);
        component.jobs
    }

    /// Where flows do not contend, a link belongs to nobody.
    fn own(&mut self, links: &[LinkId], owner: Option<Slot>) {
        if self.sharing.contention == Contention::Shared {
            for link in links {
                self.owners[*link] = owner;
            }
        }
    }
}

/// For each job the first one that it shares links with, directly or by way of others.
fn groups(jobs: &[Running]) -> Vec<usize> {
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

/// The head of a group is its own; every other member points to an earlier one.
fn root(groups: &[usize], mut job: usize) -> usize {
    while groups[job] != job {
        job = groups[job];
    }
    job
}
