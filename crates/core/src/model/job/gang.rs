//! Gang sizes: all members of a role run, or none.

use serde::{Deserialize, Serialize};

/// Number of members of a role: all of them run, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "SerializedGang", into = "SerializedGang")]
pub enum Gang {
    Rigid(Members),
    Elastic {
        min: Members,
        max: Members,
    },
    /// All members have ended; the role needs none.
    Ended,
}

/// A number of members, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Members(std::num::NonZeroU32);

impl Members {
    /// Above the number of nodes of any cluster; a larger count is a mistake.
    pub const MOST: u32 = 1_000_000;

    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

/// Why a gang size is invalid.
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

    /// Whether the size may change.
    pub const fn is_elastic(self) -> bool {
        self.max() > self.min()
    }

    /// Gang after `ended` of its members completed and `left` are still running.
    pub(crate) fn without(self, ended: u32, left: u32) -> Self {
        let (min, max) = (self.min().min(left), self.max().saturating_sub(ended).max(left));
        Self::sized(u64::from(min), u64::from(max)).unwrap_or(Self::Ended)
    }

    fn sized(min: u64, max: u64) -> Result<Self, GangError> {
        if min == max { Self::rigid(min) } else { Self::elastic(min, max) }
    }
}

/// Serialized form of a gang; zero members stand for an ended gang.
#[derive(Serialize, Deserialize)]
struct SerializedGang {
    min: u64,
    max: u64,
}

impl TryFrom<SerializedGang> for Gang {
    type Error = GangError;
    fn try_from(text: SerializedGang) -> Result<Self, GangError> {
        if text.max == 0 { Ok(Self::Ended) } else { Self::sized(text.min, text.max) }
    }
}

impl From<Gang> for SerializedGang {
    fn from(gang: Gang) -> Self {
        Self { min: u64::from(gang.min()), max: u64::from(gang.max()) }
    }
}
