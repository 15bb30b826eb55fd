//! How jobs that name no priority get one.

use metronome_core::model::job::Priority;
use metronome_core::model::units::Share;
use rand::Rng;

/// Shares of the priorities; the rest is low.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Priorities {
    pub(crate) high: Share,
    pub(crate) normal: Share,
}

impl Default for Priorities {
    fn default() -> Self {
        Self { high: Share::NONE, normal: Share::WHOLE }
    }
}

impl Priorities {
    pub(crate) fn draw(&self, random: &mut impl Rng) -> Priority {
        match random.next_u32() % Share::WHOLE.0 {
            part if part < self.high.0 => Priority::HIGH,
            part if part < self.high.0 + self.normal.0 => Priority::NORMAL,
            _ => Priority::LOW,
        }
    }
}
