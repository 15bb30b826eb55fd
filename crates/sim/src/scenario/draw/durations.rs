//! How long drawn jobs take, and by when they are to be done.

use metronome_core::model::job::{Binding, Deadline};
use metronome_core::model::units::{Duration, Instant};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::{exponential, gaussian, nanos};

/// How long jobs take, as they are asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) enum Durations {
    /// Cut at the longest.
    Lognormal {
        median: Duration,
        sigma: f64,
        at_most: Duration,
    },
    /// What is shorter or longer is taken to be so long.
    Exponential {
        mean: Duration,
        at_least: Duration,
        at_most: Duration,
    },
    Uniform {
        from: Duration,
        to: Duration,
    },
}

/// Deadlines at any of so many to so many times the time that a job takes as it is asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct DrawnDeadlines {
    pub(in crate::scenario) from: f64,
    pub(in crate::scenario) to: f64,
    pub(in crate::scenario) binding: Binding,
}

impl Durations {
    pub(in crate::scenario) fn longest(&self) -> Duration {
        match self {
            Self::Lognormal { at_most, .. } | Self::Exponential { at_most, .. } => *at_most,
            Self::Uniform { to, .. } => *to,
        }
    }

    pub(in crate::scenario) fn draw(&self, random: &mut Pcg64) -> Duration {
        match *self {
            Self::Lognormal { median, sigma, at_most } => {
                let drawn = nanos(median.0 as f64 * (sigma * gaussian(random)).exp());
                drawn.clamp(Duration(1), at_most)
            }
            Self::Exponential { mean, at_least, at_most } => {
                nanos(mean.0 as f64 * exponential(random)).clamp(at_least, at_most)
            }
            Self::Uniform { from, to } => from + nanos((to - from).0 as f64 * random.random::<f64>()),
        }
    }
}

impl DrawnDeadlines {
    /// `place` is where between the two bounds it lies, from 0 to 1.
    pub(super) fn deadline(&self, submitted: Instant, as_asked: Duration, place: f64) -> Deadline {
        let factor = self.from + place * (self.to - self.from);
        let at = submitted + nanos(as_asked.0 as f64 * factor).max(Duration(1));
        Deadline { binding: self.binding, ..Deadline::soft(at) }
    }
}
