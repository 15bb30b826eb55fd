//! How long to wait before trying again: longer each time, up to a bound, and never in step with others.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// Delays that double from `first` up to `longest`, each shortened by up to half. What is taken off follows from
/// who waits for what, so that a crowd that fails together does not come back together.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    seed: u64,
    attempt: u32,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration, who: impl Hash) -> Self {
        Self { first, longest, seed: hash(who), attempt: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.attempt = 0;
    }

    /// The next delay.
    pub(crate) fn next(&mut self) -> Duration {
        let full = self.first.saturating_mul(1 << self.attempt.min(20)).min(self.longest);
        self.attempt = self.attempt.saturating_add(1);
        let share = hash((self.seed, self.attempt)) as f64 / u64::MAX as f64;
        full.mul_f64(1.0 - share / 2.0)
    }
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(who: &str) -> Vec<Duration> {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10), who);
        (0..12).map(|_| backoff.next()).collect()
    }

    #[test]
    fn delays_grow_to_a_bound_and_stay_above_half_of_it() {
        for (attempt, delay) in delays("a").into_iter().enumerate() {
            let full = Duration::from_millis(100 << attempt).min(Duration::from_secs(10));
            assert!(delay <= full && delay >= full / 2, "attempt {attempt}: {delay:?} of {full:?}");
        }
    }

    #[test]
    fn two_who_failed_together_come_back_apart() {
        assert_ne!(delays("a"), delays("b"));
    }

    #[test]
    fn success_starts_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10), "a");
        let first = backoff.next();
        backoff.next();
        backoff.reset();
        assert_eq!(backoff.next(), first);
    }
}
