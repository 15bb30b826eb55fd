//! The way to the engine.

use metronome_core::engine::{Engine, Event};
use metronome_core::model::units::Instant;

/// An engine, and the time at which it is told something.
#[derive(Debug)]
pub(super) struct Wire<'a> {
    pub(super) engine: &'a mut Engine,
    pub(super) now: Instant,
}

impl Wire<'_> {
    pub(super) fn tell(&mut self, event: Event) {
        self.engine.observe(self.now, event);
    }
}
