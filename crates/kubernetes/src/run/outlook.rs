//! Looks ahead now and then, beside the loop, so that jobs can say when they will start and end.

use std::time::Duration;

use metronome_core::engine::forecast::{Outlook, Sought, look_ahead};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::term::now;
use crate::world::World;

/// A look ahead takes a processor for a while where there are many jobs.
const EVERY: Duration = Duration::from_secs(30);

pub(super) struct Lookout {
    next: Instant,
    looking: Option<JoinHandle<Outlook>>,
}

impl Lookout {
    pub(super) fn new() -> Self {
        Self { next: Instant::now() + Duration::from_secs(1), looking: None }
    }

    /// Ends when it is time to look, and again when something was seen. May be dropped at any time.
    pub(super) async fn due(&mut self) -> Option<Outlook> {
        let Some(looking) = &mut self.looking else {
            tokio::time::sleep_until(self.next).await;
            return None;
        };
        let seen = looking.await;
        self.looking = None;
        seen.inspect_err(|error| tracing::warn!(%error, "nothing was foreseen")).ok()
    }

    pub(super) fn look(&mut self, world: &World) {
        if self.looking.is_some() || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        if world.has_training_jobs() {
            let state = world.engine().state().clone();
            let look = move || look_ahead(&state, now(), Sought::Everybody);
            self.looking = Some(tokio::task::spawn_blocking(look));
        }
    }
}
