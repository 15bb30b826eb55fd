//! Speed of a job at each of its sizes.

mod fit;
mod measured;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::model::units::Share;

pub use fit::Fit;
pub use measured::Measured;

/// Speed in millionths of the speed at the smallest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Speed(pub u64);

impl Speed {
    /// Speed at the smallest size.
    pub const PLAIN: Self = Self(Share::WHOLE.0 as u64);
}

/// Sizes of a job, in members of the elastic role, and its speed at each.
///
/// More members may be slower: [`Scaling::useful`] returns the sizes up to the fastest only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, Speed)>", into = "Vec<(u32, Speed)>")]
pub struct Scaling {
    sizes: Vec<(u32, Speed)>,
    fastest: usize,
}

/// Why a table of sizes and speeds is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalingError {
    #[error("no size is given")]
    Empty,
    #[error("{0} members are given out of order")]
    Order(u32),
    #[error("with {0} members nothing would be done")]
    Still(u32),
    #[error("the speed at the least size is {0} millionths instead of 1")]
    Base(u64),
}

impl Scaling {
    /// Checks a table; speeds are relative to the first size, which is the smallest.
    pub fn new(sizes: Vec<(u32, Speed)>) -> Result<Self, ScalingError> {
        let (least, base) = *sizes.first().ok_or(ScalingError::Empty)?;
        if base != Speed::PLAIN {
            return Err(ScalingError::Base(base.0));
        }
        if least == 0 {
            return Err(ScalingError::Order(least));
        }
        for pair in sizes.windows(2) {
            let [(before, _), (members, speed)] = [pair[0], pair[1]];
            if members <= before {
                return Err(ScalingError::Order(members));
            }
            if speed.0 == 0 {
                return Err(ScalingError::Still(members));
            }
        }
        let fastest = useful(&sizes).len() - 1;
        Ok(Self { sizes, fastest })
    }

    /// Scaling by Amdahl's law: a part of each iteration is serial, the rest is divided among all members, `t(n) = s
    /// + (1 - s) / n`. Large ranges contain only powers of two, the sizes half-way between them, the smallest and the
    ///   largest size.
    pub fn with_serial_part(sizes: RangeInclusive<u32>, serial: Share) -> Self {
        let (least, most) = ((*sizes.start()).max(1), *sizes.end());
        let alone = u128::from(serial.0.min(Share::WHOLE.0));
        let together = u128::from(Share::WHOLE.0) - alone;
        // Time multiplied by the number of members.
        let time = |members: u32| alone * u128::from(members) + together;
        let speed = |members: u32| {
            let (slower, faster) = (time(least) * u128::from(members), time(members) * u128::from(least));
            Speed(u64::try_from(slower * u128::from(Speed::PLAIN.0) / faster.max(1)).unwrap_or(u64::MAX))
        };
        let powers = (0..31).map(|power| 1_u32 << power);
        let round = powers.flat_map(|power| [power, power + power / 2]);
        let mut sizes: Vec<u32> = round.filter(|size| (least..=most).contains(size)).collect();
        sizes.extend([least, most.max(least)]);
        sizes.sort_unstable();
        sizes.dedup();
        Self::new(sizes.into_iter().map(|members| (members, speed(members))).collect())
            .expect("sizes rise from at least one, and each is as fast as the least or faster")
    }

    /// All sizes in ascending order.
    pub fn sizes(&self) -> &[(u32, Speed)] {
        &self.sizes
    }

    /// Sizes up to the fastest.
    pub fn useful(&self) -> &[(u32, Speed)] {
        &self.sizes[..=self.fastest]
    }

    /// Sizes up to `members`, at least the smallest.
    fn up_to(&self, members: u32) -> &[(u32, Speed)] {
        let above = self.sizes.partition_point(|(size, _)| *size <= members);
        &self.sizes[..above.max(1)]
    }

    /// Speed with `members` members: that of the largest size that they fill.
    pub fn speed(&self, members: u32) -> Speed {
        let sizes = self.up_to(members);
        sizes[sizes.len() - 1].1
    }
}

/// Sizes up to the fastest; of equally fast sizes, the smallest counts.
pub(crate) fn useful(sizes: &[(u32, Speed)]) -> &[(u32, Speed)] {
    let fastest = (0..sizes.len()).rev().max_by_key(|at| sizes[*at].1);
    fastest.map_or(sizes, |fastest| &sizes[..=fastest])
}

impl TryFrom<Vec<(u32, Speed)>> for Scaling {
    type Error = ScalingError;
    fn try_from(sizes: Vec<(u32, Speed)>) -> Result<Self, ScalingError> {
        Self::new(sizes)
    }
}

impl From<Scaling> for Vec<(u32, Speed)> {
    fn from(scaling: Scaling) -> Self {
        scaling.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(given: &[(u32, u64)]) -> Vec<(u32, Speed)> {
        given.iter().map(|(members, speed)| (*members, Speed(*speed))).collect()
    }

    #[test]
    fn members_beyond_a_size_add_no_speed() {
        let scaling = Scaling::new(sizes(&[(1, 1_000_000), (2, 1_900_000), (4, 3_400_000)])).unwrap();
        assert_eq!(scaling.speed(3), Speed(1_900_000));
        assert_eq!(scaling.speed(9), Speed(3_400_000));
    }

    #[test]
    fn a_serial_part_bounds_the_speed() {
        let scaling = Scaling::with_serial_part(2..=9, Share(500_000));
        let speeds = sizes(&[
            (2, 1_000_000),
            (3, 1_125_000),
            (4, 1_200_000),
            (6, 1_285_714),
            (8, 1_333_333),
            (9, 1_350_000),
        ]);
        assert_eq!(scaling.sizes(), speeds);
        let linear = Scaling::with_serial_part(1..=4, Share::NONE);
        assert_eq!(linear.speed(4), Speed(4_000_000));
    }

    #[test]
    fn useful_sizes_end_at_the_fastest() {
        let falls = sizes(&[(1, 1_000_000), (2, 1_500_000), (4, 1_500_000), (8, 1_200_000)]);
        let scaling = Scaling::new(falls).unwrap();
        assert_eq!(scaling.useful(), sizes(&[(1, 1_000_000), (2, 1_500_000)]));
        assert_eq!(scaling.sizes().len(), 4);
    }

    #[test]
    fn invalid_tables_are_refused() {
        assert_eq!(Scaling::new(vec![]), Err(ScalingError::Empty));
        assert_eq!(Scaling::new(sizes(&[(1, 900_000)])), Err(ScalingError::Base(900_000)));
        assert_eq!(Scaling::new(sizes(&[(2, 1_000_000), (2, 2_000_000)])), Err(ScalingError::Order(2)));
        assert_eq!(Scaling::new(sizes(&[(1, 1_000_000), (2, 0)])), Err(ScalingError::Still(2)));
    }
}
