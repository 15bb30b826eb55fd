//! Recovery: a scheduler that was killed left a state file, and a later one goes on from it.
//!
//! The state file and the machine disagree by at most what the killed scheduler did since it last wrote the file:
//! [`fault`](crate::fault) lists what that can be. Members that the file does not list are removed. A gang of which every
//! piece is there is adopted. A gang of which a piece is missing, or which was on its way out, leaves, and its job is
//! placed again and restarts from its checkpoint. An error in one of them concerns that job alone.

use std::sync::Arc;

use metronome_core::model::plan::Assignment;

use super::book::{Book, Entry, Seated};
use super::course::{Course, Doing, Seat, Then, Up};
use super::{Told, World};
use crate::cgroup::Group;
use crate::cleanup::clean_but_folder;
use crate::error::Result;
use crate::fault::{self, FaultPoint};
use crate::hosts::Hosts;
use crate::names::MemberNumber;
use crate::process::{Member, Status};

impl World<'_> {
    pub(super) fn recover(&mut self, book: &Book) -> Result<()> {
        self.mishaps_over = book.mishaps_over;
        for (course, entry) in self.courses.iter_mut().zip(&book.entries) {
            *course = Course::of(entry);
        }
        self.recover_hosts(book)?;
        fault::after(FaultPoint::HostsAdopted);
        self.remove_strays(book);
        fault::after(FaultPoint::StraysRemoved);
        self.inject_past_faults();
        let adopted =
            book.entries.iter().enumerate().filter(|(index, entry)| self.recover_job(*index, entry));
        let jobs = adopted.count();
        self.let_broken_gangs_leave();
        (self.tell)(Told::Adopted { jobs });
        self.start_agent()
    }

    /// Adopts the hosts, or makes them again: where they were never finished no member can have run on them, and where the
    /// machine has lost one since, all jobs restart from their checkpoints.
    fn recover_hosts(&mut self, book: &Book) -> Result<()> {
        if !self.rights.network {
            return Ok(());
        }
        let seats = book.entries.iter().flat_map(|entry| &entry.seats);
        let plugged: Vec<_> = seats.map(|seat| (seat.number, seat.node)).collect();
        if book.hosts_made {
            match Hosts::adopt(&self.folder, &self.setup.cluster, self.setup.scale, &plugged) {
                Ok(hosts) => {
                    self.hosts = Some(hosts);
                    return Ok(());
                }
                Err(error) => {
                    let what = format!("cannot {error}; all hosts are made again");
                    (self.tell)(Told::Trouble { job: None, what: &what });
                }
            }
        }
        clean_but_folder(&self.folder)?;
        let epoch = self.epoch;
        self.make_hosts()?;
        if book.hosts_made {
            // The world began long ago; only its hosts are new.
            self.epoch = epoch;
        }
        Ok(())
    }

    /// Kills and removes members that the state file does not list.
    fn remove_strays(&mut self, book: &Book) {
        let known: Vec<MemberNumber> =
            book.entries.iter().flat_map(|entry| &entry.seats).map(|seat| seat.number).collect();
        let folders = self.folder.members().into_iter();
        let strays: Vec<MemberNumber> =
            folders.chain(self.groups.members()).filter(|number| !known.contains(number)).collect();
        strays.into_iter().for_each(|number| self.discard(number));
        if let Some(Err(error)) = self.hosts.as_ref().map(Hosts::remove_strays) {
            (self.tell)(Told::Trouble { job: None, what: &format!("cannot {error}") });
        }
    }

    /// A new engine and adopted hosts know nothing of the faults that were injected before.
    fn inject_past_faults(&mut self) {
        let now = self.now();
        for past in 0..self.mishaps_over {
            let (_, mishap) = self.setup.mishaps[past];
            self.inject(now, mishap);
        }
    }

    /// Whether the job runs on, with all its members.
    fn recover_job(&mut self, index: usize, entry: &Entry) -> bool {
        let now = self.now();
        let mut seats = self.adopt_members(&entry.seats);
        let is_missing = seats.len() < entry.seats.len();
        if let Some(fate) = entry.fate {
            self.courses[index].tally.ended.get_or_insert(now);
            self.courses[index].end_recorded = true;
            if !seats.is_empty() {
                self.courses[index].leaves(seats, Then::End(fate), now);
            }
            return false;
        }
        if self.courses[index].tally.submitted.is_none() {
            return false;
        }
        let spec = self.setup.jobs[index].spec.clone();
        let held = Assignment::whole(&spec, entry.parts.clone()).ok().map(Arc::new);
        let is_whole = !is_missing && !entry.leaves && seats.iter_mut().all(|seat| self.is_intact(seat));
        let adopted = match held.filter(|_| is_whole) {
            Some(held) => {
                let since = self.courses[index].tally.started.unwrap_or(now);
                let id = self.engine.found(now, spec, held.parts().to_vec(), since);
                self.courses[index].id = Some(id);
                self.courses[index].doing = match seats.is_empty() {
                    true => Doing::Pausing { held, until: now },
                    false => Doing::Up(Up { held, seats, step: None }),
                };
                true
            }
            None => {
                self.courses[index].leaves(seats, Then::Done(None), now);
                self.leave(index, Then::Done(None), false);
                false
            }
        };
        fault::after(FaultPoint::JobAdopted);
        adopted
    }

    /// Members of a gang that is not adopted still use cores and memory that the engine takes for free: it decides only
    /// when they are gone. Their jobs are submitted again then.
    fn let_broken_gangs_leave(&mut self) {
        let is_leaving = |course: &Course| matches!(course.doing, Doing::Leaving { .. });
        while self.courses.iter().any(is_leaving) {
            for index in 0..self.courses.len() {
                if is_leaving(&self.courses[index]) {
                    self.look_at_members_of(index);
                }
            }
            std::thread::sleep(super::TICK);
        }
    }

    /// The members that can be adopted; the others are removed.
    fn adopt_members(&mut self, seated: &[Seated]) -> Vec<Seat> {
        let mut seats = Vec::new();
        for Seated { number, node, role, index } in seated.iter().copied() {
            let group = self.groups.find(number);
            // An agent that has ended meanwhile may have frozen it.
            let _ = group.thaw();
            let folder = self.folder.member(number);
            match folder.and_then(|folder| Member::adopt(&folder, Some(group))) {
                Ok(member) => seats.push(Seat { number, node, role, index, member }),
                Err(_) => self.discard(number),
            }
        }
        seats
    }

    /// Whether a member runs with all that it needs, or has ended by itself.
    fn is_intact(&self, seat: &mut Seat) -> bool {
        if seat.member.was_asked() {
            return false;
        }
        match seat.member.status() {
            Ok(Status::Ended(_)) => true,
            Ok(Status::Lost) | Err(_) => false,
            Ok(Status::Starting | Status::Running { .. }) => {
                let has_network =
                    self.hosts.as_ref().is_none_or(|hosts| hosts.plugged(seat.number).is_some());
                has_network && seat.member.group().is_none_or(Group::is_whole)
            }
        }
    }
}

impl Course {
    fn of(entry: &Entry) -> Self {
        Self {
            doing: entry.fate.map_or(Doing::Out, Doing::Over),
            tally: entry.tally.clone(),
            ..Self::default()
        }
    }
}
