//! What a TrainingJob computes and sends.

use metronome_core::model::cluster::Cluster;
use metronome_core::model::profile::{Phase, ProfileError, Traffic};
use serde_saphyr::Spanned;

use super::models;
use crate::model::Pattern;
use crate::scenario::documents::{JobShape, TrafficShape};
use crate::scenario::error::Problem;
use crate::scenario::values::{Placed, quantity, quantity_or_none, some_quantity};

/// What a job computes and sends, by its model or by its own word.
pub(super) fn pattern(shape: &JobShape, cluster: &Cluster) -> Result<Option<Pattern>, Problem> {
    match (&shape.model, &shape.traffic) {
        (Some(_), Some(second)) => {
            Err(second.problem("`model` and `traffic` are both given: a model knows its traffic"))
        }
        (Some(name), None) => models::model(name, cluster).map(Pattern::Gradients).map(Some),
        (None, Some(written)) => traffic(written).map(Pattern::Phases).map(Some),
        (None, None) => Ok(None),
    }
}

fn traffic(written: &Spanned<TrafficShape>) -> Result<Traffic, Problem> {
    let TrafficShape { period, phases } = &written.value;
    let shapes = phases;
    let phases = shapes.iter().map(|phase| {
        Ok(Phase {
            offset: quantity_or_none(phase.offset.as_ref())?,
            length: quantity(&phase.length)?,
            rate: some_quantity(&phase.rate, "the rate of a phase")?,
        })
    });
    let phases = phases.collect::<Result<Vec<_>, Problem>>()?;
    Traffic::new(quantity(period)?, phases).map_err(|error| {
        let message = error.to_string();
        match error {
            ProfileError::NoPeriod => period.problem(message),
            ProfileError::PhaseLength(index) | ProfileError::Overlap(_, index) => {
                shapes[index].length.problem(message)
            }
            ProfileError::PhaseOffset(index) => {
                shapes[index].offset.as_ref().unwrap_or(&shapes[index].length).problem(message)
            }
            ProfileError::TooManyPhases | ProfileError::NoCompute => written.problem(message),
        }
    })
}
