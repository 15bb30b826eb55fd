//! Shifts by an affinity graph: whenever a job comes or goes, all jobs that meet are shifted anew, and again when they
//! have drifted.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::model::id::JobId;
use crate::model::units::Duration;
use crate::traffic::affinity::Affinity;
use crate::traffic::circle::Pulse;
use crate::traffic::contention_graph::Flow;
use crate::traffic::{TrafficPolicy, Turn, Watch};

pub(super) fn turns(draft: &Draft<'_>) -> BTreeMap<JobId, TrafficPolicy> {
    let mut traffic = BTreeMap::new();
    for jobs in draft.contention.components() {
        let flows: Vec<&Flow> = jobs.iter().filter_map(|job| draft.contention.flow(*job)).collect();
        let pulses: Vec<Pulse> = flows.iter().map(|flow| draft.contention.pulse(flow)).collect();
        let shifts = Affinity::of(&pulses).shifts(&draft.snapshot.tuning.traffic, &pulses);
        let shifted = jobs.iter().zip(flows).zip(shifts);
        traffic.extend(
            shifted.filter_map(|((job, flow), shift)| Some((*job, watched(draft, flow.alone, shift?)))),
        );
    }
    traffic
}

/// A traffic policy with a watched phase offset on the period of the job.
pub(super) fn watched(draft: &Draft<'_>, period: Duration, offset: Duration) -> TrafficPolicy {
    let tuning = &draft.snapshot.tuning.decide;
    let tolerance = Duration(period.0 / tuning.tolerated_drift_part);
    let watch = Watch { tolerance, pause: tuning.min_time_between_adjustments };
    TrafficPolicy { turn: Some(Turn { period, offset, watch: Some(watch) }), ..TrafficPolicy::default() }
}
