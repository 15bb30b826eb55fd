//! Whether we live and are ready, as others may ask at any time without waiting for us.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Shared between those who know and those who ask.
#[derive(Clone, Debug)]
pub struct Health(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    began: Instant,
    /// Milliseconds after `began` at which the loop last turned.
    beat: AtomicU64,
    /// How long the loop may take for one turn.
    stalled_after: Duration,
    is_ready: AtomicBool,
}

impl Health {
    pub fn new(stalled_after: Duration) -> Self {
        let (beat, is_ready) = (AtomicU64::new(0), AtomicBool::new(false));
        Self(Arc::new(Shared { began: Instant::now(), beat, stalled_after, is_ready }))
    }

    /// The loop has turned.
    pub fn beat(&self) {
        let now = self.0.began.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        self.0.beat.store(now, Ordering::Relaxed);
    }

    /// Everything has been listed once: whether we lead or stand by, we could go on from here.
    pub fn ready(&self) {
        self.0.is_ready.store(true, Ordering::Relaxed);
    }

    pub fn is_alive(&self) -> bool {
        let beat = Duration::from_millis(self.0.beat.load(Ordering::Relaxed));
        self.0.began.elapsed().saturating_sub(beat) <= self.0.stalled_after
    }

    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_stands_still_is_not_alive_until_it_turns_again() {
        let health = Health::new(Duration::from_secs(30));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(health.is_alive());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!health.is_alive());
        health.beat();
        assert!(health.is_alive());
    }
}
