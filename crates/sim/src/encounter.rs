//! Jobs that met on a link at one moment of a run, and how they would go on sharing it: fairly, and as was decided.
//!
//! Both courses are real runs of the network that decisions look ahead with, from the same starts and with the same
//! unsteady compute; only lanes differ. Everybody who shares links with those jobs takes part, directly or by way of
//! others, and one link of them is looked at. However many cross it, what is kept is bounded.

mod course;
mod pick;

use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_core::traffic::TrafficPolicy;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::{Watched, rehearse};
use metronome_core::tuning::TrafficTuning;

pub use course::{Course, JobCourse};
use course::{Crossing, Lens};

/// Jobs beyond these are shown together.
pub const MOST_JOBS: usize = 10;

#[derive(Clone, Debug, PartialEq)]
pub struct Encounter {
    pub at: Instant,
    pub link: String,
    pub rate: Bandwidth,
    pub circle: Circle,
    /// Those that ask most of the link, the first most.
    pub sharers: Vec<Sharer>,
    /// How many others cross it.
    pub more: usize,
    /// How many are concerned by way of other links.
    pub beyond: usize,
    pub fair: Course,
    /// The same in the lanes they had; none where nothing was decided about links.
    pub decided: Option<Course>,
}

/// What is wound around the circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circle {
    /// A period that all have in common, a little stretched.
    Common(Duration),
    /// The longest of periods that have none in common.
    Longest(Duration),
}

impl Circle {
    pub fn time(self) -> Duration {
        match self {
            Self::Common(time) | Self::Longest(time) => time,
        }
    }
}

/// One of the jobs on the link.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharer {
    /// Its place in the scenario.
    pub job: usize,
    /// How long its iterations take alone.
    pub period: Duration,
    /// The part of it in which it then sends.
    pub duty: f64,
    /// The part of the link that it then takes.
    pub demand: f64,
    pub lane: TrafficPolicy,
}

impl Sharer {
    /// The part of the link that it needs on average.
    pub fn asks(&self) -> f64 {
        self.duty * self.demand
    }
}

/// Everybody who was concerned, at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// By their place in the scenario.
    pub(crate) jobs: Vec<(usize, Flow, TrafficPolicy)>,
}

/// The links of a cluster.
pub(crate) struct Links<'a> {
    /// The first so many have names; others are inside nodes and are not looked at.
    pub(crate) named: usize,
    pub(crate) rates: &'a IdVec<LinkId, Bandwidth>,
    pub(crate) name: &'a dyn Fn(LinkId) -> String,
    /// The numbers by which a run ahead is made.
    pub(crate) tuning: &'a TrafficTuning,
}

/// Looks at the link of which most is asked; none where nobody shares one.
pub(crate) fn look(moment: &Moment, links: &Links) -> Option<Encounter> {
    let link = pick::busiest(moment, links)?;
    let crossings = pick::crossings(moment, link, links.rates);
    let circle = pick::circle(&crossings, links.tuning);
    let span = pick::span(circle, &crossings);
    let lens = Lens { circle: circle.time(), span, rate: links.rates[link], crossings: &crossings };
    let run = |lane: &dyn Fn(TrafficPolicy) -> TrafficPolicy| {
        let flows: Vec<(&Flow, TrafficPolicy)> =
            moment.jobs.iter().map(|(_, flow, own)| (flow, lane(*own))).collect();
        Course::of(&rehearse(links.tuning, &flows, |link| links.rates[link], Watched { link, span }), &lens)
    };
    let decides = moment.jobs.iter().any(|(_, _, lane)| !lane.is_default());
    Some(Encounter {
        at: moment.at,
        link: (links.name)(link),
        rate: links.rates[link],
        circle,
        more: crossings.len().saturating_sub(MOST_JOBS),
        beyond: moment.jobs.len() - crossings.len(),
        fair: run(&|_| TrafficPolicy::default()),
        decided: decides.then(|| run(&|own| own)),
        sharers: crossings.into_iter().take(MOST_JOBS).map(|Crossing { sharer, .. }| sharer).collect(),
    })
}

#[cfg(test)]
mod tests;
