//! What is written down of a world, before it is done: all that a later scheduler must know and cannot see.

use metronome_core::model::id::NodeId;
use metronome_core::model::plan::Part;
use metronome_core::model::units::Moment;
use serde::{Deserialize, Serialize};

use super::course::{Doing, Seat, Tally, Then};
use super::outcome::Fate;
use super::{Setup, Told, World};
use crate::error::Result;
use crate::fault::{self, FaultPoint};
use crate::names::MemberNumber;

pub(super) const FILE: &str = "world.json";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Book {
    version: u32,
    /// Nanoseconds since 1970.
    epoch: u64,
    /// What tells this world from another of the same name.
    plan: String,
    /// All hosts and links were made. Until then no member can have run.
    pub(super) hosts_made: bool,
    pub(super) mishaps_over: usize,
    pub(super) entries: Vec<Entry>,
}

/// A job as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    #[serde(flatten)]
    pub(super) tally: Tally,
    pub(super) fate: Option<Fate>,
    /// Where it runs, and its members there.
    pub(super) parts: Vec<Part>,
    pub(super) seats: Vec<Seated>,
    /// They are on their way out.
    pub(super) leaves: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Seated {
    pub(super) number: MemberNumber,
    pub(super) node: NodeId,
    pub(super) role: u8,
    pub(super) index: u32,
}

const VERSION: u32 = 2;

impl Book {
    pub(super) fn epoch(&self) -> Moment {
        Moment(self.epoch)
    }

    /// Whether this is the same world with the same jobs.
    pub(super) fn is_of(&self, setup: &Setup) -> bool {
        self.version == VERSION && self.plan == plan(setup)
    }
}

/// Everything that decides what runs. Jobs and cluster are plain data, which print the same every time.
fn plan(setup: &Setup) -> String {
    let jobs: Vec<String> = setup.jobs.iter().map(|job| format!("{:?} {:?}", job.at, job.spec)).collect();
    let all = format!("{:?} {:?} {:?} {jobs:?}", setup.cluster.nodes(), setup.scale, setup.policy.name);
    let mixed = all.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |mixed, byte| {
        (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{mixed:016x}")
}

impl World<'_> {
    /// If there is something new.
    pub(super) fn write_down(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        self.write_book()?;
        fault::after(FaultPoint::StateWritten);
        // Jobs run without an agent that knows of them.
        let told = self.tell_the_agent();
        self.report_directives(&told);
        if let Err(error) = told {
            (self.tell)(Told::Trouble { job: None, what: &format!("cannot {error}") });
        }
        Ok(())
    }

    pub(super) fn write_book(&self) -> Result<()> {
        let book = Book {
            version: VERSION,
            epoch: self.epoch.0,
            plan: plan(&self.setup),
            hosts_made: self.hosts.is_some(),
            mishaps_over: self.mishaps_over,
            entries: (0..self.courses.len()).map(|index| self.entry(index)).collect(),
        };
        self.folder.write(FILE, &book)
    }

    fn entry(&self, index: usize) -> Entry {
        let course = &self.courses[index];
        let seated =
            |seat: &Seat| Seated { number: seat.number, node: seat.node, role: seat.role, index: seat.index };
        let (held, leaves) = match &course.doing {
            Doing::Up(up) => (Some(&up.held), false),
            Doing::Pausing { held, .. } | Doing::Leaving { then: Then::Again { held, .. }, .. } => {
                (Some(held), false)
            }
            Doing::Leaving { .. } => (None, true),
            Doing::Out | Doing::Over(_) => (None, false),
        };
        Entry {
            tally: course.tally.clone(),
            fate: match &course.doing {
                Doing::Over(fate) | Doing::Leaving { then: Then::End(fate), .. } => Some(*fate),
                _ => None,
            },
            parts: held.map(|held| held.parts().to_vec()).unwrap_or_default(),
            seats: course.seats().iter().map(seated).collect(),
            leaves,
        }
    }
}
