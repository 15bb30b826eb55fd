//! A fluid network: training loops that share links.
//!
//! **Problem.** Jobs compute and then send, over and over; where their bytes meet on a link, both are slower, and
//! what each then does next shifts against the other. Given links, routes and loops, find when each job has done its
//! iterations: exactly where jobs meet, quickly where nothing changes.
//!
//! **Model.** An exchange of gradients is one flow: all its hops go on together at one rate, and each byte of
//! gradient puts so many bytes on each link ([`Route`]). At every moment the flows that have something to send share
//! the links as [`sharing`] defines, each by its [`TrafficPolicy`], which may follow what it has sent ([`standing`]). Bytes become ready at given times of an iteration and are sent in order; when
//! compute is over and everything is sent comes the optimiser's step, and then the next iteration ([`Pattern`]).
//!
//! **Time.** Event times are whole nanoseconds; bytes are `f64`. A burst ends at the nearest nanosecond, and then all
//! of it is sent: nothing is lost or gained, and errors do not add up.
//!
//! **Components.** Jobs that share no link, not even by way of others, know nothing of each other. Each component
//! has a clock of its own that stands still until its state is needed: when a job joins or leaves, a link changes,
//! somebody asks, or one of its jobs could be over. The last is a bound that needs no simulation, the iterations
//! left at their shortest; each time it is reached most of what was left is done, so a component is moved on in a
//! few long strides, and event by event only in the last iteration of one of its jobs.
//!
//! **Steady states** are skipped: see [`repeat`].

mod class_and_weight;
mod component;
mod component_index;
mod history;
mod jitter;
pub mod packet;
mod pattern;
mod rate_cache;
mod route;
pub mod routing;
mod running;
mod sharing;
mod steady_state;
mod totals;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::id::{IdVec, LinkId};
use crate::model::units::{Bandwidth, Duration, Instant};
use crate::traffic::TrafficPolicy;

pub use history::LoadHistory;
pub use jitter::Jitter;
pub use pattern::{Pattern, PatternError};
pub use route::{NoPath, Route};
pub use sharing::{Contention, Sharing};
pub use watch::Sent;

use component::Component;
use pattern::NEVER;
use running::{Doing, Running, Stretch};
use totals::Ledger;
use watch::Watch;

/// A training loop at its place.
#[derive(Clone, Debug)]
pub struct Training {
    pub pattern: Arc<Pattern>,
    pub route: Route,
    pub iterations: u64,
    /// How its compute varies, if it does.
    pub jitter: Option<Box<dyn Jitter>>,
    pub traffic: TrafficPolicy,
}

/// What a loop has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Whole ones.
    pub iterations: u64,
    /// How long one took on average; none if none was done.
    pub mean: Option<Duration>,
}

/// A loop has done all its iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub at: Instant,
    pub key: usize,
    pub iterations: u64,
    pub mean: Option<Duration>,
}

/// How long an iteration takes, without noise, on a route that the job has for itself. For ever, if a link of it has
/// no rate.
pub fn alone(pattern: &Pattern, route: &Route, rates: &IdVec<LinkId, Bandwidth>) -> Duration {
    let best = route.links().iter().map(|(link, load)| bytes_per_nano(rates[*link]) / load);
    Duration(pattern.time(best.min_by(f64::total_cmp), 1.0))
}

pub(crate) fn bytes_per_nano(rate: Bandwidth) -> f64 {
    rate.0 as f64 / 8e9
}

/// Where a component is kept.
type Slot = usize;

#[derive(Debug)]
pub struct Network {
    sharing: Sharing,
    /// Bytes a nanosecond.
    capacity: IdVec<LinkId, f64>,
    now: u64,
    components: Vec<Option<Component>>,
    free: Vec<Slot>,
    /// When each component is to be moved on.
    wakes: BTreeSet<(u64, Slot)>,
    /// Where each running job and each used link is. A link is nobody's where flows do not contend.
    jobs: BTreeMap<usize, Slot>,
    owners: IdVec<LinkId, Option<Slot>>,
    /// Jobs that are over and have not been reported yet, by time and key.
    over: BTreeMap<(u64, usize), Done>,
    ledger: Ledger,
}

impl Network {
    /// Links of these rates; one of rate zero is down.
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
            over: BTreeMap::new(),
            ledger: Ledger::new(rates.len()),
        }
    }

    /// Begins a loop. Panics if the key is in use.
    pub fn start(&mut self, now: Instant, key: usize, training: Training) {
        self.reach(now);
        assert!(!self.jobs.contains_key(&key), "job {key} runs already");
        if training.iterations == 0 {
            self.over.insert((self.now, key), Done { iterations: 0, mean: None });
            return;
        }
        let newcomer = Running::new(self.now, key, training, self.sharing.keeping);
        let links = newcomer.links().iter();
        let met: BTreeSet<Slot> = links.filter_map(|(link, _)| self.owners[*link]).collect();
        let mut jobs = vec![newcomer];
        for slot in met {
            jobs.extend(self.take_apart(slot));
        }
        self.put_together(jobs, self.now);
    }

    /// Ends a loop before it is over. Panics if there is none of that key.
    pub fn stop(&mut self, now: Instant, key: usize) -> Done {
        self.reach(now);
        if let Some(at) = self.over.keys().find(|(_, over)| *over == key).copied() {
            return self.over.remove(&at).expect("found a moment ago");
        }
        let mut jobs = self.take_apart(self.jobs[&key]);
        let place = jobs.iter().position(|job| job.key == key).expect("a running job is in its component");
        let mut leaver = jobs.remove(place);
        if leaver.doing == Doing::Sending {
            let ended = leaver.flow(self.now, 0.0);
            self.ledger.note(&leaver, ended);
        }
        self.ledger.book(&mut leaver);
        self.jobs.remove(&key);
        self.put_together(jobs, self.now);
        leaver.result(self.now)
    }

    /// Goes on to the first completion at or before `until` and returns it, or to `until`. Completions at one
    /// instant come in the order of their keys.
    pub fn run_until(&mut self, until: Instant) -> Option<Completion> {
        loop {
            let first_over = self.over.first_key_value().map_or(NEVER, |((at, _), _)| *at);
            if !self.wake_first(until.0.min(first_over)) {
                break;
            }
        }
        match self.over.first_entry() {
            Some(first) if first.key().0 <= until.0 => {
                let ((at, key), Done { iterations, mean }) = first.remove_entry();
                self.now = self.now.max(at);
                Some(Completion { at: Instant(at), key, iterations, mean })
            }
            _ => {
                // The end of time is asked for by those who only want to know whether anything is still to come.
                if until.0 != NEVER {
                    self.now = self.now.max(until.0);
                }
                None
            }
        }
    }

    /// From now on a job stands otherwise among those it meets. A turn holds it at the end of its iteration: once, or
    /// whenever it has drifted, if that is watched.
    pub fn set_lane(&mut self, now: Instant, key: usize, traffic: TrafficPolicy) {
        self.change(now, key, |job| job.change_lane(traffic));
    }

    /// A link is degraded, fails (rate zero: what crosses it waits) or recovers.
    pub fn set_rate(&mut self, now: Instant, link: LinkId, rate: Bandwidth) {
        self.reach(now);
        let crossed = |component: &Component| component.links().binary_search(&link).is_ok();
        let slots = (0..self.components.len())
            .filter(|slot| self.components[*slot].as_ref().is_some_and(crossed))
            .collect::<Vec<Slot>>();
        let apart: Vec<Vec<Running>> = slots.into_iter().map(|slot| self.take_apart(slot)).collect();
        self.capacity[link] = bytes_per_nano(rate);
        for jobs in apart {
            self.put_together(jobs, self.now);
        }
    }

    /// Whole iterations done so far by a running job.
    pub fn iterations(&mut self, key: usize) -> u64 {
        self.result(key).iterations
    }

    /// What a running job has done so far.
    pub fn result(&mut self, key: usize) -> Done {
        let now = self.now;
        self.job(key).result(now)
    }

    /// The bytes of gradient a second that a running job is sending.
    pub fn rate(&mut self, key: usize) -> f64 {
        self.job(key).rate * 1e9
    }

    /// The bytes each link has carried so far.
    pub fn carried(&mut self) -> IdVec<LinkId, f64> {
        self.settle_all();
        let mut carried = self.ledger.carried.clone();
        for job in self.components.iter().flatten().flat_map(|component| &component.jobs) {
            let sent = job.sent - job.booked + job.moved(self.now);
            for (link, load) in job.links() {
                carried[*link] += load * sent;
            }
        }
        carried
    }

    /// From now on notes what each link carries over time. Steady states are then not skipped.
    pub fn record_loads(&mut self, width: Duration) {
        self.settle_all();
        self.ledger.history = Some(LoadHistory::new(width, self.capacity.len()));
    }

    /// What each link carried over time, if that was noted.
    pub fn loads(&mut self) -> Option<LoadHistory> {
        self.settle_all();
        let mut history = self.ledger.history.clone()?;
        for job in self.components.iter().flatten().flat_map(|component| &component.jobs) {
            let bytes = job.moved(self.now);
            history.add(job.links(), Stretch { from: job.base, to: self.now, bytes });
        }
        Some(history)
    }

    /// From now on notes who puts what on one link, and when. Steady states are then not skipped.
    pub fn watch(&mut self, link: LinkId) {
        self.settle_all();
        self.ledger.watch = Some(Watch::new(link, self.now));
    }

    /// What jobs have put on the watched link so far, by key and in order of time.
    pub fn watched(&mut self) -> Vec<Sent> {
        self.settle_all();
        let Some(mut watch) = self.ledger.watch.clone() else { return Vec::new() };
        for job in self.components.iter().flatten().flat_map(|component| &component.jobs) {
            let bytes = job.moved(self.now);
            watch.note(job, Stretch { from: job.base, to: self.now, bytes });
        }
        watch.sent()
    }

    /// How much has happened: flows that opened or ran dry, jobs that ended.
    pub fn events(&self) -> u64 {
        self.ledger.events
    }
}
