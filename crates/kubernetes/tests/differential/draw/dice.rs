//! Chance, from a seed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

pub(crate) struct Dice(Pcg64Mcg);

impl Dice {
    /// A stream of its own for each scene.
    pub(crate) fn new(seed: u64, scene: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ scene))
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0.random_range(low..=high)
    }

    /// True so many times of a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.between(0, 99) < chance
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.between(0, from.len() as u64 - 1) as usize]
    }

    pub(crate) fn one_of<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.between(0, from.len() as u64 - 1) as usize]
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.between(0, at as u64) as usize);
        }
    }
}
