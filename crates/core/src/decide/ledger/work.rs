//! Work budgets: what this decision has looked at so far. Proposers compare these counts with their limits and give up
//! for this decision, so that no decision takes long; counts of things looked at, never milliseconds, keep it a function.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::model::id::JobId;

#[derive(Debug, Default)]
pub(in crate::decide) struct Work {
    /// Waiting jobs that were started.
    pub(in crate::decide) starts: usize,
    /// Waiting jobs for which other jobs were evicted.
    pub(in crate::decide) beneficiaries: usize,
    /// Searches for the time from which a job would fit.
    pub(in crate::decide) reservation_searches: usize,
    /// Searches for members to reclaim that found too few.
    pub(in crate::decide) vain_reclaim_searches: usize,
    /// Searches for victims that found too few.
    pub(in crate::decide) vain_preemption_searches: Cell<usize>,
    /// Places found by preemption that were not worth taking.
    pub(in crate::decide) rejected_places: usize,
    /// Waiting jobs for which defragmentation was searched.
    pub(in crate::decide) defragmented_for: BTreeSet<JobId>,
}
