//! How much slower each of some flows gets by the others: a closed-loop prediction.
//!
//! **Problem.** Jobs that meet on links slow each other down, and what each does next shifts against the others. How
//! long does an iteration of each take in the long run, compared with alone? The answer is wanted for many sets of jobs
//! in one decision, and need not be better than the noise of real iterations.
//!
//! **Solution.** The network that the simulator runs on is run ahead for a few iterations of everybody. Starts are spread
//! evenly over the periods, and compute varies a little, so that nobody stays locked in a lucky or an unlucky place. A
//! *glance* does that once; a *look* several times among few, from other starts each time: what jobs with equal periods
//! lose depends on where they happen to stand, and that lasts.
//! Links that only one flow crosses matter only if they are its narrowest, and equal sets of flows have equal answers, on
//! whatever links they meet: so answers are remembered by *signature*, which names neither jobs nor links.
//!
//! **Bound.** Where there are too many flows, or their periods differ too much, nothing is run ahead: then each is taken
//! to be slowed down as far as its busiest link has more to carry than it can, whatever the traffic policies. As no traffic policies are better
//! than none by that, such a crowd shares fairly. A flow that waits for a link which is down takes nothing from others
//! and is left out.

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

/// How closely is looked. Places are compared at a glance, because there are many, and those in a crowd by an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    Estimate,
    Glance,
    Look,
}

/// How often it is run, and for how many iterations of the slowest, where that is not too much work.
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

/// Answers that are remembered. When there are more, all are forgotten: what is needed again is soon known again.
const MOST_REMEMBERED: usize = 4_096;

/// What is known of sets of flows that were looked at before.
#[derive(Clone, Debug, Default)]
pub struct SlowdownModel {
    tuning: TrafficTuning,
    known: BTreeMap<Signature, Vec<f64>>,
    keeping: Keeping,
}

/// Flows that meet, without their names: what each does and puts on which links, and how much those carry.
type Signature = Vec<u64>;

impl SlowdownModel {
    /// For links that keep what is decided in this way.
    pub fn of(keeping: Keeping, tuning: &TrafficTuning) -> Self {
        Self { keeping, tuning: tuning.clone(), known: BTreeMap::new() }
    }

    /// For each flow in its traffic policy, how long an iteration takes among the others, over alone.
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
        if !self.known.contains_key(&signature) && self.known.len() >= MOST_REMEMBERED {
            self.known.clear();
        }
        let found = self.known.entry(signature).or_insert_with(|| meeting.look_ahead());
        meeting.by_place(found, flows.len())
    }
}

/// Flows in an order that does not depend on who they are, on links numbered from zero.
struct Meeting<'f> {
    tuning: &'f TrafficTuning,
    /// Each with its place among those that were asked about.
    flows: Vec<(usize, &'f Flow, TrafficPolicy)>,
    routes: Vec<Vec<(LinkId, f64)>>,
    rates: IdVec<LinkId, Bandwidth>,
    numbers: Numbers,
    effort: Effort,
    keeping: Keeping,
}

/// The numbers that links have here, of those that matter, in the order in which they come up.
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

    /// The number of one of the links, which gets the next if it has none.
    fn number(&mut self, link: LinkId, next: impl FnOnce() -> LinkId) -> LinkId {
        let place = self.links.partition_point(|other| *other < link);
        *self.given[place].get_or_insert_with(next)
    }
}

/// Links that are crossed more than once, in order of id.
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

    /// What was found, in the order of those that were asked about; who is left out is not slowed down.
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
            signature.extend(words(traffic));
            signature.extend(route.iter().flat_map(|(link, load)| [u64::from(link.0), load.to_bits()]));
        }
        signature
    }

    /// The slowdown of each flow, in the order they have here.
    fn look_ahead(&self) -> Vec<f64> {
        match self.iterations() {
            Some(iterations) => self.run_ahead(iterations),
            None => self.estimate(),
        }
    }

    /// As if what each sends were spread evenly over its iterations, and a link that has too much to carry made them all
    /// slower alike.
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

    /// The mean over all runs.
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

    /// What was done before iterations count: to be held before the first costs once and is not told.
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

    /// A network in which everybody starts at its time.
    fn network(&self, run: usize) -> Network {
        let sharing = Sharing { keeping: self.keeping, ..Sharing::default() };
        let mut network = Network::new(&self.rates_in(run), sharing);
        for (start, key) in self.starts(run) {
            network.start(start, key, self.training(key, run));
        }
        network
    }

    /// Where links are not kept exactly, a plan that only just fits is none: every other look is at links that carry a
    /// little less or more than is said.
    fn rates_in(&self, run: usize) -> Cow<'_, IdVec<LinkId, Bandwidth>> {
        let off = match (self.keeping, run % 3) {
            (Keeping::Roughly, 1) => -self.tuning.host_rate_error,
            (Keeping::Roughly, 2) => self.tuning.host_rate_error,
            _ => return Cow::Borrowed(&self.rates),
        };
        let about = |rate: &Bandwidth| Bandwidth((rate.0 as f64 * (1.0 + off)) as u64);
        Cow::Owned(self.rates.values().map(about).collect())
    }

    /// Who starts when, in order of time. Odd multiples keep two flows apart differently in every run.
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

    /// When the slowest has done so many iterations by itself.
    fn after(&self, iterations: u64) -> Instant {
        Instant(self.longest().saturating_mul(iterations))
    }

    /// How many iterations of the slowest are run ahead; none where that is too much work.
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

/// How long an iteration took on average of those that were done in between, in nanoseconds.
fn mean_since(before: LoopProgress, after: LoopProgress) -> Option<f64> {
    let spent = |done: LoopProgress| done.mean.map_or(0.0, |mean| mean.0 as f64 * done.iterations as f64);
    let count = after.iterations - before.iterations;
    (count > 0).then(|| (spent(after) - spent(before)) / count as f64)
}

fn words(traffic: &TrafficPolicy) -> [u64; 7] {
    // A rotation is predicted window by window, never as a whole.
    let TrafficPolicy { class, weight, follows, turn, pace, rotation: _ } = *traffic;
    let place = |turn: Option<Turn>| turn.map_or([0, 0], |turn| [turn.period.0, turn.offset.0]);
    let ([period, offset], [beat, held]) = (place(turn), place(pace.map(|pace| pace.turn)));
    let watch = turn.and_then(|turn| turn.watch);
    let (tolerance, pause) = watch.map_or((0, 0), |watch| (1 + watch.tolerance.0, watch.pause.0));
    let standing = u64::from(class) | (follows as u64) << 8 | u64::from(weight) << 16;
    [standing, period, offset, beat, held, tolerance, pause]
}

/// The link that bounds a flow which has its route for itself.
fn narrowest(route: &Route, rate: impl Fn(LinkId) -> Bandwidth) -> Option<LinkId> {
    let time = |(link, load): &&(LinkId, f64)| load / rate(*link).0.max(1) as f64;
    route.links().iter().max_by(|one, other| time(one).total_cmp(&time(other))).map(|(link, _)| *link)
}

/// Multiples of an irrational number, without their whole part, lie evenly in the unit interval, however many there are.
fn evenly(count: usize, irrational: f64) -> f64 {
    (count as f64 * irrational).fract()
}

const GOLDEN: f64 = 0.618_033_988_749_895;
const PLASTIC: f64 = 0.754_877_666_246_693;

/// Runs do not draw the same.
const STREAM: usize = 31;

/// Compute that varies by up to 2 %, each factor as often as the other, in an order without pattern.
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
