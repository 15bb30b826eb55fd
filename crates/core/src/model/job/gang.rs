//! How many members a role has: all of them or nothing runs.

use serde::{Deserialize, Serialize};

/// How many members a role has: all of them or nothing runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "GangText", into = "GangText")]
pub enum Gang {
    Rigid(Members),
    Elastic {
        min: Members,
        max: Members,
    },
    /// All its members have ended, and it asks for none.
    Ended,
}

/// A number of members, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Members(std::num::NonZeroU32);

impl Members {
    /// More members than any cluster has nodes; above it a count is a mistake.
    pub const MOST: u32 = 1_000_000;

    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GangError {
    #[error("a gang has at least one member")]
    Empty,
    #[error("a gang has at most {most} members, not {0}", most = Members::MOST)]
    TooLarge(u64),
    #[error("the smallest size, {min}, is above the largest, {max}")]
    Inverted { min: u64, max: u64 },
}

impl Gang {
    pub fn rigid(members: u64) -> Result<Self, GangError> {
        Ok(Self::Rigid(Self::members(members)?))
    }

    pub fn elastic(min: u64, max: u64) -> Result<Self, GangError> {
        if min > max {
            return Err(GangError::Inverted { min, max });
        }
        Ok(Self::Elastic { min: Self::members(min)?, max: Self::members(max)? })
    }

    fn members(count: u64) -> Result<Members, GangError> {
        let narrow = u32::try_from(count).ok().filter(|count| *count <= Members::MOST);
        let narrow = narrow.ok_or(GangError::TooLarge(count))?;
        std::num::NonZeroU32::new(narrow).map(Members).ok_or(GangError::Empty)
    }

    pub const fn min(self) -> u32 {
        match self {
            Self::Rigid(members) | Self::Elastic { min: members, .. } => members.get(),
            Self::Ended => 0,
        }
    }

    pub const fn max(self) -> u32 {
        match self {
            Self::Rigid(members) | Self::Elastic { max: members, .. } => members.get(),
            Self::Ended => 0,
        }
    }

    /// Whether it may have more members than it asks for at least.
    pub const fn is_elastic(self) -> bool {
        self.max() > self.min()
    }

    /// The gang once `ended` of its members have, and `left` are still there.
    pub(crate) fn without(self, ended: u32, left: u32) -> Self {
        let (min, max) = (self.min().min(left), self.max().saturating_sub(ended).max(left));
        Self::sized(u64::from(min), u64::from(max)).unwrap_or(Self::Ended)
    }

    fn sized(min: u64, max: u64) -> Result<Self, GangError> {
        if min == max { Self::rigid(min) } else { Self::elastic(min, max) }
    }
}

#[derive(Serialize, Deserialize)]
struct GangText {
    min: u64,
    max: u64,
}

impl TryFrom<GangText> for Gang {
    type Error = GangError;
    fn try_from(text: GangText) -> Result<Self, GangError> {
        if text.max == 0 { Ok(Self::Ended) } else { Self::sized(text.min, text.max) }
    }
}

impl From<Gang> for GangText {
    fn from(gang: Gang) -> Self {
        Self { min: u64::from(gang.min()), max: u64::from(gang.max()) }
    }
}
