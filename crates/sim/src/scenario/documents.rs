//! The documents of a file, and the parser's errors in our words.

use serde_saphyr::{Error, MessageFormatter, Spanned, UserMessageFormatter};

use super::error::{Problem, quoted};
use super::values::position;
use crate::near::{did_you_mean, listed};

pub(crate) use metronome_documents::{
    Cable, CheckpointShape, ClusterSpec, CpuShape, CpusShape, DeadlineShape, DeadlinesShape, Document,
    DrawnUserShape, DurationShape, EndsShape, EstimatesShape, FaultShape, GpuTypesShape, GpusShape, JobShape,
    LearnersShape, Links, Metadata, ModelsShape, NodeGroup, NoiseShape, OrderShape, PoissonShape, PolicySpec,
    PrioritiesShape, QueueSpec, ResourcesShape, RoleShape, ScalingShape, ScalingSpec, SerialShape,
    ServersShape, SizesShape, Spec, StepsShape, TeamsShape, TopologyShape, TrafficShape, TuningShape,
    WeightsShape, WorkShape, WorkShareShape, WorkloadSpec,
};

/// All documents of a file.
pub(crate) fn parse(text: &str) -> Result<Vec<Spanned<Document>>, Problem> {
    metronome_documents::parse(text).map_err(|error| problem(&error))
}

/// The parser's error in our words where it is about our fields, in its own where it is about YAML.
fn problem(error: &Error) -> Problem {
    let (message, hint) = match innermost(error) {
        Error::SerdeUnknownField { field, expected, .. } => unknown("field", field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => unknown("word", variant, expected),
        Error::SerdeMissingField { field, .. } => (format!("missing field `{field}`"), None),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("field {} is given twice", quoted(key)), None)
        }
        Error::Unexpected { expected, .. } => (format!("{} is expected here", in_words(expected)), None),
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => (TOO_LARGE.into(), None),
        other => match UserMessageFormatter.format_message(other).into_owned() {
            message if message == "recursion limit exceeded" => (TOO_LARGE.into(), None),
            message => (message, None),
        },
    };
    let problem = match error.location() {
        Some(location) => Problem::at(position(location), message),
        None => Problem::whole(message),
    };
    problem.with_hint_if(hint)
}

const TOO_LARGE: &str = "it is nested too deep or has more values than a scenario can have";

/// An error under an alias is told as the error it is, at the place of the alias.
fn innermost(error: &Error) -> &Error {
    match error.without_snippet() {
        Error::AliasError { error, .. } => innermost(error),
        other => other,
    }
}

fn unknown(what: &str, name: &str, expected: &[&'static str]) -> (String, Option<String>) {
    let known = expected.iter().copied();
    let message = format!("unknown {what} {}; known here are {}", quoted(name), listed(known.clone()));
    (message, did_you_mean(name, known))
}

fn in_words(event: &str) -> &str {
    match event {
        "sequence start" => "a list",
        "mapping start" => "a group of fields such as {name: value}",
        "string scalar" => "a single value",
        other => other,
    }
}
