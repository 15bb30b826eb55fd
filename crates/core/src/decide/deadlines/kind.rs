//! The kind of resource that a job books.

use crate::deadlines::{CapacityPool, Units};
use crate::model::job::{Eligibility, Job};
use crate::model::units::Resources;

/// The kind of resource that a job books.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// GPUs, and the cores beside them, of nodes on which the job may run.
    Gpus(Eligibility),
    Cores(Eligibility),
    /// Cores of the node of the job.
    CoresInPlace,
}

impl Kind {
    pub(super) fn of(job: &Job) -> Self {
        let spec = &job.spec;
        let on_gpus = spec.roles.iter().find(|role| !role.shape.each.gpus.is_zero());
        match on_gpus {
            Some(role) => Self::Gpus(role.shape.on),
            None if spec.capabilities.resize_in_place => Self::CoresInPlace,
            None => Self::Cores(spec.roles.first().map(|role| role.shape.on).unwrap_or_default()),
        }
    }

    /// The pool of this kind; none where it is that of a node.
    pub(super) fn pool(self) -> Option<CapacityPool> {
        match self {
            Self::Gpus(on) => Some(CapacityPool::Gpus(on)),
            Self::Cores(on) => Some(CapacityPool::Cores(on)),
            Self::CoresInPlace => None,
        }
    }

    /// The units of this kind in an amount of resources.
    pub(super) fn units(self, amount: Resources) -> Units {
        let units = match self {
            Self::Gpus(_) => amount.gpus.0,
            Self::Cores(_) | Self::CoresInPlace => amount.cpu.0,
        };
        Units::try_from(units).unwrap_or(Units::MAX)
    }
}

/// Whether a job without a booking may be stopped for a job with one.
pub(in crate::decide) fn makes_room(job: &Job) -> bool {
    job.spec.capabilities.makes_room() && job.spec.budgets.is_empty()
}
