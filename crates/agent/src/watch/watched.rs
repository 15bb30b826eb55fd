//! One member whose counter is watched.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use metronome_core::model::units::Moment;
use metronome_core::traffic::TrafficDirective;
use metronome_core::traffic::burst_order::{Burst, MIDDLE, Newcomer};

use crate::freezer::{Freezer, Hold};
use crate::intake::Figures;
use crate::members::{Gate, Interface, Member, Port};
use crate::meter::{Event, Meter};
use crate::observed::{During, Phase, Slower, Traffic, Uncontended};
use crate::pacer::Pacer;
use crate::ports::is_ordered;
use crate::profile::{Learned, Observer, Sample};
use crate::windows::{Window, WindowCounts, directed_slots};

#[derive(Debug)]
pub(super) struct Watched {
    pub(super) job: String,
    pub(super) member: String,
    pub(super) interface: Interface,
    /// Whether its counter was there of late.
    pub(super) is_read: bool,
    /// Whether there are samples enough for a look.
    pub(super) is_due: bool,
    pub(super) meter: Meter,
    /// The rate of the slowest link that it crosses, in bits a second.
    pub(super) link: f64,
    observer: Observer,
    /// The usual time between two looks, and when the observer had the last.
    step: Duration,
    observed: u64,
    during: During,
    pacer: Pacer,
    freezer: Option<Freezer>,
    /// Whether the agent freezes it to keep its turn.
    is_held: bool,
    word: Option<TrafficDirective>,
    hold: Option<Hold>,
    /// From the first byte of an iteration to the last.
    is_in_burst: bool,
    /// The class of its burst; between two bursts that of the next, if it began now.
    pub(super) class: Option<u8>,
    /// The class that its leaf may still have.
    class_at_most: u8,
    last: Option<Sample>,
    windows: WindowCounts,
    /// Those that share a link with it, to know when they change.
    neighbours: BTreeSet<String>,
}

/// How often the counter of a job is read whose class depends on the bursts of others: a burst of 100 ms loses 3 % at most.
const ORDERED_STEP: Duration = Duration::from_millis(3);

/// What a link carries with headers of Ethernet, IP and TCP, over what it is said to carry: those of a packet of 8 KiB, and
/// of its acknowledgement.
const HEADERS: f64 = 1.0 + 132.0 / 8192.0;

/// What is less sure than that is told, but nothing is done by it.
const SURE: f64 = 0.5;

impl Watched {
    pub(super) fn new(member: &Member, step: Duration) -> Self {
        let interface = member.counters.clone().expect("only members with counters are watched");
        let freezer = member.freezer.as_deref().and_then(Freezer::of);
        Self {
            job: member.job.clone(),
            member: member.member.clone(),
            interface,
            is_read: false,
            is_due: false,
            meter: Meter::default(),
            link: f64::INFINITY,
            observer: Observer::default(),
            step,
            observed: 0,
            during: During::Alone,
            pacer: Pacer::default(),
            freezer,
            is_held: false,
            word: None,
            hold: None,
            is_in_burst: false,
            class: None,
            class_at_most: MIDDLE,
            last: None,
            windows: WindowCounts::default(),
            neighbours: BTreeSet::new(),
        }
    }

    /// Whether what is known of it still counts.
    pub(super) fn is_still(&self, member: &Member) -> bool {
        member.counters.as_ref() == Some(&self.interface)
    }

    pub(super) fn follow(&mut self, member: &Member, ports: &[Port]) {
        self.is_held = member.gate == Gate::Freeze && member.leads;
        self.word = member.word();
        let crossed = || ports.iter().filter(|port| port.crossed_by.contains(&self.job));
        let slowest = crossed().map(|port| port.rate_bps).min();
        self.link = slowest.map_or(f64::INFINITY, |rate| rate as f64);
        if let Some(bytes) = member.sends {
            self.meter.declare(bytes as f64, self.link / 8e9);
        }
        let neighbours: BTreeSet<String> =
            crossed().flat_map(|port| &port.crossed_by).filter(|job| **job != self.job).cloned().collect();
        let contends = !neighbours.is_empty();
        if neighbours != self.neighbours {
            self.windows = WindowCounts::default();
            self.neighbours = neighbours;
        }
        let during = if contends { During::Contending } else { During::Alone };
        if during != self.during {
            // What it does beside others says nothing of what it does alone.
            self.during = during;
            self.observer.forget();
        }
    }

    /// How often it is to be read.
    pub(super) fn pace(&self) -> Duration {
        let pace = self.observer.pace(self.step);
        if self.word.as_ref().is_some_and(is_ordered) { pace.min(ORDERED_STEP) } else { pace }
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        self.neighbours.contains(&other.job)
    }

    /// Its class in a window in which no class depends on bursts, neither its own nor that of a job on its links.
    pub(super) fn fixed_class<'a>(&self, others: impl Iterator<Item = &'a Self>, now: u64) -> Option<u8> {
        let slot = self.ordered_by(now)?.slot_at(Moment(now));
        let is_fixed = |other: &Self| {
            other.ordered_by(now).is_none_or(|word| !word.slot_at(Moment(now)).follows.orders_bursts())
        };
        (!slot.follows.orders_bursts() && { others }.all(is_fixed)).then_some(slot.class)
    }

    /// Its next burst, while none is under way and its class depends on those of others.
    pub(super) fn newcomer(&self, now: u64) -> Option<Newcomer> {
        let word = self.ordered_by(now).filter(|_| !self.is_in_burst)?;
        let (_, volume) = self.meter.sent()?;
        Some(Newcomer { slot: word.slot_at(Moment(now)), length: self.takes(volume) })
    }

    /// Its burst, if that is under way and has a class.
    pub(super) fn burst(&self, now: u64) -> Option<Burst> {
        let word = self.ordered_by(now).filter(|_| self.is_in_burst)?;
        let (sent, volume) = self.meter.sent()?;
        let class = self.class?;
        Some(Burst {
            class,
            at_most: self.class_at_most.max(class),
            slot: word.slot_at(Moment(now)),
            left: self.takes(volume - sent),
        })
    }

    /// The directive by which its class depends on the bursts of others.
    fn ordered_by(&self, now: u64) -> Option<&TrafficDirective> {
        self.word.as_ref().filter(|word| word.is_valid(Moment(now)) && is_ordered(word))
    }

    /// Nanoseconds for so many bytes at the full rate of its links.
    fn takes(&self, bytes: f64) -> f64 {
        bytes.max(0.0) * 8e9 / self.link
    }

    /// Counts what it sent since the last sample for the window that it was sent in.
    fn count(&mut self, sample: Sample) {
        let Some(before) = self.last.replace(sample) else { return };
        let is_training = self.observer.known().is_some() && !self.neighbours.is_empty();
        if !is_training || sample.bytes < before.bytes {
            return;
        }
        let word = self.word.as_ref().filter(|word| word.is_valid(Moment(sample.at)));
        let window = word.map_or(Window::Fair, |word| Window::at(word, Moment(before.at)));
        self.windows.add(window, sample.bytes - before.bytes, sample.at.saturating_sub(before.at));
    }

    /// Whether it is slower in directed windows than in fair ones.
    fn slower(&self) -> Option<Slower> {
        let known = self.observer.known()?;
        let directed = directed_slots(self.word.as_ref()?);
        let compared = self.windows.compare(&directed, known.bytes, known.noise)?;
        (compared.at_least > 0.0).then(|| Slower {
            job: self.job.clone(),
            member: self.member.clone(),
            at_least: compared.at_least,
            measured: compared.measured,
            fair_iterations: compared.fair_iterations,
            directed_iterations: compared.directed_iterations,
        })
    }

    pub(super) fn feed(&mut self, sample: Sample, opposite: u64, figures: &Figures) {
        self.is_read = true;
        // Others may need a closer look than this one.
        if u128::from(sample.at.abs_diff(self.observed)) >= self.pace().as_nanos() {
            self.observed = sample.at;
            self.is_due |= self.observer.feed(sample);
        }
        self.count(sample);
        let event = self.meter.feed(sample, opposite);
        match event {
            Some(Event::Began(_)) => {
                self.is_in_burst = true;
                self.class_at_most = self.class.unwrap_or(MIDDLE);
            }
            Some(Event::Paused) => self.is_in_burst = false,
            // Its leaf is empty for a moment, which is when the kernel takes its class.
            None if self.meter.is_still() => self.class_at_most = self.class.unwrap_or(MIDDLE),
            None => {}
        }
        let held = self.word.as_ref().filter(|word| self.is_held && word.is_valid(Moment(sample.at)));
        let Some(word) = held else { return };
        match event {
            Some(Event::Began(at)) => self.pacer.began(word, Moment(at)),
            Some(Event::Paused) => {
                let is_free = self.hold.as_ref().is_none_or(Hold::is_over);
                if let Some((freezer, span)) = self.freezer.as_ref().zip(self.pacer.paused(Moment(sample.at)))
                    && is_free
                {
                    self.hold = Some(freezer.hold(span));
                    figures.holds.fetch_add(1, Ordering::Relaxed);
                }
            }
            None => {}
        }
    }

    /// Looks for a profile; tells what is new, of its traffic and of what its directive does to it.
    pub(super) fn look(&mut self) -> (Option<Traffic>, Option<Slower>) {
        (self.look_for_profile(), self.slower())
    }

    /// What it would do without others on its links. Bytes are counted with headers, and rates are said without.
    fn uncontended(&self, learned: &Learned) -> Option<Uncontended> {
        let rate = self.link * HEADERS / 8e9;
        let burst = learned.bytes / rate;
        let alone = learned.alone(rate).filter(|_| burst.is_finite() && burst >= 1.0)?;
        Some(Uncontended {
            period_ns: alone.period as u64,
            period_at_least_ns: alone.at_least as u64,
            period_at_most_ns: alone.at_most as u64,
            sends_for_ns: alone.sends as u64,
            burst_ns: burst as u64,
            rate_bps: self.link as u64,
            bytes: learned.bytes as u64,
        })
    }

    fn look_for_profile(&mut self) -> Option<Traffic> {
        self.is_due = false;
        let pace = self.pace();
        let learned = self.observer.look().cloned();
        if self.pace() < pace / 2 {
            self.observer.look_closer();
        }
        let fresh = self.observer.known().filter(|_| self.observer.is_fresh());
        if let Some(known) = fresh.filter(|known| known.confidence >= SURE) {
            self.meter.learn(known);
        }
        let learned = learned?;
        if self.word.is_none() && !self.neighbours.is_empty() {
            self.windows = WindowCounts::default();
            let count = learned.iterations as f64;
            let nanos = count * learned.traffic.period().0 as f64;
            self.windows.add(Window::Fair, (count * learned.bytes) as u64, nanos as u64);
        }
        let phase = |phase: &metronome_core::model::profile::Phase| Phase {
            offset_ns: phase.offset.0,
            length_ns: phase.length.0,
            rate_bps: phase.rate.0,
        };
        Some(Traffic {
            job: self.job.clone(),
            member: self.member.clone(),
            period_ns: learned.traffic.period().0,
            phases: learned.traffic.phases().iter().map(phase).collect(),
            noise: learned.noise,
            confidence: learned.confidence,
            iterations: learned.iterations,
            from_ns: learned.seen[0],
            until_ns: learned.seen[1],
            during: self.during,
            uncontended: self.uncontended(&learned),
        })
    }
}
