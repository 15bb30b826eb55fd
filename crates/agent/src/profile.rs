//! Traffic profiles from byte counters.
//!
//! **Problem.** Given how many bytes a member of a training job had sent at moments a few milliseconds apart, find the
//! period of its iterations, the phases in which it sends, and how much iterations vary; or say that there is none.
//!
//! **What helps.** Iterations are never equally long: compute varies, and whoever shares a link with others is held up
//! now and then. So what is folded on a fixed period blurs. But every iteration sends *the same bytes*. Against bytes
//! instead of time, the pauses come at exact distances, however long they last. So:
//!
//! 1. [`series`]: counters that wrap, begin anew or were not read for a while become one clean run of samples.
//! 2. [`correlation`]: autocorrelation over time finds the period roughly, and not a multiple or a part of it.
//! 3. [`volume`]: what an iteration sends follows from the pauses, exactly; it also tells parts of a period that are too
//!    short for autocorrelation.
//! 4. [`iterations`]: when each iteration began, to a fraction of a step; hence the period, and its noise.
//! 5. [`alone`]: how long iterations would be without others on the job's links.
//! 6. [`fold`]: samples of all iterations, each at its place in its own, make one curve; where that is steep, it is a phase.
//!
//! Where an iteration begins cannot be seen from outside: profiles are the same up to rotation.

mod alone;
mod correlation;
mod fold;
mod iterations;
mod observer;
mod sending;
mod series;
#[cfg(test)]
mod tests;
mod volume;

use metronome_core::model::profile::Traffic;
use metronome_core::model::units::Duration;

use alone::Lap;

pub use alone::Alone;
pub use observer::Observer;
pub use sending::Sending;

/// What a counter said at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since any moment.
    pub at: u64,
    /// All bytes so far.
    pub bytes: u64,
}

/// What was learned from samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    pub traffic: Traffic,
    /// Standard deviation of the length of iterations, over the period.
    pub noise: f64,
    /// From 0 to 1: how alike iterations are, and whether there were enough of them.
    pub confidence: f64,
    /// How many were looked at.
    pub iterations: usize,
    /// The first and the last moment of the samples that were looked at.
    pub seen: [u64; 2],
    /// What an iteration sends.
    pub bytes: f64,
    laps: Vec<Lap>,
    /// The latest moment at which a period of the profile began, on the clock of the samples.
    pub began: u64,
    /// What the counter said then.
    pub level: u64,
    /// What is sent over a period, in equal parts of it: bits a second.
    pub rates: Vec<f64>,
}

impl Learned {
    /// What the job would do without others on its links, which carry `rate` bytes a nanosecond.
    pub fn alone(&self, rate: f64) -> Option<Alone> {
        alone::alone(&self.laps, self.bytes, rate)
    }
}

/// Why there is no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoProfile {
    #[error("too few samples: a profile takes a few iterations")]
    TooShort,
    #[error("nothing was sent")]
    Silent,
    #[error("what is sent hardly varies")]
    Constant,
    #[error("what is sent does not repeat")]
    NotPeriodic,
}

/// Fewer samples tell nothing.
const LEAST_SAMPLES: usize = 32;

/// What is less likely than that is chance.
const LEAST_CONFIDENCE: f64 = 0.25;

/// The profile that samples in order of time show.
pub fn learn(samples: &[Sample]) -> Result<Learned, NoProfile> {
    let run = series::longest_run(samples);
    if run.samples.len() < LEAST_SAMPLES {
        return Err(NoProfile::TooShort);
    }
    let rhythm = match correlation::rhythm(&run) {
        Ok(rhythm) => Some(rhythm),
        // Whoever is held up by others may repeat itself in its bytes alone.
        Err(NoProfile::NotPeriodic) => None,
        Err(none) => return Err(none),
    };
    let volume = volume::of(&run, rhythm.map(|rhythm| rhythm.period))?;
    let course = iterations::course(&run, &volume)?;
    let shape = fold::fold(&run, &volume, &course);
    let traffic = fold::traffic(&shape, &course, volume.bytes).ok_or(NoProfile::NotPeriodic)?;
    // What varies wildly, or leaves much time out, may be a part of an iteration: a ring whose members wait for each other
    // pauses within it, too.
    let enough = (1.0 - (-(course.lengths as f64) / 8.0).exp()) * (1.0 - course.noise) * course.trained;
    let likeness = rhythm.map_or(0.0, |rhythm| rhythm.likeness);
    let alike = likeness.max(volume.coherence).clamp(0.0, 1.0);
    if alike * enough < LEAST_CONFIDENCE {
        return Err(NoProfile::NotPeriodic);
    }
    let (began, level) = course.latest(&run);
    let mean = volume.bytes * 8e9 / course.period;
    Ok(Learned {
        traffic,
        noise: course.noise,
        confidence: alike * enough,
        iterations: course.lengths,
        seen: [run.from, run.from + run.lasts() as u64],
        bytes: volume.bytes,
        laps: alone::laps(&run, &course, volume.bytes),
        began,
        level,
        rates: shape.slopes.iter().map(|slope| slope * mean).collect(),
    })
}

/// A span in nanoseconds, of a positive number of them.
fn span(nanos: f64) -> Duration {
    Duration(nanos.round().max(1.0) as u64)
}
