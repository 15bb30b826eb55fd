//! The shapes of scenario documents as they are written in YAML, before anything in them is understood.
//!
//! Scalars stay text with a position ([`Text`]); `metronome-sim` gives them units and meaning. Unknown fields end here.
//!
//! This is a crate of its own for the sake of build time: the YAML parser is compiled once for every shape, which took
//! half of the time of `metronome-sim`. Files are read once, so the crate is built with little optimisation, and beside
//! `metronome-core`, on which it does not depend.

mod cluster;
mod job;
mod policy;
mod queue;
mod scaling;
mod workload;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Error, Spanned};

pub use cluster::{Cable, ClusterSpec, Links, NodeGroup};
pub use job::{
    CheckpointShape, CpuShape, DeadlineShape, GpuTypesShape, JobShape, ResourcesShape, RoleShape, TeamsShape,
    TopologyShape, TrafficShape, WorkShape,
};
pub use policy::{OrderShape, PolicySpec, TuningShape, WeightsShape};
pub use queue::QueueSpec;
pub use scaling::{ScalingShape, ScalingSpec, SizesShape};
pub use workload::{
    CpusShape, DeadlinesShape, DrawnUserShape, DurationShape, EndsShape, EstimatesShape, FaultShape,
    GpusShape, LearnersShape, ModelsShape, NoiseShape, PoissonShape, PrioritiesShape, SerialShape,
    ServersShape, StepsShape, WorkShareShape, WorkloadSpec,
};

/// A scalar exactly as written, with its position. Numbers stay text until `metronome-sim` gives them a unit.
pub type Text = Spanned<String>;

/// One document. What is missing or unknown at its top is judged by `metronome-sim`, which says where it is.
#[derive(Debug, Default)]
pub struct Document {
    pub api_version: Option<Text>,
    pub kind: Option<Text>,
    pub metadata: Option<Metadata>,
    pub spec: Spec,
}

#[derive(Debug, Default)]
pub enum Spec {
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
pub struct Metadata {
    pub name: Text,
    pub namespace: Option<Text>,
    #[serde(default)]
    pub labels: BTreeMap<String, Text>,
    #[serde(default)]
    pub annotations: BTreeMap<String, Text>,
}

/// All documents of a file, within a budget: aliases, depth and size are bounded before anything is built of them.
pub fn parse(text: &str) -> Result<Vec<Spanned<Document>>, Error> {
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
    serde_saphyr::from_multiple_with_options(text, options)
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
