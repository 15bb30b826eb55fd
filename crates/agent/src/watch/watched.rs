//! One member whose counter is watched.

use std::sync::atomic::Ordering;
use std::time::Duration;

use metronome_core::lane::Word;
use metronome_core::units::Moment;

use crate::freezer::{Freezer, Hold};
use crate::intake::Figures;
use crate::members::{Gate, Interface, Member, Port};
use crate::meter::{Event, Meter};
use crate::observed::{During, Phase, Traffic};
use crate::pacer::Pacer;
use crate::profile::{Observer, Sample};

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
    word: Option<Word>,
    hold: Option<Hold>,
}

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
            word: None,
            hold: None,
        }
    }

    /// Whether what is known of it still counts.
    pub(super) fn is_still(&self, member: &Member) -> bool {
        member.counters.as_ref() == Some(&self.interface)
    }

    pub(super) fn follow(&mut self, member: &Member, ports: &[Port]) {
        let is_held = member.gate == Gate::Freeze && member.leads;
        self.word = member.word().filter(|_| is_held);
        let crossed = || ports.iter().filter(|port| port.crossed_by.contains(&self.job));
        let slowest = crossed().map(|port| port.rate_bps).min();
        self.link = slowest.map_or(f64::INFINITY, |rate| rate as f64);
        if let Some(bytes) = member.sends {
            self.meter.declare(bytes as f64, self.link / 8e9);
        }
        let contends = crossed().any(|port| port.crossed_by.len() > 1);
        let during = if contends { During::Contending } else { During::Alone };
        if during != self.during {
            // What it does beside others says nothing of what it does alone.
            self.during = during;
            self.observer.forget();
        }
    }

    /// How often it is to be read.
    pub(super) fn pace(&self) -> Duration {
        self.observer.pace(self.step)
    }

    pub(super) fn feed(&mut self, sample: Sample, figures: &Figures) {
        self.is_read = true;
        // Others may need a closer look than this one.
        if u128::from(sample.at.abs_diff(self.observed)) >= self.pace().as_nanos() {
            self.observed = sample.at;
            self.is_due |= self.observer.feed(sample);
        }
        let event = self.meter.feed(sample);
        let Some(word) = self.word.as_ref().filter(|word| word.is_valid(Moment(sample.at))) else { return };
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

    /// Looks for a profile; tells what is new.
    pub(super) fn look(&mut self) -> Option<Traffic> {
        self.is_due = false;
        let pace = self.pace();
        let learned = self.observer.look().cloned();
        if self.pace() < pace / 2 {
            self.observer.look_closer();
        }
        if let Some(known) = self.observer.known().filter(|known| known.confidence >= SURE) {
            self.meter.learn(known);
        }
        let learned = learned?;
        let phase = |phase: &metronome_core::profile::Phase| Phase {
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
        })
    }
}
