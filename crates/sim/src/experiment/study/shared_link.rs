//! Loops on one link for a minute, each in its lane.

use std::sync::Arc;

use metronome_core::model::cluster::Keeping;
use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::policy::Links;
use metronome_core::model::units::{Bandwidth, Duration, Instant, Share};
use metronome_core::network::{Network, Pattern, Route, Sharing, Training, alone};
use metronome_core::traffic::choose::{Stake, choose_with};
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::paced_offset::{PacedLoop, Round, paced};
use metronome_core::traffic::phase_solver::harmonise::{Beat, Rhythm, Terms, harmonise};
use metronome_core::traffic::phase_solver::wheel::{Wheel, WheelLoop};
use metronome_core::traffic::slowdown_model::{Care, SlowdownModel};
use metronome_core::traffic::{Follows, TrafficPolicy, Turn};
use metronome_core::tuning::TrafficTuning;
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::noise::Noise;

const LINK: LinkId = LinkId(0);
pub(super) const RATE: Bandwidth = Bandwidth(100_000_000_000);

/// The first fifth of the minute is dropped: where jobs happen to start is soon forgotten, or is what lasts.
const WARM: Instant = Instant::from_secs(12);
const END: Instant = Instant::from_secs(60);

/// Periods that are further from a common circle are not shifted.
const NEAR: Share = Share(65_000);

const STARTS: u128 = 31;

/// A loop that puts so much on the link for each byte of gradient.
pub(super) fn flow(pattern: Pattern, load: f64) -> Flow {
    let route = Route::over(&[(LINK, load)]);
    let alone = alone(&pattern, &route, &IdVec::filled(RATE, 1));
    Flow { fingerprint: pattern.fingerprint(), pattern: Arc::new(pattern), route, alone }
}

/// How long a loop keeps the link busy in an iteration.
pub(super) fn sends(flow: &Flow) -> f64 {
    flow.pattern.bytes() * load(flow) * 8.0 / RATE.0 as f64
}

fn load(flow: &Flow) -> f64 {
    flow.route.links().first().map_or(0.0, |(_, load)| *load)
}

/// What came of it, after the warm-up.
pub(super) struct Ran {
    /// The part of the time in which the link carried something.
    pub(super) utilisation: f64,
    /// Iteration time over alone, for each loop.
    pub(super) slowdowns: Vec<f64>,
}

impl Ran {
    pub(super) fn worst(&self) -> f64 {
        self.slowdowns.iter().copied().fold(0.0, f64::max)
    }

    pub(super) fn mean(&self) -> f64 {
        self.slowdowns.iter().sum::<f64>() / self.slowdowns.len() as f64
    }
}

/// Starts and noise follow from the seed alone, so that lanes are compared on equal terms.
pub(super) fn run(flows: &[Flow], lanes: &[TrafficPolicy], noise: &Noise, seed: u64) -> Ran {
    let mut network = Network::new(&IdVec::filled(RATE, 1), Sharing::default());
    let starts = starts(flows, seed);
    let mut in_time: Vec<usize> = (0..flows.len()).collect();
    in_time.sort_by_key(|key| (starts[*key], *key));
    for key in in_time {
        let Flow { pattern, route, .. } = flows[key].clone();
        let jitter = noise.stream(seed * 8 + key as u64);
        network.start(
            starts[key],
            key,
            Training { pattern, route, iterations: u64::MAX, jitter, traffic: lanes[key] },
        );
    }
    network.run_until(WARM);
    let carried = network.carried()[LINK];
    let begun: Vec<(f64, f64)> = (0..flows.len()).map(|key| ended(&mut network, key, starts[key])).collect();
    network.run_until(END);
    let slowdown = |key: usize| {
        let (end, count) = ended(&mut network, key, starts[key]);
        (end - begun[key].0) / (count - begun[key].1) / flows[key].alone.0 as f64
    };
    let slowdowns = (0..flows.len()).map(slowdown).collect();
    let most = RATE.0 as f64 / 8.0 * END.since(WARM).as_secs_f64();
    Ran { utilisation: (network.carried()[LINK] - carried) / most, slowdowns }
}

fn starts(flows: &[Flow], seed: u64) -> Vec<Instant> {
    let mut dice = Pcg64::new(u128::from(seed), STARTS);
    flows.iter().map(|flow| Instant((flow.alone.0 as f64 * dice.random::<f64>()) as u64)).collect()
}

/// When the last whole iteration by now had ended, and how many there were.
fn ended(network: &mut Network, key: usize, start: Instant) -> (f64, f64) {
    let done = network.result(key);
    let mean = done.mean.map_or(0.0, |mean| mean.0 as f64);
    (start.0 as f64 + mean * done.iterations as f64, done.iterations as f64)
}

/// Whether it is known here what jobs do on links under such a policy.
pub(super) fn can_do(links: Links) -> bool {
    matches!(links, Links::Shared | Links::Weighted | Links::Classes | Links::Shift | Links::Chosen)
}

/// The lanes that a policy gives to loops of equal priority that meet here.
pub(super) fn lanes(links: Links, flows: &[Flow], foresight: &mut SlowdownModel) -> Vec<TrafficPolicy> {
    match links {
        Links::Weighted => {
            vec![TrafficPolicy { follows: Follows::BytesSent, ..TrafficPolicy::default() }; flows.len()]
        }
        Links::Classes => {
            vec![TrafficPolicy { follows: Follows::BytesLeft, ..TrafficPolicy::default() }; flows.len()]
        }
        Links::Shift => shifted(flows),
        Links::Chosen => chosen(flows, foresight),
        _ => vec![TrafficPolicy::default(); flows.len()],
    }
}

/// When in an iteration a loop sends that has the link for itself.
fn sent_alone(flow: &Flow) -> Vec<(Duration, Duration)> {
    flow.pattern.sends(RATE.0 as f64 / 8e9 / load(flow))
}

fn chosen(flows: &[Flow], foresight: &mut SlowdownModel) -> Vec<TrafficPolicy> {
    let stakes = vec![Stake { counts: 1.0, tier: 0, is_first: false }; flows.len()];
    let turns =
        |slowdowns: &[f64]| paced(&TrafficTuning::DEFAULT, &beating(flows, slowdowns), Keeping::Exactly);
    choose_with(&TrafficTuning::DEFAULT, &stakes, turns, |lanes| predicted(flows, lanes, foresight))
}

/// Whether the turns that loops would take on a common circle are proven to be the best; nothing where they have none.
pub(super) fn turns_are_proven(flows: &[Flow], foresight: &mut SlowdownModel) -> Option<bool> {
    let fair = predicted(flows, &vec![TrafficPolicy::default(); flows.len()], foresight);
    Round::of(&TrafficTuning::DEFAULT, &beating(flows, &fair), Keeping::Exactly)
        .map(|round| round.turns.is_proven())
}

fn predicted(flows: &[Flow], lanes: &[TrafficPolicy], foresight: &mut SlowdownModel) -> Vec<f64> {
    let flows: Vec<(&Flow, TrafficPolicy)> = flows.iter().zip(lanes.iter().copied()).collect();
    foresight.slowdowns(&flows, Care::Look, |_| RATE)
}

fn beating(flows: &[Flow], slowdowns: &[f64]) -> Vec<PacedLoop> {
    let beating = |(flow, slowdown): (&Flow, &f64)| PacedLoop {
        period: flow.alone,
        sends: sent_alone(flow),
        links: vec![(LINK, 1.0)],
        tier: 0,
        slowdown: *slowdown,
    };
    flows.iter().zip(slowdowns).map(beating).collect()
}

/// Positions on a circle, one loop after the other; nothing where periods have no circle in common.
fn shifted(flows: &[Flow]) -> Vec<TrafficPolicy> {
    let rhythm =
        |flow: &Flow| Rhythm { period: flow.alone, noise: Duration::ZERO, weight: 1, loss: Share::WHOLE };
    let rhythms: Vec<Rhythm> = flows.iter().map(rhythm).collect();
    let Ok(harmony) = harmonise(&rhythms, &Terms { most: NEAR, cushion: Share::NONE }) else {
        return vec![TrafficPolicy::default(); flows.len()];
    };
    let mut wheel = Wheel::new(harmony.circle);
    let turn = |(flow, beat): (&Flow, &Beat)| {
        let spoke =
            WheelLoop { sends: sent_alone(flow), links: vec![(LINK, 1.0)], appearances: beat.appearances };
        let offset = wheel.best(&spoke);
        wheel.put(&spoke, offset);
        TrafficPolicy {
            turn: Some(Turn { period: beat.period, offset, watch: None }),
            ..TrafficPolicy::default()
        }
    };
    flows.iter().zip(&harmony.beats).map(turn).collect()
}
