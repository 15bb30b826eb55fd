//! Learning category of a job, from its recent rate of improvement (the categories of SpeCon); no category is permanent.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, Instant};
use crate::tuning::ObserveTuning;

/// How fast a job's metric improves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Category {
    #[default]
    Progressing,
    /// Improved little at the last evaluation.
    Watching,
    /// Improved little at two evaluations in a row, and not much since.
    Converged,
}

impl Category {
    /// Whether the value is the default, which serde omits.
    pub(crate) fn is_progressing(&self) -> bool {
        *self == Self::Progressing
    }

    /// Category after one more evaluation: one step down below `little`, one step up from `much`, unchanged between.
    pub(crate) fn after(self, learns: f64, bounds: CategoryBounds) -> Self {
        match self {
            Self::Progressing if learns < bounds.little => Self::Watching,
            Self::Watching if learns < bounds.little => Self::Converged,
            Self::Converged if learns >= bounds.much => Self::Watching,
            Self::Watching if learns >= bounds.much => Self::Progressing,
            unchanged => unchanged,
        }
    }

    /// Weight of a job of this category when a migration's gains and losses are added up.
    pub(crate) fn weight(self, tuning: &ObserveTuning) -> f64 {
        match self {
            Self::Progressing => tuning.progressing_weight,
            Self::Watching => tuning.watching_weight,
            Self::Converged => 1.0,
        }
    }
}

/// Hysteresis between categories: improvement per second below `little` lowers the category, from `much` raises it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CategoryBounds {
    pub(crate) little: f64,
    pub(crate) much: f64,
}

impl CategoryBounds {
    /// The bound that SpeCon publishes, without hysteresis.
    pub(crate) fn published(tuning: &ObserveTuning) -> Self {
        Self { little: tuning.specon_learning_bound, much: tuning.specon_learning_bound }
    }

    /// Bounds relative to the median improvement of all jobs.
    pub(crate) fn relative_to(median: f64, tuning: &ObserveTuning) -> Self {
        Self { little: tuning.low_learning * median, much: tuning.high_learning * median }
    }
}

/// State of a job at its last evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CategoryEvaluation {
    pub(crate) at: Instant,
    /// Metric divided by its largest absolute value so far.
    pub(crate) value: f64,
    /// CPU time used so far.
    pub(crate) used: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_changes_by_one_step_per_evaluation() {
        let bounds = CategoryBounds::relative_to(1.0, &ObserveTuning::DEFAULT);
        let after = |looks: &[f64]| {
            looks.iter().fold(Category::default(), |category, learns| category.after(*learns, bounds))
        };
        assert_eq!(after(&[0.1]), Category::Watching);
        assert_eq!(after(&[0.1, 0.1]), Category::Converged);
        assert_eq!(after(&[0.1, 0.3, 0.3]), Category::Watching);
        assert_eq!(after(&[0.1, 0.1, 0.9, 0.9]), Category::Progressing);
    }
}
