//! The problem: loops on a circle, validated on construction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::id::LinkId;
use crate::model::profile::{Phase, Traffic};
use crate::model::units::{Bandwidth, Duration, Share};

/// A job's iteration, as its links see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    pub period: Duration,
    pub phases: Vec<Phase>,
    /// The links of its route, and how much of a phase's rate each carries: 1.75 times, for some.
    pub links: Vec<(LinkId, Share)>,
    /// Loops of a lower tier are placed around those of a higher; 0 is the highest.
    pub tier: u8,
    /// A link has the largest weight of the loops of a tier on it.
    pub weight: u32,
}

/// Loops on a circle, and the links they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    circle: Duration,
    links: BTreeMap<LinkId, Bandwidth>,
    loops: Vec<Loop>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    #[error("a circle must be longer than zero and at most {}", Problem::LONGEST)]
    Circle,
    #[error("link {0:?} carries nothing")]
    NoCapacity(LinkId),
    #[error("link {0:?} is named twice")]
    LinkTwice(LinkId),
    #[error("loop {0} has no period")]
    NoPeriod(usize),
    #[error("the period of loop {0} is not the circle divided by 1 to {most}", most = Problem::MOST_APPEARANCES)]
    Period(usize),
    #[error("phase {1} of loop {0} lasts longer than its period")]
    PhaseLength(usize, usize),
    #[error("phase {1} of loop {0} begins after the period has ended")]
    PhaseOffset(usize, usize),
    #[error("loop {0} has more than {most} phases", most = Traffic::MOST_PHASES)]
    TooManyPhases(usize),
    #[error("loop {0} uses link {1:?}, which does not exist")]
    NoSuchLink(usize, LinkId),
    #[error("loop {0} uses link {1:?} twice")]
    RouteTwice(usize, LinkId),
    #[error("loop {0} weighs nothing")]
    NoWeight(usize),
}

impl Problem {
    /// Areas are sums of products and exact up to this length: a numeric limit, and no tuning entry.
    pub const LONGEST: Duration = Duration::HOUR;
    pub const MOST_APPEARANCES: u64 = 12;

    pub fn new(
        circle: Duration,
        links: Vec<(LinkId, Bandwidth)>,
        loops: Vec<Loop>,
    ) -> Result<Self, ProblemError> {
        if circle.is_zero() || circle > Self::LONGEST {
            return Err(ProblemError::Circle);
        }
        let links = capacities(links)?;
        for (index, one) in loops.iter().enumerate() {
            fits_the_circle(index, one, circle)?;
            phases_lie_on_the_period(index, one)?;
            route_exists(index, one, &links)?;
        }
        Ok(Self { circle, links, loops })
    }

    pub fn circle(&self) -> Duration {
        self.circle
    }

    pub fn links(&self) -> &BTreeMap<LinkId, Bandwidth> {
        &self.links
    }

    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }
}

fn capacities(links: Vec<(LinkId, Bandwidth)>) -> Result<BTreeMap<LinkId, Bandwidth>, ProblemError> {
    let mut capacities = BTreeMap::new();
    for (link, capacity) in links {
        if capacity.is_zero() {
            return Err(ProblemError::NoCapacity(link));
        }
        if capacities.insert(link, capacity).is_some() {
            return Err(ProblemError::LinkTwice(link));
        }
    }
    Ok(capacities)
}

fn fits_the_circle(index: usize, one: &Loop, circle: Duration) -> Result<(), ProblemError> {
    if one.period.is_zero() {
        return Err(ProblemError::NoPeriod(index));
    }
    let appearances = circle.0 / one.period.0;
    let whole = circle.0.is_multiple_of(one.period.0);
    if !whole || !(1..=Problem::MOST_APPEARANCES).contains(&appearances) {
        return Err(ProblemError::Period(index));
    }
    if one.weight == 0 { Err(ProblemError::NoWeight(index)) } else { Ok(()) }
}

fn phases_lie_on_the_period(index: usize, one: &Loop) -> Result<(), ProblemError> {
    if one.phases.len() > Traffic::MOST_PHASES {
        return Err(ProblemError::TooManyPhases(index));
    }
    for (number, phase) in one.phases.iter().enumerate() {
        if phase.length > one.period {
            return Err(ProblemError::PhaseLength(index, number));
        }
        if phase.offset >= one.period {
            return Err(ProblemError::PhaseOffset(index, number));
        }
    }
    Ok(())
}

fn route_exists(index: usize, one: &Loop, links: &BTreeMap<LinkId, Bandwidth>) -> Result<(), ProblemError> {
    for (hop, (link, _)) in one.links.iter().enumerate() {
        if !links.contains_key(link) {
            return Err(ProblemError::NoSuchLink(index, *link));
        }
        if one.links[..hop].iter().any(|(earlier, _)| earlier == link) {
            return Err(ProblemError::RouteTwice(index, *link));
        }
    }
    Ok(())
}
