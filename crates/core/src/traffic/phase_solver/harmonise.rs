//! A common circle without a least common multiple: periods are stretched a little until each is the circle divided by
//! a small number.
//!
//! 237, 311 and 418 ms meet again after 8.6 hours, and no measurement is good enough for that to mean anything. Two
//! jobs of 300 and 597 ms, however, are as good as harmonic: 300 and 600 ms, for half a percent of one of them.

use serde::{Deserialize, Serialize};

use super::problem::Problem;
use crate::model::units::{Duration, Share};
use crate::tuning::TrafficTuning;

/// The numbers of appearances of a loop on the circle. All divide 24, so on circles of whole 24 ns periods are whole: a property
/// of the numbers, and no tuning entry.
pub const APPEARANCES: [u64; 7] = [1, 2, 3, 4, 6, 8, 12];
const GRAIN: u64 = 24;

/// The measured iterations of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rhythm {
    pub period: Duration,
    /// Standard deviation of one iteration.
    pub noise: Duration,
    pub weight: u32,
    /// The loss that is predicted under fair sharing, as a share of the period.
    pub loss: Share,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// No period is stretched by more than this share of itself.
    pub most: Share,
    /// The noise that every stretched period leaves room for: 1,000,000 is one standard deviation.
    pub cushion: Share,
}

impl Terms {
    /// Terms for links that carry exactly what is decided.
    pub fn of(tuning: &TrafficTuning) -> Self {
        Self { most: tuning.max_period_stretch, cushion: deviations(tuning.period_cushion) }
    }

    /// Terms for links that hosts shape.
    pub fn on_hosts(tuning: &TrafficTuning) -> Self {
        Self { most: tuning.max_period_stretch_on_hosts, cushion: deviations(tuning.period_cushion_on_hosts) }
    }
}

fn deviations(count: f64) -> Share {
    Share((count * f64::from(Share::WHOLE.0)) as u32)
}

/// A period on the circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    pub period: Duration,
    pub appearances: u64,
    /// The stretch of the period, which is the cushion of the job.
    pub stretch: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Harmony {
    pub circle: Duration,
    /// For each rhythm, in the same order.
    pub beats: Vec<Beat>,
}

/// The reason for which there is no common circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Discord {
    #[error("rhythm {0} has no period")]
    NoPeriod(usize),
    #[error("no circle is near enough to every period")]
    TooFar,
    #[error("the stretch costs more than it saves")]
    NotWorthIt,
}

/// The circle with the least weighted stretch, each as a share of its own period; of equals, the shortest.
pub fn harmonise(rhythms: &[Rhythm], terms: &Terms) -> Result<Harmony, Discord> {
    if let Some(index) = rhythms.iter().position(|rhythm| rhythm.period.is_zero()) {
        return Err(Discord::NoPeriod(index));
    }
    let candidates = circles(rhythms, terms).into_iter().filter_map(|circle| on(circle, rhythms, terms));
    let least = candidates.min_by_key(|harmony| (cost(harmony, rhythms), harmony.circle));
    let harmony = least.ok_or(Discord::TooFar)?;
    if cost(&harmony, rhythms) > loss(rhythms) { Err(Discord::NotWorthIt) } else { Ok(harmony) }
}

/// On the best circle some period is stretched no more than it must be: a shorter circle would be better otherwise.
fn circles(rhythms: &[Rhythm], terms: &Terms) -> Vec<Duration> {
    let fitting = |rhythm: &Rhythm| {
        let needed = needed(rhythm, terms);
        APPEARANCES
            .map(|appearances| Duration(needed.times(appearances).0.div_ceil(GRAIN).saturating_mul(GRAIN)))
    };
    let mut circles: Vec<Duration> = rhythms.iter().flat_map(fitting).collect();
    circles.retain(|circle| *circle <= Problem::LONGEST);
    circles.sort_unstable();
    circles.dedup();
    circles
}

fn on(circle: Duration, rhythms: &[Rhythm], terms: &Terms) -> Option<Harmony> {
    let beats = rhythms.iter().map(|rhythm| beat(circle, rhythm, terms)).collect::<Option<_>>()?;
    Some(Harmony { circle, beats })
}

/// The shortest period on the circle that the rhythm can keep, if it is near enough.
fn beat(circle: Duration, rhythm: &Rhythm, terms: &Terms) -> Option<Beat> {
    let needed = needed(rhythm, terms);
    let appearances = *APPEARANCES.iter().rev().find(|appearances| circle.0 / **appearances >= needed.0)?;
    let period = Duration(circle.0 / appearances);
    let stretch = period - rhythm.period;
    let most = part(rhythm.period, terms.most);
    (stretch <= most).then_some(Beat { period, appearances, stretch })
}

fn needed(rhythm: &Rhythm, terms: &Terms) -> Duration {
    rhythm.period + part(rhythm.noise, terms.cushion)
}

pub(crate) fn part(span: Duration, share: Share) -> Duration {
    let nanos = u128::from(span.0) * u128::from(share.0) / u128::from(Share::WHOLE.0);
    Duration(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Billionths of a period, weighted.
const PARTS: u128 = 1_000_000_000;

fn cost(harmony: &Harmony, rhythms: &[Rhythm]) -> u128 {
    let one = |(beat, rhythm): (&Beat, &Rhythm)| {
        (u128::from(beat.stretch.0) * PARTS).div_ceil(u128::from(rhythm.period.0)) * u128::from(rhythm.weight)
    };
    harmony.beats.iter().zip(rhythms).map(one).sum()
}

fn loss(rhythms: &[Rhythm]) -> u128 {
    let parts = PARTS / u128::from(Share::WHOLE.0);
    rhythms.iter().map(|rhythm| u128::from(rhythm.loss.0) * parts * u128::from(rhythm.weight)).sum()
}
