//! Random variation of compute times. One factor per iteration stretches its compute, the times at which its bytes
//! are ready and the optimiser's step. The caller supplies the factors: randomness is an argument in core.

use std::fmt::Debug;

/// Sequence of factors of one loop, one per iteration, with mean one.
pub trait Jitter: Debug + Send + Sync {
    /// Returns the factor of the next iteration.
    fn draw(&mut self) -> f64;

    /// Lower bound of all factors.
    fn least(&self) -> f64;

    /// Copies the sequence from its present position, for another run of the same loop.
    fn again(&self) -> Box<dyn Jitter>;
}

impl Clone for Box<dyn Jitter> {
    fn clone(&self) -> Self {
        self.again()
    }
}
