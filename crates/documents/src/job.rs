//! `TrainingJob`: the same shape in every world.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::scaling::ScalingShape;
use crate::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobShape {
    pub queue: Option<Text>,
    pub priority_class_name: Option<Text>,
    pub suspend: Option<bool>,
    pub roles: Option<Spanned<Vec<Spanned<RoleShape>>>>,
    // One role of workers, said without `roles`.
    pub members: Option<Text>,
    pub min_members: Option<Text>,
    pub max_members: Option<Text>,
    pub resources: Option<ResourcesShape>,
    pub gpu_type: Option<Spanned<GpuTypesShape>>,
    pub template: Option<Spanned<IgnoredAny>>,
    /// For `local` and Kubernetes: a simulated member runs nothing.
    pub command: Option<Vec<Text>>,
    pub args: Option<Vec<Text>>,
    // For Kubernetes alone, so that a job is asked about by the file that is applied there.
    #[expect(dead_code, reason = "a simulated member has no image")]
    image: Option<Text>,
    #[expect(dead_code, reason = "a simulation has one scheduler")]
    scheduler_name: Option<Text>,
    #[expect(dead_code, reason = "simulated members need not find each other")]
    rendezvous: Option<Text>,
    #[expect(dead_code, reason = "simulated members need not find each other")]
    port: Option<Text>,
    #[expect(dead_code, reason = "what fails in a simulation is said by its faults")]
    restart: Option<Text>,
    #[expect(dead_code, reason = "what fails in a simulation is said by its faults")]
    failures: Option<Vec<IgnoredAny>>,
    /// One process whose cores may be changed while it runs.
    pub cpu: Option<Spanned<CpuShape>>,
    pub scaling: Option<Spanned<ScalingShape>>,
    pub model: Option<Text>,
    pub declared_model: Option<Text>,
    pub work: Option<Spanned<WorkShape>>,
    pub deadline: Option<Spanned<DeadlineShape>>,
    pub on_miss: Option<Text>,
    pub topology: Option<Spanned<TopologyShape>>,
    pub traffic: Option<Spanned<TrafficShape>>,
    pub checkpoint: Option<CheckpointShape>,
    pub progress: Option<ProgressShape>,
    pub backoff_limit: Option<Text>,
    pub ttl_seconds_after_finished: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleShape {
    pub name: Text,
    pub members: Option<Text>,
    pub min_members: Option<Text>,
    pub max_members: Option<Text>,
    pub resources: Option<ResourcesShape>,
    pub gpu_type: Option<Spanned<GpuTypesShape>>,
    pub template: Option<Spanned<IgnoredAny>>,
    pub command: Option<Vec<Text>>,
    pub args: Option<Vec<Text>>,
    #[expect(dead_code, reason = "a simulated member has no image")]
    image: Option<Text>,
}

/// A name, or a list of names of which any will do.
#[derive(Debug)]
pub enum GpuTypesShape {
    One(String),
    AnyOf(Vec<Text>),
}

impl<'de> Deserialize<'de> for GpuTypesShape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(GpuTypesVisitor)
    }
}

struct GpuTypesVisitor;

impl<'de> Visitor<'de> for GpuTypesVisitor {
    type Value = GpuTypesShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a GPU type or a list of names")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<GpuTypesShape, E> {
        Ok(GpuTypesShape::One(name.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<GpuTypesShape, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(GpuTypesShape::AnyOf)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourcesShape {
    pub cpu: Option<Text>,
    pub memory: Option<Text>,
    #[serde(rename = "nvidia.com/gpu")]
    pub gpus: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkShape {
    pub iterations: Option<Text>,
    pub duration: Option<Text>,
    pub target: Option<Spanned<TargetShape>>,
    pub max_iterations: Option<Text>,
}

/// The simulator has no loss curve: a target is read, and the work is what `maxIterations` bounds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "its shape is checked, its words are not used here")]
pub struct TargetShape {
    metric: Text,
    at_most: Option<Text>,
    at_least: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadlineShape {
    pub after: Option<Text>,
    pub at: Option<Text>,
    pub binding: Option<Text>,
    pub value: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CpuShape {
    pub min: Option<Text>,
    pub max: Text,
    pub asks: Option<Text>,
    pub serial: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TopologyShape {
    pub preferred: Option<Text>,
    pub required: Option<Text>,
    pub teams: Option<TeamsShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TeamsShape {
    pub size: Text,
    pub within: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrafficShape {
    pub period: Text,
    #[serde(default)]
    pub phases: Vec<PhaseShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PhaseShape {
    pub offset: Option<Text>,
    pub length: Text,
    pub rate: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckpointShape {
    pub every: Option<Text>,
    pub takes: Option<Text>,
    pub restart: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgressShape {
    pub from: Text,
}
