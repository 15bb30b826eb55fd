//! CPU weights of jobs that share the cores of a node.
//!
//! A weight is relative, not an amount: a job's cores follow from the weights of the other jobs on the node, and
//! every job gets some.

use serde::{Deserialize, Serialize};

use crate::model::units::Share;

/// Weight as in Linux `cpu.weight`: from 1 to 10,000, default 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CpuWeight(u32);

impl CpuWeight {
    pub const USUAL: Self = Self(100);
    pub const MOST: Self = Self(10_000);

    /// Weight between default and maximum in proportion to the confidence.
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
