//! Shifts by an affinity graph: whenever somebody comes or goes, all who meet are shifted anew, and again when they have
//! drifted.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::id::JobId;
use crate::lane::affinity::Affinity;
use crate::lane::circle::Pulse;
use crate::lane::{Lane, Turn, Watch};
use crate::meetings::Flow;
use crate::units::Duration;

/// A job may begin so far from its turn, as a part of its period, before it is held again.
const TOLERATED: u64 = 20;

/// Twice a minute at most, as published.
const PAUSE: Duration = Duration::from_secs(30);

pub(super) fn turns(draft: &Draft<'_>) -> BTreeMap<JobId, Lane> {
    let mut lanes = BTreeMap::new();
    for jobs in draft.meetings.components() {
        let flows: Vec<&Flow> = jobs.iter().filter_map(|job| draft.meetings.flow(*job)).collect();
        let pulses: Vec<Pulse> = flows.iter().map(|flow| draft.meetings.pulse(flow)).collect();
        let shifts = Affinity::of(&pulses).shifts(&pulses);
        let shifted = jobs.iter().zip(flows).zip(shifts);
        lanes.extend(shifted.filter_map(|((job, flow), shift)| Some((*job, watched(flow.alone, shift?)))));
    }
    lanes
}

/// A lane with a turn on the job's own period, to be kept to.
pub(super) fn watched(period: Duration, offset: Duration) -> Lane {
    let watch = Watch { tolerance: Duration(period.0 / TOLERATED), pause: PAUSE };
    Lane { turn: Some(Turn { period, offset, watch: Some(watch) }), ..Lane::default() }
}
