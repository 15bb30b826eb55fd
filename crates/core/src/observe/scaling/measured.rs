//! How fast a job was with the members it has had, as far as its reports tell.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Iterations, Share};

/// What was seen at each size, the least first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Measured {
    sizes: Vec<AtSize>,
    /// How long a thousand iterations took with the fewest and with the most members when that was last acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<(Duration, Duration)>,
}

/// What was seen at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AtSize {
    pub(super) members: u32,
    pub(super) iterations: Iterations,
    pub(super) time: Duration,
    /// How often it was looked at, and by how much a look differed from those before.
    looks: u32,
    off: Share,
}

/// So many sizes are remembered.
const MOST_SIZES: usize = 16;

/// Of what was seen for longer than this, the older half counts for half: jobs change.
const LONG: Duration = Duration::HOUR;

/// A job is as fast as it was believed to be unless it differs by more than so many millionths.
const NEWS: u64 = 30_000;

impl Measured {
    /// For serde: what is left out means this.
    pub fn is_nothing(&self) -> bool {
        self.sizes.is_empty()
    }

    /// So many iterations were done in such a time with so many members.
    pub(crate) fn note(&mut self, members: u32, iterations: Iterations, time: Duration) {
        let found = self.sizes.binary_search_by_key(&members, |size| size.members);
        let at = found.unwrap_or_else(|at| {
            self.sizes.insert(at, AtSize::unseen(members));
            at
        });
        self.sizes[at].note(iterations, time);
        if self.sizes.len() > MOST_SIZES {
            self.forget_what_was_seen_least(members);
        }
    }

    fn forget_what_was_seen_least(&mut self, but: u32) {
        let others = (0..self.sizes.len()).filter(|at| self.sizes[*at].members != but);
        if let Some(least) = others.min_by_key(|at| self.sizes[*at].time) {
            self.sizes.remove(least);
        }
    }

    /// The sizes at which anything was done.
    pub(super) fn seen(&self) -> impl Iterator<Item = &AtSize> {
        self.sizes.iter().filter(|size| size.iterations.0 > 0 && !size.time.is_zero())
    }

    /// Whether that is other than what was last acted on; from now on it is what is acted on.
    pub(crate) fn is_news(&mut self, takes: (Duration, Duration)) -> bool {
        let differs = |told: Duration, takes: Duration| {
            let (off, most) = (u128::from(told.0.abs_diff(takes.0)), u128::from(told.0) * u128::from(NEWS));
            off * u128::from(Share::WHOLE.0) > most
        };
        let news = self.told.is_none_or(|told| differs(told.0, takes.0) || differs(told.1, takes.1));
        if news {
            self.told = Some(takes);
        }
        news
    }
}

impl AtSize {
    const fn unseen(members: u32) -> Self {
        Self { members, iterations: Iterations(0), time: Duration::ZERO, looks: 0, off: Share::NONE }
    }

    fn note(&mut self, iterations: Iterations, time: Duration) {
        if let Some(off) = self.differs(iterations, time) {
            let (before, now) = (u128::from(self.time.0), u128::from(time.0));
            let off = u128::from(self.off.0) * before + u128::from(off.0) * now;
            self.off = Share(u32::try_from(off / (before + now).max(1)).unwrap_or(Share::WHOLE.0));
        }
        self.looks = self.looks.saturating_add(1);
        self.iterations = Iterations(self.iterations.0.saturating_add(iterations.0));
        self.time += time;
        if self.time > LONG {
            self.iterations = Iterations(self.iterations.0.div_ceil(2));
            self.time = Duration(self.time.0 / 2);
        }
    }

    /// By what part that is more or less than was to be expected after what was seen before.
    fn differs(&self, iterations: Iterations, time: Duration) -> Option<Share> {
        if self.time.is_zero() || self.iterations.0 == 0 {
            return None;
        }
        let expected = u128::from(self.iterations.0) * u128::from(time.0) / u128::from(self.time.0);
        let expected = u64::try_from(expected).unwrap_or(u64::MAX).max(1);
        Some(Share::ratio(iterations.0.abs_diff(expected), expected))
    }

    /// By what part the mean of all looks may be wrong.
    pub(super) fn uncertainty(&self) -> f64 {
        self.off.as_f64() / f64::from(self.looks.max(1)).sqrt()
    }
}
