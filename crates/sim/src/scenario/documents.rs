//! The shapes of the documents as they are written, before anything in them is understood.
//!
//! Scalars stay text with a place (`Text`); `translate` gives them units and meaning. Unknown fields end here.

mod cluster;
mod job;
mod policy;
mod queue;
mod scaling;
mod workload;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Error, MessageFormatter, Spanned, UserMessageFormatter};

use super::error::{Problem, quoted};
use super::values::{Text, position};
use crate::near::{did_you_mean, listed};

pub(crate) use cluster::{Cable, ClusterSpec, Links, NodeGroup};
pub(crate) use job::{
    CheckpointShape, CpuShape, DeadlineShape, GpuTypesShape, JobShape, ResourcesShape, RoleShape, TeamsShape,
    TopologyShape, TrafficShape, WorkShape,
};
pub(crate) use policy::{OrderShape, PolicySpec, WeightsShape};
pub(crate) use queue::QueueSpec;
pub(crate) use scaling::{ScalingShape, ScalingSpec, SizesShape};
pub(crate) use workload::{
    CpusShape, DeadlinesShape, DrawnUserShape, DurationShape, EndsShape, EstimatesShape, FaultShape,
    GpusShape, LearnersShape, ModelsShape, NoiseShape, PoissonShape, PrioritiesShape, SerialShape,
    ServersShape, StepsShape, WorkShareShape, WorkloadSpec,
};

/// One document. What is missing or unknown at its top is judged by `translate`, which can say where it is.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) api_version: Option<Text>,
    pub(crate) kind: Option<Text>,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) spec: Spec,
}

#[derive(Debug, Default)]
pub(crate) enum Spec {
    #[default]
    Missing,
    /// Its shape could not be known, because `kind` had not been said yet.
    BeforeKind(Spanned<IgnoredAny>),
    OfUnknownKind,
    Cluster(Box<ClusterSpec>),
    Workload(Box<WorkloadSpec>),
    TrainingJob(Box<JobShape>),
    Queue(Box<QueueSpec>),
    Policy(Box<PolicySpec>),
    Scaling(Box<ScalingSpec>),
}

#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Metadata {
    pub(crate) name: Text,
    pub(crate) namespace: Option<Text>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, Text>,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, Text>,
}

/// All documents of a file, within a budget: aliases, depth and size are bounded before anything is built of them.
pub(crate) fn parse(text: &str) -> Result<Vec<Spanned<Document>>, Problem> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            flow_nesting_limit: 32,
            max_documents: 50_000,
            max_nodes: 500_000,
            max_events: 2_000_000,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_recorded_anchor_events: 100_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        strict_booleans: true,
        with_snippet: false,
        emit_comments: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| problem(&error))
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

/// The shape of `spec` follows from `kind`, so a document is read field by field.
impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document with apiVersion, kind, metadata and spec")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Document, A::Error> {
        const FIELDS: &[&str] = &["apiVersion", "kind", "metadata", "spec"];
        let mut document = Document::default();
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "apiVersion" => document.api_version = Some(fields.next_value()?),
                "kind" => document.kind = Some(fields.next_value()?),
                "metadata" => document.metadata = Some(fields.next_value()?),
                "spec" => document.spec = spec(document.kind.as_ref(), &mut fields)?,
                other => return Err(serde::de::Error::unknown_field(other, FIELDS)),
            }
        }
        Ok(document)
    }
}

fn spec<'de, A: MapAccess<'de>>(kind: Option<&Text>, fields: &mut A) -> Result<Spec, A::Error> {
    let Some(kind) = kind else { return fields.next_value().map(Spec::BeforeKind) };
    Ok(match kind.value.as_str() {
        "Cluster" => Spec::Cluster(fields.next_value()?),
        "Workload" => Spec::Workload(fields.next_value()?),
        "TrainingJob" => Spec::TrainingJob(fields.next_value()?),
        "Queue" => Spec::Queue(fields.next_value()?),
        "Policy" => Spec::Policy(fields.next_value()?),
        "Scaling" => Spec::Scaling(fields.next_value()?),
        _ => {
            fields.next_value::<IgnoredAny>()?;
            Spec::OfUnknownKind
        }
    })
}
