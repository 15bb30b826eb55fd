//! The removal of what a member has: network, control group, folder. Each can be called again after an error or a crash.

use super::course::Seat;
use super::{Told, World};
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::MemberNumber;
use crate::process::{Member, Status};

impl World<'_> {
    /// Removes what a member has, once it has ended. Its log stays with its job. After an error it is called again: what
    /// is gone already is skipped.
    pub(super) fn clear(&mut self, seat: &mut Seat) -> Result<()> {
        if matches!(seat.member.status()?, Status::Starting | Status::Running { .. }) {
            seat.member.kill()?;
        }
        self.remove_pieces(seat.number)
    }

    /// Removes network, control group and folder of a number. A process that left its session ends with the group.
    fn remove_pieces(&mut self, number: MemberNumber) -> Result<()> {
        if let Some(hosts) = &mut self.hosts {
            hosts.unplug(number)?;
        }
        self.groups.find(number).remove()?;
        fault::after(FaultPoint::GroupRemoved);
        self.folder.forget(number)?;
        fault::after(FaultPoint::MemberFolderRemoved);
        Ok(())
    }

    /// Kills and removes whatever there is of a number that belongs to no job.
    pub(super) fn discard(&mut self, number: MemberNumber) {
        let group = self.groups.find(number);
        let folder = self.folder.member(number);
        let ended = folder.and_then(|folder| Member::adopt(&folder, Some(group))?.kill());
        if let Err(error) = ended.and_then(|()| self.remove_pieces(number)) {
            self.abandon(number, &error);
        }
    }

    /// The number is not used again: something of it is left.
    pub(super) fn abandon(&mut self, number: MemberNumber, error: &LocalError) {
        let what = format!("cannot {error}; `metronome local clean` tries again when the world has ended");
        (self.tell)(Told::Trouble { job: None, what: &what });
        self.abandoned.insert(number);
    }

    /// Members on a host that has vanished are gone with it.
    pub(super) fn lose(&mut self, lost: &[MemberNumber]) {
        for course in &mut self.courses {
            for seat in course.seats_mut().iter_mut().filter(|seat| lost.contains(&seat.number)) {
                if let Err(error) = seat.member.kill() {
                    (self.tell)(Told::Trouble { job: None, what: &format!("cannot {error}") });
                }
            }
        }
    }
}
