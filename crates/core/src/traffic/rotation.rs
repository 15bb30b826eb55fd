//! Rotations: time windows in each of which jobs that share links are served in another order.
//!
//! Where iterations of jobs differ in length, every fixed order serves some jobs sooner than fair sharing and others later.
//! A cycle in which several orders have a share of the windows can serve all of them sooner. The last window of a cycle
//! is always shared fairly: it is the reference with which the agent compares the others.

use serde::{Deserialize, Serialize};

use super::Follows;
use crate::model::units::{Duration, Instant};

/// A cycle of equal windows, counted from the beginning of the world's time, so that all jobs change at the same moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    #[serde(rename = "windowNs")]
    pub window: Duration,
    pub slots: [Slot; Rotation::WINDOWS],
}

/// The class of a job in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Slot {
    /// From 0, served first, to 7.
    #[serde(default)]
    pub class: u8,
    #[serde(default, skip_serializing_if = "Follows::is_nothing")]
    pub follows: Follows,
}

impl Slot {
    /// Fair sharing, if all jobs have it.
    pub const FAIR: Self = Self { class: 0, follows: Follows::Nothing };

    pub const fn in_class(class: u8) -> Self {
        Self { class, follows: Follows::Nothing }
    }

    pub const fn least_left(class: u8) -> Self {
        Self { class, follows: Follows::LeastLeft }
    }

    pub const fn first_come(class: u8) -> Self {
        Self { class, follows: Follows::FirstCome }
    }
}

impl Rotation {
    /// Windows of a cycle: one in twelve is the fair reference. Agents and directives have the same number, so it is a protocol
    /// and no tuning entry.
    pub const WINDOWS: usize = 12;

    /// The window of a cycle that is shared fairly.
    pub const REFERENCE: usize = Self::WINDOWS - 1;

    /// The number of the window within its cycle.
    pub fn window_at(&self, now: Instant) -> usize {
        ((now.0 / self.window.0.max(1)) % Self::WINDOWS as u64) as usize
    }

    pub fn at(&self, now: Instant) -> Slot {
        self.slots[self.window_at(now)]
    }

    pub fn cycle(&self) -> Duration {
        self.window.times(Self::WINDOWS as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_each_other_and_begin_again() {
        let mut slots = [Slot::first_come(0); Rotation::WINDOWS];
        slots[Rotation::REFERENCE] = Slot::FAIR;
        let rotation = Rotation { window: Duration(10), slots };
        let windows = [0, 9, 10, 119, 120].map(|at| rotation.window_at(Instant(at)));
        assert_eq!(windows, [0, 0, 1, 11, 0]);
        assert_eq!((rotation.at(Instant(115)), rotation.at(Instant(121))), (Slot::FAIR, Slot::first_come(0)));
    }
}
