//! The hand of the agent: every few milliseconds it reads counters, and does what follows from them.
//!
//! One thread does all of it, in turn, so nothing here waits for anything but the clock. What is learned goes to
//! [`Shared`]; what was decided comes from the roster.

mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use metronome_core::traffic::burst_order::{MIDDLE, class_of_first};

use crate::counters::Counters;
use crate::freezer::Freezer;
use crate::intake::{Shared, lock};
use crate::marks::Marks;
use crate::members::{Roster, RosterFile};
use crate::observed::What;
use crate::ports::{Ports, Rung};
use crate::profile::Sample;
use crate::turns::Turns;

use watched::Watched;

/// How often the roster is looked at, and how often what was made is compared with what is wanted.
const ROSTER: Duration = Duration::from_millis(50);
const AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Watcher {
    /// The least time between two looks at counters, where nobody needs a closer one.
    step: Duration,
    file: RosterFile,
    roster: Roster,
    /// What the world shows when it asks.
    token: PathBuf,
    shared: Arc<Shared>,
    counters: Vec<Counters>,
    watched: Vec<Watched>,
    ports: Ports,
    turns: Turns,
    /// Only where it is asked for.
    marks: Option<Marks>,
    looked: Option<Instant>,
    compared: Instant,
}

impl Watcher {
    pub(crate) fn new(
        folder: &std::path::Path,
        shared: Arc<Shared>,
        step: Duration,
        marks: Option<Marks>,
    ) -> Self {
        Self {
            step,
            file: RosterFile::new(folder.join("members.json")),
            roster: Roster::default(),
            token: folder.join("token"),
            shared,
            counters: Vec::new(),
            watched: Vec::new(),
            ports: Ports::default(),
            turns: Turns::default(),
            marks,
            looked: None,
            compared: Instant::now(),
        }
    }

    /// Goes on until it is told to stop, and takes everything back.
    pub(crate) fn run(mut self, stop: &AtomicBool) {
        let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
        while !stop.load(Ordering::Relaxed) {
            self.tick();
            // Steps of different lengths: equal ones would see a period of as much always at the same place.
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let part = (dice >> 40) as f64 / f64::from(1 << 24);
            let step = self.watched.iter().map(Watched::pace).min().unwrap_or(self.step);
            std::thread::sleep(step.mul_f64(1.0 + part / 2.0));
        }
        self.leave();
    }

    fn tick(&mut self) {
        if self.looked.is_none_or(|looked| looked.elapsed() >= ROSTER) {
            self.looked = Some(Instant::now());
            self.look_at_the_roster();
        }
        if self.compared.elapsed() >= AGAIN {
            self.compare();
            self.open_what_is_silent();
        }
        self.read();
        self.learn();
        self.climb();
        self.mark();
    }

    fn look_at_the_roster(&mut self) {
        match self.file.changed() {
            Ok(None) => {}
            Ok(Some(roster)) => {
                if self.roster.members.is_empty() {
                    thaw_all(&roster);
                }
                self.roster = roster;
                let token = std::fs::read_to_string(&self.token).unwrap_or_default();
                self.shared.follow(&self.roster, token.trim());
                self.watch_members();
                self.turns.follow(&self.roster);
                self.compare();
            }
            // What it said before still holds; it may be whole again soon.
            Err(_) => self.fault(),
        }
    }

    fn compare(&mut self) {
        self.compared = Instant::now();
        self.ports.follow(&self.roster, now());
        self.shared.figures.leaves.store(self.ports.leaves() as u64, Ordering::Relaxed);
        add(&self.shared.figures.faults, self.ports.take_refused());
        if let Some(marks) = &mut self.marks {
            marks.follow(&self.roster, now());
        }
    }

    fn mark(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.look(Instant::now());
            self.shared.figures.marked.store(marks.marked() as u64, Ordering::Relaxed);
        }
    }

    /// A namespace may appear after its members were listed, or be made anew under its name.
    fn open_what_is_silent(&mut self) {
        if self.watched.iter().any(|watched| !watched.is_read) {
            self.open_counters();
        }
        self.watched.iter_mut().for_each(|watched| watched.is_read = false);
    }

    /// One member of each job is watched: all share one clock.
    fn watch_members(&mut self) {
        let mut before: BTreeMap<(String, String), Watched> = std::mem::take(&mut self.watched)
            .into_iter()
            .map(|watched| ((watched.job.clone(), watched.member.clone()), watched))
            .collect();
        let mut seen = BTreeSet::new();
        let mut in_order: Vec<_> =
            self.roster.members.iter().filter(|member| member.counters.is_some()).collect();
        in_order.sort_by_key(|member| !member.leads);
        for member in in_order.into_iter().filter(|member| seen.insert(&member.job)) {
            let key = (member.job.clone(), member.member.clone());
            let kept = before.remove(&key).filter(|watched| watched.is_still(member));
            let mut watched = kept.unwrap_or_else(|| Watched::new(member, self.step));
            watched.follow(member, &self.roster.ports);
            self.watched.push(watched);
        }
        self.open_counters();
    }

    fn open_counters(&mut self) {
        let mut by_namespace: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
        for (slot, watched) in self.watched.iter().enumerate() {
            by_namespace.entry(watched.interface.netns.clone()).or_default().push(slot);
        }
        let mut open: BTreeMap<PathBuf, Counters> =
            std::mem::take(&mut self.counters).into_iter().map(|open| (open.netns.clone(), open)).collect();
        for (netns, slots) in by_namespace {
            let is_read = slots.iter().all(|slot| self.watched[*slot].is_read);
            // One that was made anew under the same name has other counters.
            let kept = open.remove(&netns).filter(|_| is_read);
            let Some(mut counters) = kept.or_else(|| Counters::open(&netns).ok()) else {
                self.shared.figures.faults.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            counters.watch(slots.iter().map(|slot| {
                let interface = &self.watched[*slot].interface;
                (interface.interface.clone(), interface.direction, *slot)
            }));
            self.counters.push(counters);
        }
    }

    fn read(&mut self) {
        let Self { counters, watched, shared, .. } = self;
        let mut count = 0;
        for namespace in counters {
            let at = now();
            let read = namespace.read(|slot, bytes| {
                count += 1;
                watched[slot].feed(Sample { at, bytes: bytes.watched }, bytes.opposite, &shared.figures);
            });
            if read.is_err() {
                shared.figures.faults.fetch_add(1, Ordering::Relaxed);
            }
        }
        add(&shared.figures.samples, count);
    }

    /// Looks at the samples of one member at most, so that the next step is not late.
    fn learn(&mut self) {
        let Some(watched) = self.watched.iter_mut().find(|watched| watched.is_due) else { return };
        add(&self.shared.figures.looks, 1);
        let (traffic, slower) = watched.look();
        let news = traffic.map(What::Traffic).into_iter().chain(slower.map(What::Slower));
        news.for_each(|what| lock(&self.shared.observed).note(what));
    }

    fn climb(&mut self) {
        self.order();
        for watched in &self.watched {
            if self.ports.ladder(&watched.job).is_none() {
                continue;
            }
            // A fixed class does not depend on where the job is in its iteration.
            let fixed = watched.class.map(|_| (0.0, 1.0));
            if let Some((sent, volume)) = watched.meter.sent().or(fixed) {
                let class = watched.class.unwrap_or(MIDDLE);
                self.ports.climb(&watched.job, Rung { sent, volume, best: watched.link / 8e9, class });
            }
        }
    }

    /// Gives every job between two bursts the class that its next burst would have if it began now, and moves up bursts that
    /// are served first.
    fn order(&mut self) {
        let now = now();
        let class = |watched: &Watched| {
            let others = self.watched.iter().filter(|other| watched.meets(other));
            if let Some(class) = watched.fixed_class(others.clone(), now) {
                return Some(class);
            }
            let bursts = others.filter_map(|other| other.burst(now));
            match watched.burst(now) {
                Some(own) => Some(class_of_first(&own, bursts)),
                None => watched.newcomer(now).map(|newcomer| newcomer.class(bursts)),
            }
        };
        let classes: Vec<Option<u8>> = self.watched.iter().map(class).collect();
        let in_order: Vec<Option<u8>> =
            (0..classes.len()).map(|at| self.among_equals(at, &classes, now)).collect();
        for (watched, class) in self.watched.iter_mut().zip(in_order) {
            watched.class = class.or(watched.class);
        }
    }

    /// Jobs that would begin at once with the same class would share it for ever. So they get one class each, in their order.
    fn among_equals(&self, at: usize, classes: &[Option<u8>], now: u64) -> Option<u8> {
        let (watched, class) = (&self.watched[at], classes[at]?);
        let Some(newcomer) = watched.newcomer(now) else { return Some(class) };
        let is_equal = |other: &usize| {
            let neighbour = &self.watched[*other];
            classes[*other] == Some(class) && watched.meets(neighbour) && neighbour.newcomer(now).is_some()
        };
        Some(newcomer.class_among_equals(class, (0..at).filter(is_equal).count()))
    }

    fn fault(&self) {
        add(&self.shared.figures.faults, 1);
    }

    fn leave(&mut self) {
        // Whoever is being held is thawed when its hold goes.
        self.watched.clear();
        self.turns.clear();
        self.ports.clear();
        if let Some(marks) = &mut self.marks {
            marks.clear();
        }
    }
}

/// An earlier agent may have left somebody frozen. A cgroup that is gone needs nothing.
fn thaw_all(roster: &Roster) {
    let folders = roster.members.iter().filter_map(|member| member.freezer.as_deref());
    for freezer in folders.filter_map(Freezer::of) {
        let _ = freezer.thaw();
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Nanoseconds since 1970, by the clock that turns are said in.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}
