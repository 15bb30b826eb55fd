//! Waiting for something that comes soon, with an end.

use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
}

impl Patience {
    pub(crate) fn new(length: Duration) -> Self {
        Self { until: Instant::now() + length }
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn pause(&self) {
        thread::sleep(Duration::from_millis(2));
    }
}
