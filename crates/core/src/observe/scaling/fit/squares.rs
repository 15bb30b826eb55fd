//! Least squares with few unknowns.

/// What is summed up over all that was seen: each time, terms times unknowns were to be one.
#[derive(Clone, Debug)]
pub(super) struct Squares<const N: usize> {
    products: [[f64; N]; N],
    sums: [f64; N],
}

impl<const N: usize> Squares<N> {
    /// Of looks that count for so much each.
    pub(super) fn of(looks: impl Iterator<Item = (f64, [f64; N])>) -> Self {
        let mut squares = Self { products: [[0.0; N]; N], sums: [0.0; N] };
        for (weight, terms) in looks {
            for row in 0..N {
                squares.sums[row] += weight * terms[row];
                for column in 0..N {
                    squares.products[row][column] += weight * terms[row] * terms[column];
                }
            }
        }
        squares
    }

    /// Counts for so much that an unknown is nothing.
    pub(super) fn lean(&mut self, unknown: usize, weight: f64) {
        self.products[unknown][unknown] += weight;
    }

    /// The unknowns; `None` where too little was seen to tell them apart.
    pub(super) fn solve(mut self) -> Option<[f64; N]> {
        for at in 0..N {
            let largest = (at..N).max_by(|one, other| {
                self.products[*one][at].abs().total_cmp(&self.products[*other][at].abs())
            })?;
            self.products.swap(at, largest);
            self.sums.swap(at, largest);
            let pivot = self.products[at][at];
            if pivot.abs() < f64::MIN_POSITIVE || !pivot.is_finite() {
                return None;
            }
            for row in at + 1..N {
                let factor = self.products[row][at] / pivot;
                for column in at..N {
                    self.products[row][column] -= factor * self.products[at][column];
                }
                self.sums[row] -= factor * self.sums[at];
            }
        }
        Some(self.substitute())
    }

    /// Backwards from the last, which stands alone.
    fn substitute(self) -> [f64; N] {
        let mut unknowns = [0.0; N];
        for row in (0..N).rev() {
            let known: f64 = (row + 1..N).map(|column| self.products[row][column] * unknowns[column]).sum();
            unknowns[row] = (self.sums[row] - known) / self.products[row][row];
        }
        unknowns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_exactly_is_found() {
        let looks = [(1.0, [0.2, 0.3, 0.1]), (2.0, [0.5, 0.1, 0.4]), (3.0, [0.1, 0.9, 0.2])];
        let [one, two, three] = Squares::of(looks.into_iter()).solve().unwrap();
        for (_, [first, second, third]) in looks {
            assert!((first * one + second * two + third * three - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn too_little_tells_nothing_unless_it_is_leant_on() {
        let looks = [(1.0, [0.5, 0.0])];
        let squares = Squares::of(looks.into_iter());
        assert!(squares.clone().solve().is_none());
        let mut leaning = squares;
        leaning.lean(1, 1.0);
        assert_eq!(leaning.solve(), Some([2.0, 0.0]));
    }
}
