//! A recorded prediction: the bytes that flows send on one link while the network is run ahead.
//!
//! This is the run from which slowdowns are predicted, with the same starts and the same varying compute times. Recording
//! begins in the middle of the run, when phases have settled.

use crate::model::id::LinkId;
use crate::model::units::{Bandwidth, Duration, Instant};
use crate::network::{LinkTransmission, Network};
use crate::traffic::TrafficPolicy;
use crate::traffic::contention_graph::Flow;

use super::{Effort, Meeting};
use crate::tuning::TrafficTuning;

/// A link to record, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    pub link: LinkId,
    pub span: Duration,
}

/// The recorded bytes of all flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearsal {
    pub from: Instant,
    /// In the order of the question.
    pub flows: Vec<Rehearsed>,
}

/// The iterations and recorded bytes of one flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rehearsed {
    /// The mean time of an iteration over the whole run.
    pub mean: Duration,
    /// The bytes that it put on the link during the recording, in order of time.
    pub sent: Vec<LinkTransmission>,
}

/// Runs flows ahead, each in its traffic policy. The recording of a link that no two flows share is empty.
pub fn rehearse(
    tuning: &TrafficTuning,
    flows: &[(&Flow, TrafficPolicy)],
    rate: impl Fn(LinkId) -> Bandwidth,
    watched: Watched,
) -> Rehearsal {
    let meeting = Meeting::of(tuning, flows, Effort::once(tuning), rate);
    let horizon = meeting.after(meeting.iterations().unwrap_or(tuning.min_prediction_iterations));
    let from = Instant(horizon.0 / 2);
    let mut network = meeting.network(0);
    network.run_until(from);
    let sent = look(&mut network, meeting.numbers.get(watched.link), from + watched.span);
    network.run_until(horizon.max(from + watched.span));
    let mut found = vec![Rehearsed::default(); flows.len()];
    for (key, (place, flow, _)) in meeting.flows.iter().enumerate() {
        let own =
            sent.iter().filter(|sent| sent.key == key).map(|sent| LinkTransmission { key: *place, ..*sent });
        found[*place] =
            Rehearsed { mean: network.result(key).mean.unwrap_or(flow.alone), sent: own.collect() };
    }
    Rehearsal { from, flows: found }
}

fn look(network: &mut Network, link: Option<LinkId>, until: Instant) -> Vec<LinkTransmission> {
    let Some(link) = link else { return Vec::new() };
    network.watch(link);
    network.run_until(until);
    network.watched()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::units::Bytes;
    use crate::network::{Pattern, Route};
    use crate::traffic::Follows;
    use crate::traffic::slowdown_model::{Care, SlowdownModel};
    use std::sync::Arc;

    const LINK: LinkId = LinkId(3);
    /// One byte a nanosecond.
    const RATE: Bandwidth = Bandwidth(8_000_000_000);

    fn flow(computes: u64, sends: u64) -> Flow {
        let ready = Duration::from_millis(computes);
        let phases = [(Duration(ready.0 - 1), Bytes(sends * 1_000_000))];
        let pattern = Arc::new(Pattern::phases(ready, &phases).unwrap());
        let alone = Duration::from_millis(computes + sends);
        Flow { fingerprint: pattern.fingerprint(), pattern, route: Route::over(&[(LINK, 1.0)]), alone }
    }

    fn in_lanes(flows: &[Flow], traffic: TrafficPolicy) -> Vec<(&Flow, TrafficPolicy)> {
        flows.iter().map(|flow| (flow, traffic)).collect()
    }

    #[test]
    fn a_recorded_run_has_the_predicted_slowdowns() {
        let flows = [flow(40, 30), flow(60, 50), flow(45, 20)];
        let classes = TrafficPolicy { follows: Follows::BytesLeft, ..TrafficPolicy::default() };
        for traffic in [TrafficPolicy::default(), classes] {
            let asked = in_lanes(&flows, traffic);
            let predicted = SlowdownModel::default().slowdowns(&asked, Care::Glance, |_| RATE);
            let span = Duration::from_millis(300);
            let seen = rehearse(&TrafficTuning::DEFAULT, &asked, |_| RATE, Watched { link: LINK, span });
            for ((slowdown, seen), flow) in predicted.iter().zip(&seen.flows).zip(&flows) {
                assert!((slowdown - seen.mean.0 as f64 / flow.alone.0 as f64).abs() < 1e-9, "{slowdown}");
            }
        }
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate() {
        let flows = [flow(40, 30), flow(60, 50), flow(45, 20)];
        let span = Duration::from_millis(300);
        let seen = rehearse(
            &TrafficTuning::DEFAULT,
            &in_lanes(&flows, TrafficPolicy::default()),
            |_| RATE,
            Watched { link: LINK, span },
        );
        let all = || seen.flows.iter().flat_map(|flow| &flow.sent);
        assert!(all().all(|sent| sent.from >= seen.from && sent.to <= seen.from + span));
        for moment in all().map(|sent| sent.from) {
            let sending = all().filter(|sent| sent.from <= moment && moment < sent.to);
            let rate: f64 = sending.map(|sent| sent.bytes / sent.to.since(sent.from).0 as f64).sum();
            assert!(rate < 1.0 + 1e-6, "{rate} bytes a nanosecond");
        }
        assert!(all().map(|sent| sent.bytes).sum::<f64>() > 0.6 * span.0 as f64);
    }

    #[test]
    fn a_link_that_no_flow_crosses_carries_nothing() {
        let flows = [flow(40, 30), flow(60, 50)];
        let elsewhere = Watched { link: LinkId(9), span: Duration::from_millis(300) };
        let seen = rehearse(
            &TrafficTuning::DEFAULT,
            &in_lanes(&flows, TrafficPolicy::default()),
            |_| RATE,
            elsewhere,
        );
        assert!(seen.flows.iter().all(|flow| flow.sent.is_empty() && !flow.mean.is_zero()));
    }
}
