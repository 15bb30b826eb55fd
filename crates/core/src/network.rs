//! Fluid network model: training loops that share links.
//!
//! **Problem.** A job alternates between compute and communication. Where the bytes of two jobs cross the same link,
//! both send more slowly, and every later burst of both shifts in time. Given links, routes and loops, this module
//! computes when each job finishes its iterations: exactly while flows contend, quickly while the traffic repeats.
//!
//! **Model.** A gradient exchange is one flow: all hops of its route proceed at one rate, and each byte of gradient
//! puts a fixed number of bytes on each link ([`Route`]). At every moment the flows with bytes to send share the
//! links as [`sharing`] defines, each with the class and weight of its [`TrafficPolicy`], which may depend on the
//! bytes that the flow has sent ([`class_and_weight`]). Bytes become ready at fixed times of an iteration and leave
//! in order. The optimiser's step follows when compute is over and all bytes are sent, then the next iteration begins
//! ([`Pattern`]).
//!
//! **Time.** Event times are whole nanoseconds, bytes are `f64`. A burst ends at the nearest nanosecond, and at that
//! moment all its bytes count as sent: no byte is lost or gained, and rounding errors do not add up.
//!
//! **Components.** Jobs that share no link, directly or through other jobs, do not affect each other. Each component
//! has a clock of its own, which stands still until a caller needs the component's state: when a job joins or leaves,
//! a link changes, a caller reads a result, or a job could complete. The earliest completion is a bound that needs no
//! simulation: the iterations left at their shortest. Each time a component reaches the bound, most of the remaining
//! iterations are done. A component therefore advances in a few long strides, and event by event only in the last
//! iteration of one of its jobs.
//!
//! **Steady states** are skipped: see [`steady_state`].

mod class_and_weight;
mod component;
mod component_index;
mod history;
mod jitter;
mod link_trace;
pub mod packet;
mod pattern;
mod rate_cache;
mod route;
pub mod routing;
mod running;
mod sharing;
mod steady_state;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::id::{IdVec, LinkId};
use crate::model::units::{Bandwidth, Duration, Instant};
use crate::traffic::TrafficPolicy;

pub use history::LoadHistory;
pub use jitter::Jitter;
pub use link_trace::LinkTransmission;
pub use pattern::{Pattern, PatternError};
pub use route::{NoPath, Route};
pub use sharing::{Contention, Sharing};

use component::Component;
use link_trace::LinkTrace;
use pattern::NEVER;
use running::{LoopPhase, RateInterval, RunningLoop};
use totals::LinkTotals;

/// A training loop on its route, as the network runs it.
#[derive(Clone, Debug)]
pub struct Training {
    pub pattern: Arc<Pattern>,
    pub route: Route,
    pub iterations: u64,
    /// Source of random compute times; `None` if every iteration computes for the same time.
    pub jitter: Option<Box<dyn Jitter>>,
    pub traffic: TrafficPolicy,
}

/// Iterations that a loop has completed and their mean duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopProgress {
    /// Whole iterations.
    pub iterations: u64,
    /// Mean duration of an iteration; `None` if the loop completed none.
    pub mean: Option<Duration>,
}

/// Event: a loop has completed all its iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub at: Instant,
    pub key: usize,
    pub iterations: u64,
    pub mean: Option<Duration>,
}

/// Duration of an iteration without jitter on a route that no other job uses. [`Duration`]'s maximum if a link of the
/// route has rate zero.
pub fn alone(pattern: &Pattern, route: &Route, rates: &IdVec<LinkId, Bandwidth>) -> Duration {
    let best = route.links().iter().map(|(link, load)| bytes_per_nano(rates[*link]) / load);
    Duration(pattern.time(best.min_by(f64::total_cmp), 1.0))
}

/// Converts bits per second to bytes per nanosecond, the unit of all rates in this module.
pub(crate) fn bytes_per_nano(rate: Bandwidth) -> f64 {
    rate.0 as f64 / 8e9
}

/// Index of a component in [`Network::components`].
type ComponentIndex = usize;

/// All running loops, grouped into components, and the links that they share.
#[derive(Debug)]
pub struct Network {
    sharing: Sharing,
    /// Bytes per nanosecond.
    capacity: IdVec<LinkId, f64>,
    now: u64,
    components: Vec<Option<Component>>,
    free: Vec<ComponentIndex>,
    /// Time at which each component must advance next.
    wakes: BTreeSet<(u64, ComponentIndex)>,
    /// Component of each running job and of each used link. With [`Contention::None`], no link has a component.
    jobs: BTreeMap<usize, ComponentIndex>,
    owners: IdVec<LinkId, Option<ComponentIndex>>,
    /// Completed jobs that [`Network::run_until`] has not returned yet, by completion time and key.
    completed: BTreeMap<(u64, usize), LoopProgress>,
    totals: LinkTotals,
}

impl Network {
    /// Creates an idle network with links of these rates; a link with rate zero is down.
    pub fn new(rates: &IdVec<LinkId, Bandwidth>, sharing: Sharing) -> Self {
        Self {
            sharing,
            capacity: rates.values().map(|rate| bytes_per_nano(*rate)).collect(),
            now: 0,
            components: Vec::new(),
            free: Vec::new(),
            wakes: BTreeSet::new(),
            jobs: BTreeMap::new(),
            owners: IdVec::filled(None, rates.len()),
            completed: BTreeMap::new(),
            totals: LinkTotals::new(rates.len()),
        }
    }

    /// Starts a loop. Panics if the key is in use.
    pub fn start(&mut self, now: Instant, key: usize, training: Training) {
        self.advance_to(now);
        assert!(!self.jobs.contains_key(&key), "job {key} runs already");
        if training.iterations == 0 {
            self.completed.insert((self.now, key), LoopProgress { iterations: 0, mean: None });
            return;
        }
        let new_burst = RunningLoop::new(self.now, key, training, self.sharing.keeping);
        let links = new_burst.links().iter();
        let met: BTreeSet<ComponentIndex> = links.filter_map(|(link, _)| self.owners[*link]).collect();
        let mut jobs = vec![new_burst];
        for index in met {
            jobs.extend(self.dissolve(index));
        }
        self.group_into_components(jobs, self.now);
    }

    /// Removes a loop before it completes and returns its progress. Panics if no loop has the key.
    pub fn stop(&mut self, now: Instant, key: usize) -> LoopProgress {
        self.advance_to(now);
        if let Some(at) = self.completed.keys().find(|(_, completed)| *completed == key).copied() {
            return self.completed.remove(&at).expect("found a moment ago");
        }
        let mut jobs = self.dissolve(self.jobs[&key]);
        let place = jobs.iter().position(|job| job.key == key).expect("a running job is in its component");
        let mut leaving = jobs.remove(place);
        if leaving.phase == LoopPhase::Sending {
            let ended = leaving.set_rate(self.now, 0.0);
            self.totals.record(&leaving, ended);
        }
        self.totals.add_sent(&mut leaving);
        self.jobs.remove(&key);
        self.group_into_components(jobs, self.now);
        leaving.progress(self.now)
    }

    /// Advances to the first completion at or before `until` and returns it, or advances to `until`. Completions at
    /// the same instant are returned in the order of their keys.
    pub fn run_until(&mut self, until: Instant) -> Option<Completion> {
        loop {
            let first_over = self.completed.first_key_value().map_or(NEVER, |((at, _), _)| *at);
            if !self.advance_next(until.0.min(first_over)) {
                break;
            }
        }
        match self.completed.first_entry() {
            Some(first) if first.key().0 <= until.0 => {
                let ((at, key), LoopProgress { iterations, mean }) = first.remove_entry();
                self.now = self.now.max(at);
                Some(Completion { at: Instant(at), key, iterations, mean })
            }
            _ => {
                // A caller that passes the maximum time only asks whether any completion is left: the clock stays.
                if until.0 != NEVER {
                    self.now = self.now.max(until.0);
                }
                None
            }
        }
    }

    /// Changes the traffic policy of a running job. A phase offset delays the job at the end of its iteration: once,
    /// or, if the policy has a drift watch, each time that the job has drifted.
    pub fn set_traffic_policy(&mut self, now: Instant, key: usize, traffic: TrafficPolicy) {
        self.change_job(now, key, |job| job.set_traffic_policy(traffic));
    }

    /// Changes the rate of a link: degraded, down (rate zero: flows that cross it wait) or recovered.
    pub fn set_rate(&mut self, now: Instant, link: LinkId, rate: Bandwidth) {
        self.advance_to(now);
        let crossed = |component: &Component| component.links().binary_search(&link).is_ok();
        let indices = (0..self.components.len())
            .filter(|index| self.components[*index].as_ref().is_some_and(crossed))
            .collect::<Vec<ComponentIndex>>();
        let dissolved: Vec<Vec<RunningLoop>> =
            indices.into_iter().map(|index| self.dissolve(index)).collect();
        self.capacity[link] = bytes_per_nano(rate);
        for jobs in dissolved {
            self.group_into_components(jobs, self.now);
        }
    }

    /// Whole iterations that a running job has completed.
    pub fn iterations(&mut self, key: usize) -> u64 {
        self.result(key).iterations
    }

    /// Progress of a running job.
    pub fn result(&mut self, key: usize) -> LoopProgress {
        let now = self.now;
        self.job(key).progress(now)
    }

    /// Bytes of gradient per second that a running job is sending now.
    pub fn rate(&mut self, key: usize) -> f64 {
        self.job(key).rate * 1e9
    }

    /// Bytes that each link has carried so far.
    pub fn carried(&mut self) -> IdVec<LinkId, f64> {
        self.advance_all();
        let mut carried = self.totals.carried.clone();
        for job in self.components.iter().flatten().flat_map(|component| &component.jobs) {
            let sent = job.sent - job.in_totals + job.sent_since_base(self.now);
            for (link, load) in job.links() {
                carried[*link] += load * sent;
            }
        }
        carried
    }

    /// Starts to record the bytes of each link over time. Steady states are then simulated event by event instead of
    /// skipped.
    pub fn record_loads(&mut self, width: Duration) {
        self.advance_all();
        self.totals.history = Some(LoadHistory::new(width, self.capacity.len()));
    }

    /// Recorded bytes of each link over time; `None` if [`Network::record_loads`] was not called.
    pub fn loads(&mut self) -> Option<LoadHistory> {
        self.advance_all();
        let mut history = self.totals.history.clone()?;
        for job in self.components.iter().flatten().flat_map(|component| &component.jobs) {
            let bytes = job.sent_since_base(self.now);
            history.add(job.links(), RateInterval { from: job.base, to: self.now, bytes });
        }
        Some(history)
    }

    /// Starts to record which job sends on one link, and when. Steady states are then simulated event by event
    /// instead of skipped.
    pub fn watch(&mut self, link: LinkId) {
        self.advance_all();
        self.totals.watch = Some(LinkTrace::new(link, self.now));
    }

    /// Transmissions on the recorded link so far, by job key and time.
    pub fn watched(&mut self) -> Vec<LinkTransmission> {
        self.advance_all();
        let Some(mut watch) = self.totals.watch.clone() else { return Vec::new() };
        for job in self.components.iter().flatten().flat_map(|component| &component.jobs) {
            let bytes = job.sent_since_base(self.now);
            watch.record(job, RateInterval { from: job.base, to: self.now, bytes });
        }
        watch.into_transmissions()
    }

    /// Number of simulated events: flows that opened or closed, jobs that completed.
    pub fn events(&self) -> u64 {
        self.totals.events
    }
}
