//! How much a TrainingJob has to do.

use std::sync::Arc;

use metronome_core::model::job::{JobSpec, Work};
use metronome_core::model::units::{Duration, Iterations};
use serde_saphyr::Spanned;

use super::World;
use crate::model::{Pattern, TrainingModel};
use crate::scenario::documents::WorkShape;
use crate::scenario::error::{Position, Problem};
use crate::scenario::training::{self, Amount};
use crate::scenario::values::{Placed, Text, some_quantity, whole};

/// More iterations than any job has; above it a count is a mistake.
const MOST_ITERATIONS: u64 = 1_000_000_000_000;

/// Work as it is written: iterations, a duration, or both. Of a target only its bound is known.
pub(super) struct Written<'a> {
    iterations: Option<(u64, &'a Text)>,
    duration: Option<(Duration, &'a Text)>,
    at: Position,
}

const HOW_LONG: &str = "say how long it takes alone: work: {duration: 10m}";

impl<'a> Written<'a> {
    pub(super) fn of(shape: Option<&'a Spanned<WorkShape>>, at: Position) -> Result<Self, Problem> {
        let Some(written) = shape else { return Err(at.problem("missing field `work`").with_hint(HOW_LONG)) };
        let WorkShape { iterations, duration, target, max_iterations } = &written.value;
        if let (Some(target), None) = (target, max_iterations) {
            return Err(target.problem("a target needs `maxIterations`: there is no loss curve to follow"));
        }
        let count = match (iterations, max_iterations) {
            (Some(_), Some(bound)) => {
                return Err(bound.problem("`iterations` and `maxIterations` are both given"));
            }
            (count, bound) => count.as_ref().or(bound.as_ref()),
        };
        let duration = duration
            .as_ref()
            .map(|text| some_quantity(text, "the duration of a job").map(|duration| (duration, text)));
        Ok(Self {
            iterations: count.map(|text| whole(text, 1..=MOST_ITERATIONS).map(|n| (n, text))).transpose()?,
            duration: duration.transpose()?,
            at: written.at(),
        })
    }

    /// Tells the job how much work it is. With a pattern that links can carry it becomes a training loop; traffic on a
    /// cluster without links stays what it is for the scheduler, a hint.
    pub(super) fn give(
        &self,
        spec: &mut JobSpec,
        pattern: Option<Pattern>,
        world: &World<'_>,
    ) -> Result<Option<Arc<TrainingModel>>, Problem> {
        match pattern {
            Some(Pattern::Phases(traffic)) if world.cluster.fabric.is_empty() => {
                spec.work = self.plain(Some(traffic.period()))?;
                spec.profile = Some(Arc::new(training::declared(traffic)));
                Ok(None)
            }
            Some(pattern) => self.train(spec, pattern, world).map(Some),
            None => {
                spec.work = self.plain(None)?;
                Ok(None)
            }
        }
    }

    fn train(
        &self,
        spec: &mut JobSpec,
        pattern: Pattern,
        world: &World<'_>,
    ) -> Result<Arc<TrainingModel>, Problem> {
        let (amount, text) = match (self.iterations, self.duration) {
            (Some(_), Some((_, second))) => {
                return Err(
                    second.problem("`iterations` and `duration` are both given: an iteration has its own")
                );
            }
            (Some((count, text)), None) => (Amount::Iterations(count), text),
            (None, Some((duration, text))) => (Amount::Lasting(duration), text),
            (None, None) => return Err(self.nothing()),
        };
        world.ground.train(spec, pattern, amount).ok_or_else(|| too_long(text))
    }

    fn plain(&self, period: Option<Duration>) -> Result<Work, Problem> {
        let alone = match (self.duration, self.iterations, period) {
            (Some((duration, _)), ..) => duration,
            (None, Some((count, text)), Some(period)) => {
                let total = period.0.checked_mul(count).filter(|total| *total <= u64::MAX / 2);
                total.map(Duration).ok_or_else(|| too_long(text))?
            }
            (None, Some((_, text)), None) => {
                let message =
                    "how long an iteration takes is not known: there is no `model` and no `traffic`";
                return Err(text.problem(message).with_hint(HOW_LONG));
            }
            (None, None, _) => return Err(self.nothing()),
        };
        let iterations = self.iterations.map(|(count, _)| Iterations(count));
        Ok(Work { iterations, alone: Some(alone), ..Work::default() })
    }

    fn nothing(&self) -> Problem {
        self.at.problem("there is no work in it").with_hint(HOW_LONG)
    }
}

fn too_long(text: &Text) -> Problem {
    text.problem("its iterations take longer than can be counted")
}
