//! No two iterations compute for exactly as long. One factor for each iteration stretches its compute, the times at
//! which its bytes are ready and the optimiser's step. Where the factors come from is the caller's: chance is an
//! argument here.

use std::fmt::Debug;

/// The factors of one loop, iteration by iteration, around a mean of one.
pub trait Jitter: Debug + Send + Sync {
    fn draw(&mut self) -> f64;

    /// No factor is smaller.
    fn least(&self) -> f64;

    /// The same factors from here on, for another run of the same loop.
    fn again(&self) -> Box<dyn Jitter>;
}

impl Clone for Box<dyn Jitter> {
    fn clone(&self) -> Self {
        self.again()
    }
}
