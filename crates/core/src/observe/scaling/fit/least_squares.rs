//! Weighted linear least squares with few unknowns.

/// Normal equations: the sum over observations of terms times unknowns equals one.
#[derive(Clone, Debug)]
pub(super) struct LeastSquares<const N: usize> {
    products: [[f64; N]; N],
    sums: [f64; N],
}

impl<const N: usize> LeastSquares<N> {
    /// Normal equations of weighted observations.
    pub(super) fn of(observations: impl Iterator<Item = (f64, [f64; N])>) -> Self {
        let mut least_squares = Self { products: [[0.0; N]; N], sums: [0.0; N] };
        for (weight, terms) in observations {
            for row in 0..N {
                least_squares.sums[row] += weight * terms[row];
                for column in 0..N {
                    least_squares.products[row][column] += weight * terms[row] * terms[column];
                }
            }
        }
        least_squares
    }

    /// Adds a ridge penalty: `weight` observations that the unknown is zero.
    pub(super) fn penalise(&mut self, unknown: usize, weight: f64) {
        self.products[unknown][unknown] += weight;
    }

    /// Solves by Gaussian elimination with partial pivoting; `None` if the observations do not determine the
    /// unknowns.
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

    /// Back substitution.
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
    fn an_exact_solution_is_found() {
        let observations = [(1.0, [0.2, 0.3, 0.1]), (2.0, [0.5, 0.1, 0.4]), (3.0, [0.1, 0.9, 0.2])];
        let [one, two, three] = LeastSquares::of(observations.into_iter()).solve().unwrap();
        for (_, [first, second, third]) in observations {
            assert!((first * one + second * two + third * three - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn an_underdetermined_system_needs_a_penalty() {
        let observations = [(1.0, [0.5, 0.0])];
        let least_squares = LeastSquares::of(observations.into_iter());
        assert!(least_squares.clone().solve().is_none());
        let mut penalised = least_squares;
        penalised.penalise(1, 1.0);
        assert_eq!(penalised.solve(), Some([2.0, 0.0]));
    }
}
