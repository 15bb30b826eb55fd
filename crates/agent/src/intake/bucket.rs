//! How often a member may report.

use std::time::Instant;

/// A bucket of tokens: one is taken by each report, and they come back at a steady rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: f64,
    at: Instant,
}

/// Iterations take tens of milliseconds at least, and nobody needs to report each.
const A_SECOND: f64 = 50.0;
const AT_ONCE: f64 = 100.0;

impl Bucket {
    pub(super) fn full(now: Instant) -> Self {
        Self { tokens: AT_ONCE, at: now }
    }

    pub(super) fn take(&mut self, now: Instant) -> bool {
        let come_back = now.saturating_duration_since(self.at).as_secs_f64() * A_SECOND;
        self.tokens = (self.tokens + come_back).min(AT_ONCE);
        self.at = now;
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_a_second() {
        let now = Instant::now();
        let mut bucket = Bucket::full(now);
        assert_eq!((0..1000).filter(|_| bucket.take(now)).count(), 100);
        let later = now + Duration::from_secs(1);
        assert_eq!((0..1000).filter(|_| bucket.take(later)).count(), 50);
    }
}
