//! Token buckets: so many at once, so many a second from then on.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub per_second: f64,
    /// So many at once; at least one.
    pub burst: u32,
}

/// A bucket, kept as the time at which it would be full again: no clock has to tick for it.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    /// Time that one token takes to come back.
    spacing: Duration,
    /// How far ahead of now `full_at` may lie while tokens are left.
    depth: Duration,
    full_at: Instant,
}

impl Bucket {
    pub(crate) fn new(limit: Limit, now: Instant) -> Self {
        let spacing = Duration::from_secs_f64(1.0 / limit.per_second.max(1e-6));
        Self { spacing, depth: spacing.saturating_mul(limit.burst.max(1)), full_at: now }
    }

    /// Takes a token, or one that is yet to come: how long until it is there.
    pub(crate) fn reserve(&mut self, now: Instant) -> Duration {
        self.full_at = self.full_at.max(now) + self.spacing;
        (self.full_at - now).saturating_sub(self.depth)
    }

    /// Takes a token if one is there.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let taken = self.full_at.max(now) + self.spacing;
        let is_there = taken - now <= self.depth;
        if is_there {
            self.full_at = taken;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { per_second: 10.0, burst: 3 };

    #[test]
    fn a_burst_goes_at_once_and_the_rest_in_step() {
        let now = Instant::now();
        let mut bucket = Bucket::new(LIMIT, now);
        let delays: Vec<_> = (0..6).map(|_| bucket.reserve(now).as_millis()).collect();
        assert_eq!(delays, [0, 0, 0, 100, 200, 300]);
    }

    #[test]
    fn an_idle_bucket_fills_up_to_its_burst_and_no_further() {
        let now = Instant::now();
        let mut bucket = Bucket::new(LIMIT, now);
        let later = now + Duration::from_secs(3600);
        let taken = (0..10).filter(|_| bucket.take(later)).count();
        assert_eq!(taken, 3);
        assert!(bucket.take(later + Duration::from_millis(100)), "one came back");
        assert!(!bucket.take(later + Duration::from_millis(100)));
    }
}
