//! Cores that a job has and does not use.
//!
//! A job that uses less than [`ModelTuning::idle_cores_below`] of its cores for [`ModelTuning::min_idle_time`] needs its
//! peak usage in that time plus a margin ([`ModelTuning::needed_cores_usage`]). This holds until the job uses
//! [`ModelTuning::busy_cores_from`] of its cores. The gap between both thresholds is hysteresis.

use serde::{Deserialize, Serialize};

use super::{Job, Life};
use crate::model::units::{Cpu, Instant, Share};
use crate::observe::progress::Sample;
use crate::tuning::ModelTuning;

/// Estimate of the cores that a job needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Idle {
    /// Start of the present idle interval, and the peak usage in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lull: Option<(Instant, Share)>,
    /// Members that the job needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enough: Option<u32>,
}

/// Usage of cores in an interval with a constant number of members.
#[derive(Clone, Copy, Debug)]
struct CoreUsage {
    from: Instant,
    to: Instant,
    members: u32,
    used: Share,
}

impl Idle {
    /// Whether the value is the default, which serde omits.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Members that the job needs, if fewer than it had.
    pub fn enough(&self) -> Option<u32> {
        self.enough
    }

    /// Updates the estimate.
    fn record(&mut self, usage: CoreUsage, tuning: &ModelTuning) {
        if usage.used >= tuning.idle_cores_below {
            self.lull = None;
            self.enough = self.enough.filter(|_| usage.used < tuning.busy_cores_from);
            return;
        }
        let (since, most) = self.lull.unwrap_or((usage.from, Share::NONE));
        let most = most.max(usage.used);
        self.lull = Some((since, most));
        if usage.to.since(since) >= tuning.min_idle_time {
            let members = u64::from(usage.members) * u64::from(most.0);
            let enough = members.div_ceil(u64::from(tuning.needed_cores_usage.0)).max(1);
            self.enough = u32::try_from(enough).ok();
        }
    }
}

impl Job {
    /// Records the usage since the report before. Returns whether the number of needed members changed.
    pub(crate) fn record_core_usage(&mut self, before: Option<Sample>, tuning: &ModelTuning) -> bool {
        let Some(usage) = self.core_usage(before) else { return false };
        let enough = self.idle.enough;
        self.idle.record(usage, tuning);
        enough != self.idle.enough
    }

    /// Restarts the idle interval after a change of size: usage at the former size says nothing about the new one.
    pub(crate) fn restart_idle_interval(&mut self) {
        self.idle.lull = None;
    }

    /// Usage between two reports. `None` for jobs with GPUs, whose cores serve the GPUs, and for jobs that share
    /// cores.
    fn core_usage(&self, before: Option<Sample>) -> Option<CoreUsage> {
        let (before, latest) = (before?, self.progress.latest?);
        let Life::Running(held) = &self.life else { return None };
        let (total, members) = (held.total(), self.elastic_members(held));
        let since = self.runs_since.filter(|since| *since <= before.at)?;
        let counts = total.gpus.is_zero() && self.spec.work.cpu.is_none() && members > 0;
        let (from, to) = (before.at.max(since), latest.at);
        let used = latest.used? - before.used?;
        let had = Cpu::cores(1).0.max(1);
        let had = u128::from(to.since(from).0) * u128::from(total.cpu.0) / u128::from(had);
        let had = u64::try_from(had).ok().filter(|had| *had > 0 && counts)?;
        Some(CoreUsage { from, to, members, used: Share::ratio(used.0, had) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(from: u64, members: u32, used: u32) -> CoreUsage {
        let at = |minutes: u64| Instant::from_secs(60 * minutes);
        CoreUsage { from: at(from), to: at(from + 1), members, used: Share(used) }
    }

    #[test]
    fn a_job_that_uses_half_its_cores_for_two_minutes_needs_little_more() {
        let mut idle = Idle::default();
        idle.record(minute(0, 8, 400_000), &ModelTuning::DEFAULT);
        assert_eq!(idle.enough(), None);
        idle.record(minute(1, 8, 450_000), &ModelTuning::DEFAULT);
        assert_eq!(idle.enough(), Some(4));
        // Nine tenths of four members: no change.
        idle.record(minute(2, 4, 900_000), &ModelTuning::DEFAULT);
        assert_eq!(idle.enough(), Some(4));
    }

    #[test]
    fn a_job_that_uses_nearly_all_its_cores_may_need_more() {
        let mut idle = Idle { lull: None, enough: Some(4) };
        idle.record(minute(0, 4, 960_000), &ModelTuning::DEFAULT);
        assert_eq!(idle.enough(), None);
    }

    #[test]
    fn a_short_idle_interval_does_not_count() {
        let mut idle = Idle::default();
        for (from, used) in [(0, 100_000), (1, 850_000), (2, 100_000)] {
            idle.record(minute(from, 8, used), &ModelTuning::DEFAULT);
        }
        assert_eq!(idle.enough(), None);
    }
}
