//! How fast a job is at each size it may have, in whatever unit speed was measured.

use metronome_core::model::units::Share;
use metronome_core::observe::scaling::{Scaling, Speed};

/// Sizes in members, the least first, and a speed for each. A size that is not there cannot be had.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve(Vec<(u32, f64)>);

/// Words that fit behind the name of what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum CurveError {
    #[error("no size is given")]
    Empty,
    #[error("the size {0} is given twice")]
    Twice(u32),
    #[error("with {0} members nothing would be done")]
    Still(u32),
    #[error("with {0} members it would be a million times as fast, or as slow, as with the fewest")]
    Absurd(u32),
}

/// A job that is faster or slower than at its least size by more than this is a mistake.
const LARGEST_RATIO: f64 = 1e6;

impl Curve {
    /// In any order. Speeds may fall: whoever asks for what is useful is told the sizes up to the fastest.
    pub(crate) fn new(mut speeds: Vec<(u32, f64)>) -> Result<Self, CurveError> {
        speeds.sort_by_key(|(members, _)| *members);
        let (_, base) = *speeds.first().ok_or(CurveError::Empty)?;
        if let Some(pair) = speeds.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(CurveError::Twice(pair[1].0));
        }
        for (members, speed) in &speeds {
            if *members == 0 || speed.is_nan() || *speed <= 0.0 {
                return Err(CurveError::Still(*members));
            }
            let ratio = speed / base;
            if !(1.0 / LARGEST_RATIO..=LARGEST_RATIO).contains(&ratio) {
                return Err(CurveError::Absurd(*members));
            }
        }
        Ok(Self(speeds))
    }

    /// Where of each iteration a part is done by one core and the rest by all: `t(c) = s + (1 - s) / c`.
    pub(crate) fn of_cores(cores: impl IntoIterator<Item = u32>, serial: Share) -> Self {
        let speed = |cores: u32| 1.0 / time_with(cores, serial);
        Self(cores.into_iter().map(|cores| (cores, speed(cores))).collect())
    }

    /// The sizes between two bounds; nothing where there are none.
    pub(crate) fn within(&self, least: u32, most: u32) -> Option<Self> {
        let inside = self.0.iter().filter(|(members, _)| (least..=most).contains(members));
        let speeds: Vec<_> = inside.copied().collect();
        (!speeds.is_empty()).then_some(Self(speeds))
    }

    pub(crate) fn least(&self) -> u32 {
        self.0[0].0
    }

    pub(crate) fn most(&self) -> u32 {
        self.0[self.0.len() - 1].0
    }

    /// With so many members, in the unit of the curve: that of the largest size they make up.
    pub(crate) fn speed(&self, members: u32) -> f64 {
        let above = self.0.partition_point(|(size, _)| *size <= members);
        self.0[above.saturating_sub(1)].1
    }

    /// As it would be written: `{1: 1.5, 2: 2.8}`.
    pub(crate) fn written(&self) -> String {
        let sizes: Vec<String> =
            self.0.iter().map(|(members, speed)| format!("{members}: {speed}")).collect();
        format!("{{{}}}", sizes.join(", "))
    }

    /// Relative to the least size.
    pub(crate) fn scaling(&self) -> Scaling {
        let base = self.0[0].1;
        let relative = |speed: f64| Speed((speed / base * Speed::PLAIN.0 as f64).round() as u64);
        let sizes = self.0.iter().map(|(members, speed)| (*members, relative(*speed))).collect();
        Scaling::new(sizes).expect("sizes rise from one, and speeds are within bounds")
    }
}

/// The time of an iteration with so many cores over that with one.
pub(crate) fn time_with(cores: u32, serial: Share) -> f64 {
    let serial = serial.as_f64();
    serial + (1.0 - serial) / f64::from(cores.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_told_relative_to_the_least_size() {
        let curve = Curve::new(vec![(4, 6.0), (1, 2.0), (2, 3.8)]).unwrap();
        let speeds = [(1, Speed(1_000_000)), (2, Speed(1_900_000)), (4, Speed(3_000_000))];
        assert_eq!(curve.scaling().sizes(), speeds);
        assert_eq!(curve.within(2, 3).unwrap().scaling().sizes(), [(2, Speed(1_000_000))]);
        assert_eq!(curve.within(5, 9), None);
    }

    #[test]
    fn a_serial_part_is_done_by_one_core() {
        let curve = Curve::of_cores([1, 2, 8], Share(500_000));
        assert_eq!(curve.scaling().sizes()[1..], [(2, Speed(1_333_333)), (8, Speed(1_777_778))]);
    }

    #[test]
    fn speeds_that_make_no_sense_are_refused() {
        assert_eq!(Curve::new(vec![]), Err(CurveError::Empty));
        assert_eq!(Curve::new(vec![(1, 1.0), (1, 2.0)]), Err(CurveError::Twice(1)));
        assert_eq!(Curve::new(vec![(1, 1.0), (2, 0.0)]), Err(CurveError::Still(2)));
        assert_eq!(Curve::new(vec![(1, f64::NAN)]), Err(CurveError::Still(1)));
        assert_eq!(Curve::new(vec![(1, 1.0), (2, 1e9)]), Err(CurveError::Absurd(2)));
    }
}
