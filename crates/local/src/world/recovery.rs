//! After a scheduler has ended without saying so: what runs goes on, what was half done is undone.

use std::sync::Arc;

use metronome_core::plan::Assignment;

use super::book::{Book, Entry, Seated};
use super::course::{Course, Doing, Seat, Then, Up};
use super::{Told, World};
use crate::cleanup::clean_but_folder;
use crate::error::Result;
use crate::hosts::Hosts;
use crate::names::MemberNumber;
use crate::process::Member;

impl World<'_> {
    pub(super) fn recover(&mut self, book: &Book) -> Result<()> {
        self.mishaps_over = book.mishaps_over;
        for (course, entry) in self.courses.iter_mut().zip(&book.entries) {
            *course = Course::of(entry);
        }
        if self.rights.network && !self.adopt_hosts(book) {
            // It ended while hosts were being made: nothing can have run on them.
            clean_but_folder(&self.folder)?;
            self.hosts = Some(Hosts::set_up(&self.folder, &self.setup.cluster, self.setup.scale)?);
        }
        self.end_those_nobody_knows(book)?;
        let mut adopted = 0;
        for (index, entry) in book.entries.iter().enumerate() {
            adopted += usize::from(self.take_over(index, entry)?);
        }
        (self.tell)(Told::Adopted { jobs: adopted });
        self.start_agent()
    }

    fn adopt_hosts(&mut self, book: &Book) -> bool {
        let seats = book.entries.iter().flat_map(|entry| &entry.seats);
        let plugged: Vec<_> = seats.map(|seat| (seat.number, seat.node)).collect();
        let hosts = Hosts::adopt(&self.folder, &self.setup.cluster, self.setup.scale, &plugged);
        self.hosts = hosts.ok();
        self.hosts.is_some()
    }

    /// Members that were started and not written down any more.
    fn end_those_nobody_knows(&mut self, book: &Book) -> Result<()> {
        let known: Vec<MemberNumber> =
            book.entries.iter().flat_map(|entry| &entry.seats).map(|seat| seat.number).collect();
        let folders = self.folder.members().into_iter();
        let strays: Vec<MemberNumber> =
            folders.chain(self.groups.members()).filter(|number| !known.contains(number)).collect();
        for number in strays {
            let mut member = Member::adopt(&self.folder.member(number)?, Some(self.groups.find(number)))?;
            member.kill()?;
            self.groups.find(number).remove()?;
            self.folder.forget(number)?;
        }
        self.hosts.as_ref().map_or(Ok(()), Hosts::remove_strays)
    }

    /// Whether the job runs on, with all its members.
    fn take_over(&mut self, index: usize, entry: &Entry) -> Result<bool> {
        let now = self.now();
        let seats = self.seats_of(&entry.seats)?;
        if entry.fate.is_some() {
            seats.into_iter().try_for_each(|seat| self.clear(seat))?;
            return Ok(false);
        }
        if self.courses[index].tally.submitted.is_none() {
            return Ok(false);
        }
        let spec = self.setup.jobs[index].spec.clone();
        let held = Assignment::whole(&spec, entry.parts.clone()).ok().map(Arc::new);
        let is_whole = held.is_some() && !entry.leaves && seats.iter().all(|seat| !seat.member.was_asked());
        match held.filter(|_| is_whole) {
            Some(held) => {
                let since = self.courses[index].tally.started.unwrap_or(now);
                let id = self.engine.found(now, spec, held.parts().to_vec(), since);
                self.courses[index].id = Some(id);
                self.courses[index].doing = match seats.is_empty() {
                    true => Doing::Pausing { held, until: now },
                    false => Doing::Up(Up { held, seats, step: None }),
                };
                Ok(true)
            }
            None => {
                self.finish_leaving(index, seats)?;
                self.courses[index].id = Some(self.engine.submit(now, spec));
                Ok(false)
            }
        }
    }

    /// Who was on its way out goes on its way; nobody else may have its place before.
    fn finish_leaving(&mut self, index: usize, seats: Vec<Seat>) -> Result<()> {
        self.courses[index].doing = Doing::Leaving { seats, then: Then::Done(None), killed_at: self.now() };
        self.leave(index, Then::Done(None), false)?;
        while matches!(self.courses[index].doing, Doing::Leaving { .. }) {
            self.look_at_members_of(index)?;
            std::thread::sleep(super::TICK);
        }
        Ok(())
    }

    fn seats_of(&self, seated: &[Seated]) -> Result<Vec<Seat>> {
        let adopt = |seated: &Seated| {
            let group = Some(self.groups.find(seated.number));
            let member = Member::adopt(&self.folder.member(seated.number)?, group)?;
            let Seated { number, node, role, index } = *seated;
            Ok(Seat { number, node, role, index, member })
        };
        seated.iter().map(adopt).collect()
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
