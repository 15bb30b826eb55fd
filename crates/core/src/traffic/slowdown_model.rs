//! The slowdown model: how much slower each of several flows becomes by the others, predicted in closed loop.
//!
//! **Problem.** Jobs that share links slow each other down, and their later bursts shift against each other. How long does an
//! iteration of each job take in the long run, compared with alone? A decision asks this for many sets of jobs, and the
//! answer need not be better than the noise of real iterations.
//!
//! **Solution.** The model runs the network of the simulator ahead for a few iterations of all flows. Starts are spread evenly
//! over the periods and compute times vary a little, so that no flow stays locked in a lucky or unlucky phase. A *glance*
//! does one such run. A *look* does several runs from different starts if the flows are few: the loss of jobs with equal
//! periods depends on their phases, and phases last.
//! A link that only one flow crosses matters only if it is the narrowest of that flow, and equal sets of flows have equal
//! answers on all links. So the model remembers answers by *signature*, which names neither jobs nor links.
//!
//! **Bound.** With too many flows, or with periods that differ too much, the model runs nothing ahead. It then takes each flow
//! to be slowed down by the overload of its busiest link, whatever the traffic policies. Under that estimate no traffic policy
//! beats fair sharing, so a crowd shares fairly. The model leaves out a flow that waits for a link which is down: such a flow
//! takes nothing from others.

mod rehearsal;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::model::cluster::Keeping;
use crate::model::id::{IdVec, LinkId};
use crate::model::units::{Bandwidth, Instant};
use crate::network::{Jitter, LoopProgress, Network, Route, Sharing, Training, bytes_per_nano};
use crate::traffic::contention_graph::Flow;
use crate::traffic::{TrafficPolicy, Turn};
use crate::tuning::TrafficTuning;

pub use rehearsal::{Rehearsal, Rehearsed, Watched, rehearse};

/// The effort of a prediction. Places are compared at a glance, because there are many, and crowds by an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    Estimate,
    Glance,
    Look,
}

/// The number of runs, and the length of each in iterations of the slowest flow, where that is not too much work.
#[derive(Clone, Copy, Debug)]
struct Effort {
    runs: usize,
    iterations: u64,
}

impl Effort {
    fn once(tuning: &TrafficTuning) -> Self {
        Self { runs: 1, iterations: tuning.prediction_iterations }
    }
}

impl Care {
    fn among(self, flows: usize, tuning: &TrafficTuning) -> Effort {
        match self {
            Self::Estimate => Effort { runs: 0, iterations: 0 },
            Self::Look if flows <= tuning.max_jobs_for_close_look => {
                Effort { runs: tuning.close_look_runs, iterations: tuning.close_look_iterations }
            }
            Self::Glance | Self::Look => Effort::once(tuning),
        }
    }
}

/// The number of remembered answers; beyond it the model forgets all. This bounds memory and is no tuning entry: an answer is
/// the same whether it is remembered or predicted again.
const MAX_REMEMBERED_ANSWERS: usize = 4_096;

/// Predicts slowdowns, and remembers its answers.
#[derive(Clone, Debug, Default)]
pub struct SlowdownModel {
    tuning: TrafficTuning,
    known: BTreeMap<Signature, Vec<f64>>,
    keeping: Keeping,
}

/// A set of flows without names: the pattern of each, its load on each link, and the rates of the links.
type Signature = Vec<u64>;

impl SlowdownModel {
    /// A model of links that carry out traffic policies in this way.
    pub fn of(keeping: Keeping, tuning: &TrafficTuning) -> Self {
        Self { keeping, tuning: tuning.clone(), known: BTreeMap::new() }
    }

    /// The slowdown of each flow in its traffic policy: the time of an iteration among the others, over alone.
    pub fn slowdowns(
        &mut self,
        flows: &[(&Flow, TrafficPolicy)],
        care: Care,
        rate: impl Fn(LinkId) -> Bandwidth,
    ) -> Vec<f64> {
        let effort = care.among(flows.len(), &self.tuning);
        let meeting = Meeting { keeping: self.keeping, ..Meeting::of(&self.tuning, flows, effort, rate) };
        if meeting.flows.len() < 2 {
            return vec![1.0; flows.len()];
        }
        if care == Care::Estimate {
            return meeting.by_place(&meeting.estimate(), flows.len());
        }
        let signature = meeting.signature();
        if !self.known.contains_key(&signature) && self.known.len() >= MAX_REMEMBERED_ANSWERS {
            self.known.clear();
        }
        let found = self.known.entry(signature).or_insert_with(|| meeting.look_ahead());
        meeting.by_place(found, flows.len())
    }
}

/// Flows in an order that does not depend on their ids, on links numbered from zero.
struct Meeting<'f> {
    tuning: &'f TrafficTuning,
    /// Each flow with its place in the question.
    flows: Vec<(usize, &'f Flow, TrafficPolicy)>,
    routes: Vec<Vec<(LinkId, f64)>>,
    rates: IdVec<LinkId, Bandwidth>,
    numbers: Numbers,
    effort: Effort,
    keeping: Keeping,
}

/// The numbers of the links that matter, in the order in which flows name them.
struct Numbers {
    /// In order of id.
    links: Vec<LinkId>,
    given: Vec<Option<LinkId>>,
}

impl Numbers {
    fn of(mut links: Vec<LinkId>) -> Self {
        links.sort_unstable();
        links.dedup();
        Self { given: vec![None; links.len()], links }
    }

    fn get(&self, link: LinkId) -> Option<LinkId> {
        self.given[self.links.binary_search(&link).ok()?]
    }

    /// The number of a link; a link without one gets the next.
    fn number(&mut self, link: LinkId, next: impl FnOnce() -> LinkId) -> LinkId {
        let place = self.links.partition_point(|other| *other < link);
        *self.given[place].get_or_insert_with(next)
    }
}

/// The links that several flows cross, in order of id.
fn crossed_again(mut crossed: Vec<LinkId>) -> Vec<LinkId> {
    crossed.sort_unstable();
    let mut again: Vec<LinkId> =
        crossed.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    again.dedup();
    again
}

impl<'f> Meeting<'f> {
    fn of(
        tuning: &'f TrafficTuning,
        asked: &[(&'f Flow, TrafficPolicy)],
        effort: Effort,
        rate: impl Fn(LinkId) -> Bandwidth,
    ) -> Self {
        let mut flows: Vec<(usize, &'f Flow, TrafficPolicy)> =
            asked.iter().enumerate().map(|(place, (flow, traffic))| (place, *flow, *traffic)).collect();
        flows.retain(|(_, flow, _)| !flow.is_stalled());
        flows.sort_by_key(|(place, flow, traffic)| {
            (flow.fingerprint, flow.route.links().len(), *traffic, *place)
        });
        let crossed = flows.iter().flat_map(|(_, flow, _)| flow.route.links()).map(|(link, _)| *link);
        let shared = crossed_again(crossed.collect());
        let telling = |flow: &Flow| -> Vec<(LinkId, f64)> {
            let narrowest = narrowest(&flow.route, &rate);
            let tells = |link: LinkId| Some(link) == narrowest || shared.binary_search(&link).is_ok();
            flow.route.links().iter().filter(|(link, _)| tells(*link)).copied().collect()
        };
        let mut routes: Vec<Vec<(LinkId, f64)>> = flows.iter().map(|(_, flow, _)| telling(flow)).collect();
        let mut rates = IdVec::new();
        let mut numbers = Numbers::of(routes.iter().flatten().map(|(link, _)| *link).collect());
        for (link, _) in routes.iter_mut().flatten() {
            *link = numbers.number(*link, || rates.push(rate(*link)));
        }
        Self { tuning, flows, routes, rates, numbers, effort, keeping: Keeping::Exactly }
    }

    /// The slowdowns in the order of the question; a flow that was left out is not slowed down.
    fn by_place(&self, found: &[f64], asked: usize) -> Vec<f64> {
        let mut slowdowns = vec![1.0; asked];
        for (slowdown, (place, ..)) in found.iter().zip(&self.flows) {
            slowdowns[*place] = *slowdown;
        }
        slowdowns
    }

    fn signature(&self) -> Signature {
        let mut signature: Signature = vec![self.effort.runs as u64];
        signature.extend(self.rates.values().map(|rate| rate.0));
        for ((_, flow, traffic), route) in self.flows.iter().zip(&self.routes) {
            signature.extend([flow.fingerprint, route.len() as u64]);
            signature.extend(signature_of(traffic));
            signature.extend(route.iter().flat_map(|(link, load)| [u64::from(link.0), load.to_bits()]));
        }
        signature
    }

    /// The slowdown of each flow, in the order of `flows`.
    fn look_ahead(&self) -> Vec<f64> {
        match self.iterations() {
            Some(iterations) => self.run_ahead(iterations),
            None => self.estimate(),
        }
    }

    /// An estimate from loads: bytes are spread evenly over each iteration, and an overloaded link slows all its flows alike.
    fn estimate(&self) -> Vec<f64> {
        let mut asked: IdVec<LinkId, f64> = IdVec::filled(0.0, self.rates.len());
        for ((_, flow, _), route) in self.flows.iter().zip(&self.routes) {
            let sends = flow.pattern.bytes() / flow.alone.0.max(1) as f64;
            for (link, load) in route {
                asked[*link] += sends * load / bytes_per_nano(self.rates[*link]);
            }
        }
        let busiest =
            |route: &Vec<(LinkId, f64)>| route.iter().map(|(link, _)| asked[*link]).fold(1.0, f64::max);
        self.routes.iter().map(busiest).collect()
    }

    /// The mean slowdowns over all runs.
    fn run_ahead(&self, iterations: u64) -> Vec<f64> {
        let runs = self.effort.runs;
        let mut slowdowns = vec![0.0; self.flows.len()];
        for run in 0..runs {
            for (slowdown, found) in slowdowns.iter_mut().zip(self.run_from(run, iterations)) {
                *slowdown += found / runs as f64;
            }
        }
        slowdowns
    }

    fn run_from(&self, run: usize, iterations: u64) -> Vec<f64> {
        let mut network = self.network(run);
        let end = self.after(iterations);
        let before = self.warm_up(&mut network, end);
        network.run_until(end);
        let after = self.done(&mut network);
        let mean = |key: usize| mean_since(before[key], after[key]);
        let slowdown = |(key, (_, flow, _)): (usize, &(usize, &Flow, TrafficPolicy))| {
            mean(key).map_or(self.tuning.slowdown_without_iteration, |mean| {
                (mean / flow.alone.0.max(1) as f64).max(1.0)
            })
        };
        self.flows.iter().enumerate().map(slowdown).collect()
    }

    /// The iterations that do not count: a paced flow is held once before its first iteration.
    fn warm_up(&self, network: &mut Network, end: Instant) -> Vec<LoopProgress> {
        if self.flows.iter().all(|(.., traffic)| traffic.pace.is_none()) {
            return vec![LoopProgress { iterations: 0, mean: None }; self.flows.len()];
        }
        network.run_until(Instant(end.0 / 4));
        self.done(network)
    }

    fn done(&self, network: &mut Network) -> Vec<LoopProgress> {
        (0..self.flows.len()).map(|key| network.result(key)).collect()
    }

    /// A network in which every flow starts at its time.
    fn network(&self, run: usize) -> Network {
        let sharing = Sharing { keeping: self.keeping, ..Sharing::default() };
        let mut network = Network::new(&self.rates_in(run), sharing);
        for (start, key) in self.starts(run) {
            network.start(start, key, self.training(key, run));
        }
        network
    }

    /// The rates of the links in a run. Host-shaped links miss their rates by a few percent, and bursts that only just fit
    /// then collide: every other run has links that carry a little less or more.
    fn rates_in(&self, run: usize) -> Cow<'_, IdVec<LinkId, Bandwidth>> {
        let off = match (self.keeping, run % 3) {
            (Keeping::Roughly, 1) => -self.tuning.host_rate_error,
            (Keeping::Roughly, 2) => self.tuning.host_rate_error,
            _ => return Cow::Borrowed(&self.rates),
        };
        let about = |rate: &Bandwidth| Bandwidth((rate.0 as f64 * (1.0 + off)) as u64);
        Cow::Owned(self.rates.values().map(about).collect())
    }

    /// The start of each flow, in order of time. Odd multiples give two flows another distance in every run.
    fn starts(&self, run: usize) -> Vec<(Instant, usize)> {
        let start = |(key, (_, flow, _)): (usize, &(usize, &Flow, TrafficPolicy))| {
            let place = evenly((key + 1) * (2 * run + 1), GOLDEN);
            (Instant((flow.alone.0 as f64 * place) as u64), key)
        };
        let mut starts: Vec<(Instant, usize)> = self.flows.iter().enumerate().map(start).collect();
        starts.sort_unstable();
        starts
    }

    fn training(&self, key: usize, run: usize) -> Training {
        Training {
            pattern: self.flows[key].1.pattern.clone(),
            route: Route::over(&self.routes[key]),
            iterations: u64::MAX,
            jitter: Some(Box::new(Unsteady {
                drawn: key + STREAM * run,
                deviation: self.tuning.predicted_compute_deviation,
            })),
            traffic: self.flows[key].2,
        }
    }

    fn longest(&self) -> u64 {
        self.flows.iter().map(|(_, flow, _)| flow.alone.0.max(1)).max().unwrap_or(1)
    }

    /// The time that the slowest flow alone takes for this many iterations.
    fn after(&self, iterations: u64) -> Instant {
        Instant(self.longest().saturating_mul(iterations))
    }

    /// The length of a run in iterations of the slowest flow; none where that is too much work.
    fn iterations(&self) -> Option<u64> {
        let least = self.tuning.min_prediction_iterations;
        let longest = self.longest();
        let of = |flow: &Flow| (longest / flow.alone.0.max(1)).saturating_add(1);
        let meanwhile = self.flows.iter().map(|(_, flow, _)| of(flow)).fold(0, u64::saturating_add);
        let by_work = self.tuning.max_prediction_work / meanwhile.saturating_mul(self.flows.len() as u64);
        let iterations = (self.tuning.max_prediction_iterations / meanwhile).max(least).min(by_work);
        (iterations >= least).then_some(iterations.min(self.effort.iterations))
    }
}

/// The mean time of the iterations between two moments, in nanoseconds.
fn mean_since(before: LoopProgress, after: LoopProgress) -> Option<f64> {
    let spent = |done: LoopProgress| done.mean.map_or(0.0, |mean| mean.0 as f64 * done.iterations as f64);
    let count = after.iterations - before.iterations;
    (count > 0).then(|| (spent(after) - spent(before)) / count as f64)
}

fn signature_of(traffic: &TrafficPolicy) -> [u64; 7] {
    // A rotation is predicted window by window, never as a whole.
    let TrafficPolicy { class, weight, follows, turn, pace, rotation: _ } = *traffic;
    let place = |turn: Option<Turn>| turn.map_or([0, 0], |turn| [turn.period.0, turn.offset.0]);
    let ([period, offset], [beat, held]) = (place(turn), place(pace.map(|pace| pace.turn)));
    let watch = turn.and_then(|turn| turn.watch);
    let (tolerance, pause) = watch.map_or((0, 0), |watch| (1 + watch.tolerance.0, watch.pause.0));
    let standing = u64::from(class) | (follows as u64) << 8 | u64::from(weight) << 16;
    [standing, period, offset, beat, held, tolerance, pause]
}

/// The link that bounds a flow without contention.
fn narrowest(route: &Route, rate: impl Fn(LinkId) -> Bandwidth) -> Option<LinkId> {
    let time = |(link, load): &&(LinkId, f64)| load / rate(*link).0.max(1) as f64;
    route.links().iter().max_by(|one, other| time(one).total_cmp(&time(other))).map(|(link, _)| *link)
}

/// A fractional part. Those of the multiples of an irrational number lie evenly in the unit interval, for every number of
/// multiples.
fn evenly(count: usize, irrational: f64) -> f64 {
    (count as f64 * irrational).fract()
}

/// Fractions of the golden ratio and of the plastic number: mathematical constants whose multiples lie evenly, and no tuning
/// entries.
const GOLDEN: f64 = 0.618_033_988_749_895;
const PLASTIC: f64 = 0.754_877_666_246_693;

/// Distance between the sequences of two runs. Every other distance serves as well, so this is no tuning entry.
const STREAM: usize = 31;

/// Compute times that vary evenly around the measured time, in an order without pattern.
#[derive(Clone, Debug)]
struct Unsteady {
    drawn: usize,
    deviation: f64,
}

impl Jitter for Unsteady {
    fn draw(&mut self) -> f64 {
        self.drawn += 1;
        1.0 + self.deviation * (2.0 * evenly(self.drawn + 1, PLASTIC) - 1.0)
    }

    fn least(&self) -> f64 {
        1.0 - self.deviation
    }

    fn again(&self) -> Box<dyn Jitter> {
        Box::new(self.clone())
    }
}
