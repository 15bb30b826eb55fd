//! How much a job still learns, in three words: for a while, and never for good.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Instant};

/// What a job learns is looked at so often.
pub(crate) const CHECKED_EVERY: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Category {
    #[default]
    Progressing,
    /// It learned little when it was last looked at.
    Watching,
    /// It learned little twice in a row, and has not learned much since.
    Converged,
}

impl Category {
    /// For serde: what is left out means this.
    pub(crate) fn is_progressing(&self) -> bool {
        *self == Self::Progressing
    }

    /// After another look: one step down where it learned less than `little`, one step up from `much` on, and where it
    /// was in between.
    pub(crate) fn after(self, learns: f64, bounds: Bounds) -> Self {
        match self {
            Self::Progressing if learns < bounds.little => Self::Watching,
            Self::Watching if learns < bounds.little => Self::Converged,
            Self::Converged if learns >= bounds.much => Self::Watching,
            Self::Watching if learns >= bounds.much => Self::Progressing,
            unchanged => unchanged,
        }
    }

    /// How much a job of this kind counts when it is weighed whom a move helps.
    pub(crate) const fn counts(self) -> f64 {
        match self {
            Self::Progressing => 2.0,
            Self::Watching => 1.5,
            Self::Converged => 1.0,
        }
    }
}

/// What is little, and what is much. Between the two nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) little: f64,
    pub(crate) much: f64,
}

impl Bounds {
    /// The published bound, without anything in between.
    pub(crate) const PUBLISHED: Self = Self { little: 0.1, much: 0.1 };

    /// Relative to what the job in the middle learns.
    pub(crate) fn beside(median: f64) -> Self {
        Self { little: 0.25 * median, much: 0.5 * median }
    }
}

/// The last look at a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Look {
    pub(crate) at: Instant,
    /// The metric over the largest it ever was.
    pub(crate) value: f64,
    /// The CPU time it had used by then.
    pub(crate) used: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_two_looks_to_be_converged_and_two_to_be_back() {
        let bounds = Bounds::beside(1.0);
        let after = |looks: &[f64]| {
            looks.iter().fold(Category::default(), |category, learns| category.after(*learns, bounds))
        };
        assert_eq!(after(&[0.1]), Category::Watching);
        assert_eq!(after(&[0.1, 0.1]), Category::Converged);
        assert_eq!(after(&[0.1, 0.3, 0.3]), Category::Watching);
        assert_eq!(after(&[0.1, 0.1, 0.9, 0.9]), Category::Progressing);
    }
}
