//! How jobs that share the cores of a node stand beside each other there.
//!
//! A weight is a standing, not an amount: what a job gets follows from who else is there, and nobody gets nothing.

use serde::{Deserialize, Serialize};

use crate::model::units::Share;

/// As the kernel counts it: from 1 to 10,000, and 100 unless something else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuWeight(u32);

impl CpuWeight {
    pub const USUAL: Self = Self(100);
    pub const MOST: Self = Self(10_000);

    /// From the usual to the most, the surer the more.
    pub(crate) fn ahead(confidence: Share) -> Self {
        let more =
            u64::from(Self::MOST.0 - Self::USUAL.0) * u64::from(confidence.0) / u64::from(Share::WHOLE.0);
        Self(Self::USUAL.0 + more as u32)
    }

    pub const fn get(self) -> u32 {
        self.0
    }

    pub fn is_default(&self) -> bool {
        *self == Self::USUAL
    }
}

impl Default for CpuWeight {
    fn default() -> Self {
        Self::USUAL
    }
}
