//! One waiting job that asks for a place.

use crate::model::id::{ClassId, JobId};

/// The first waiting job of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) struct Request {
    pub(in crate::decide) job: JobId,
    pub(in crate::decide) class: ClassId,
}

/// How a waiting job is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) enum Serves {
    /// From free capacity: a job of another class may still take its place in this decision.
    FromFreeCapacity,
    /// By members that elastic gangs give back, or by moving jobs.
    ByRearranging,
    /// By evicting jobs.
    ByEviction,
}
