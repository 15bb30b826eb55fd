//! What has happened to requests.

use std::time::Duration;

use super::rule::{Fate, Fault};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub requests: u64,
    /// Answered with an error or not at all, and not carried out.
    pub refused: u64,
    /// Carried out, but the client was not told.
    pub lost: u64,
    pub delayed: u64,
}

impl Tally {
    /// The tally of one request.
    pub(super) fn of(fate: &Fate) -> Self {
        let refused = matches!(fate.fault, Some(Fault::Answer(_) | Fault::Busy { .. } | Fault::Drop));
        let lost = matches!(fate.fault, Some(Fault::LoseAnswer | Fault::HideAnswer));
        let delayed = fate.delay > Duration::ZERO;
        Self { requests: 1, refused: refused.into(), lost: lost.into(), delayed: delayed.into() }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            refused: self.refused + other.refused,
            lost: self.lost + other.lost,
            delayed: self.delayed + other.delayed,
        }
    }
}
