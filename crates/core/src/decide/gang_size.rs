//! How many members each role of a gang gets.

use crate::model::job::Gang;

/// The number of members that a role is placed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GangSize {
    /// The minimum that the role asks for.
    Minimum,
    /// This number where the role is elastic; the minimum elsewhere.
    Exactly(u32),
}

impl GangSize {
    pub(super) fn of(self, gang: Gang) -> u32 {
        match self {
            Self::Exactly(members) if gang.is_elastic() => members,
            Self::Exactly(_) | Self::Minimum => gang.min(),
        }
    }
}
