//! Buckets cut into slices, as libraries for such exchanges do: a slice is done, and the next begun, long before a bucket is.

/// Numbers of a slice that each of those have who exchange it: 8 KiB.
const EACH: usize = 2048;

/// The same of the very last, which goes round when nothing else of its job is on the wire, packet after packet. Larger ones
/// would come before their turn among those of others: a job that ends beside another would be done too soon, by more
/// than a millisecond.
const LAST: usize = 1024;

/// What each bucket is cut into.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slices {
    /// In numbers.
    pub(crate) sizes: Vec<usize>,
    /// How many slices there are up to the end of each bucket.
    ends: Vec<usize>,
}

impl Slices {
    /// Of buckets of these sizes, in numbers, that so many exchange.
    pub(crate) fn of(buckets: &[usize], members: usize) -> Self {
        let most = EACH * members.max(1);
        let mut slices = Self::default();
        for numbers in buckets {
            let count = numbers.div_ceil(most).max(1);
            slices.sizes.extend((0..count).map(|at| (numbers * (at + 1) / count) - numbers * at / count));
            slices.ends.push(slices.sizes.len());
        }
        slices.end_small(LAST * members.max(1));
        slices
    }

    fn end_small(&mut self, most: usize) {
        let (Some(size), Some(end)) = (self.sizes.last_mut(), self.ends.last_mut()) else { return };
        if *size > most {
            *size -= most;
            self.sizes.push(most);
            *end += 1;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// How many there are of the first so many buckets.
    pub(crate) fn of_first(&self, buckets: usize) -> usize {
        match buckets.min(self.ends.len()) {
            0 => 0,
            some => self.ends[some - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_about_equal_but_for_the_last_and_nothing_is_lost() {
        let slices = Slices::of(&[3 * EACH, 0, 10 * EACH + 1], 2);
        assert_eq!(slices.sizes.iter().sum::<usize>(), 13 * EACH + 1);
        assert!(slices.sizes.iter().all(|size| *size <= 2 * EACH), "{:?}", slices.sizes);
        assert_eq!(slices.sizes.last(), Some(&(2 * LAST)));
        assert_eq!([0, 1, 2, 3, 9].map(|buckets| slices.of_first(buckets)), [0, 2, 3, 10, 10]);
    }
}
