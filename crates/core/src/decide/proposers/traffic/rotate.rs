//! Shifts by an affinity graph: whenever somebody comes or goes, all who meet are shifted anew, and again when they have
//! drifted.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::model::id::JobId;
use crate::model::units::Duration;
use crate::traffic::affinity::Affinity;
use crate::traffic::circle::Pulse;
use crate::traffic::contention_graph::Flow;
use crate::traffic::{TrafficPolicy, Turn, Watch};

/// A job may begin so far from its turn, as a part of its period, before it is held again.
const TOLERATED: u64 = 20;

/// Twice a minute at most, as published.
const PAUSE: Duration = Duration::from_secs(30);

pub(super) fn turns(draft: &Draft<'_>) -> BTreeMap<JobId, TrafficPolicy> {
    let mut traffic = BTreeMap::new();
    for jobs in draft.contention.components() {
        let flows: Vec<&Flow> = jobs.iter().filter_map(|job| draft.contention.flow(*job)).collect();
        let pulses: Vec<Pulse> = flows.iter().map(|flow| draft.contention.pulse(flow)).collect();
        let shifts = Affinity::of(&pulses).shifts(&draft.snapshot.tuning.traffic, &pulses);
        let shifted = jobs.iter().zip(flows).zip(shifts);
        traffic.extend(shifted.filter_map(|((job, flow), shift)| Some((*job, watched(flow.alone, shift?)))));
    }
    traffic
}

/// A traffic policy with a turn on the job's own period, to be kept to.
pub(super) fn watched(period: Duration, offset: Duration) -> TrafficPolicy {
    let watch = Watch { tolerance: Duration(period.0 / TOLERATED), pause: PAUSE };
    TrafficPolicy { turn: Some(Turn { period, offset, watch: Some(watch) }), ..TrafficPolicy::default() }
}
