//! How many members each role gets.
//!
//! A gang is admitted at the least it asks for, whatever room is left. Where the policy gives away what is to spare
//! (`Sizing::Spare`), elastic gangs come to have more in the end (`grow`), and whoever then comes to wait has it back
//! before anybody is stopped for it (`shrink`): an extra member never outranks somebody's least. Those who say how they
//! scale share all that they have beyond their least by what it is worth to each (`share_out`). Who would come to meet others
//! on links grows only where that costs all less than it saves (`on_links`). Who is measured not to use what it has gives that
//! back by itself (`idle`).
//!
//! So that this comes to rest, gangs grow only while nobody waits who might be helped by the room, extras given back
//! included. Then a gang never gives back for who was waiting when it grew, and deciding again finds nothing to do.

mod extras;
mod grow;
mod marginal_gain;
mod on_links;
mod shrink;
mod unused_cores;

pub(super) use extras::Extras;
pub(super) use grow::grow;
pub(super) use on_links::{looks_at, pays};
pub(super) use shrink::Giving;
pub(super) use unused_cores::give_back_what_is_idle;

use crate::model::job::Gang;
use crate::model::units::Duration;

/// A gang is given another size at most once in such a time.
const PAUSE: Duration = Duration(2 * Duration::MINUTE.0);

/// What another size saves is worth more than so many times what it costs.
const TIMES_THE_COST: u64 = 2;

/// How many members a gang gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// The least it asks for.
    Least,
    /// So many, if it may have more than the least.
    Exactly(u32),
}

impl Sizes {
    pub(super) fn of(self, gang: Gang) -> u32 {
        match self {
            Self::Exactly(members) if gang.is_elastic() => members,
            Self::Exactly(_) | Self::Least => gang.min(),
        }
    }
}
