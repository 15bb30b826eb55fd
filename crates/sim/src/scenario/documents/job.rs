//! `TrainingJob`: the same shape in every world.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::scaling::ScalingShape;
use crate::scenario::values::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct JobShape {
    pub(crate) queue: Option<Text>,
    pub(crate) priority_class_name: Option<Text>,
    pub(crate) suspend: Option<bool>,
    pub(crate) roles: Option<Spanned<Vec<Spanned<RoleShape>>>>,
    // One role of workers, said without `roles`.
    pub(crate) members: Option<Text>,
    pub(crate) min_members: Option<Text>,
    pub(crate) max_members: Option<Text>,
    pub(crate) resources: Option<ResourcesShape>,
    pub(crate) gpu_type: Option<Spanned<GpuTypesShape>>,
    pub(crate) template: Option<Spanned<IgnoredAny>>,
    /// For `local` and Kubernetes: a simulated member runs nothing.
    pub(crate) command: Option<Vec<Text>>,
    pub(crate) args: Option<Vec<Text>>,
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
    pub(crate) cpu: Option<Spanned<CpuShape>>,
    pub(crate) scaling: Option<Spanned<ScalingShape>>,
    pub(crate) model: Option<Text>,
    pub(crate) declared_model: Option<Text>,
    pub(crate) work: Option<Spanned<WorkShape>>,
    pub(crate) deadline: Option<Spanned<DeadlineShape>>,
    pub(crate) on_miss: Option<Text>,
    pub(crate) topology: Option<Spanned<TopologyShape>>,
    pub(crate) traffic: Option<Spanned<TrafficShape>>,
    pub(crate) checkpoint: Option<CheckpointShape>,
    pub(crate) progress: Option<ProgressShape>,
    pub(crate) backoff_limit: Option<Text>,
    pub(crate) ttl_seconds_after_finished: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RoleShape {
    pub(crate) name: Text,
    pub(crate) members: Option<Text>,
    pub(crate) min_members: Option<Text>,
    pub(crate) max_members: Option<Text>,
    pub(crate) resources: Option<ResourcesShape>,
    pub(crate) gpu_type: Option<Spanned<GpuTypesShape>>,
    pub(crate) template: Option<Spanned<IgnoredAny>>,
    pub(crate) command: Option<Vec<Text>>,
    pub(crate) args: Option<Vec<Text>>,
    #[expect(dead_code, reason = "a simulated member has no image")]
    image: Option<Text>,
}

/// A name, or a list of names of which any will do.
#[derive(Debug)]
pub(crate) enum GpuTypesShape {
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
pub(crate) struct ResourcesShape {
    pub(crate) cpu: Option<Text>,
    pub(crate) memory: Option<Text>,
    #[serde(rename = "nvidia.com/gpu")]
    pub(crate) gpus: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WorkShape {
    pub(crate) iterations: Option<Text>,
    pub(crate) duration: Option<Text>,
    pub(crate) target: Option<Spanned<TargetShape>>,
    pub(crate) max_iterations: Option<Text>,
}

/// The simulator has no loss curve: a target is read, and the work is what `maxIterations` bounds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "its shape is checked, its words are not used here")]
pub(crate) struct TargetShape {
    metric: Text,
    at_most: Option<Text>,
    at_least: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeadlineShape {
    pub(crate) after: Option<Text>,
    pub(crate) at: Option<Text>,
    pub(crate) binding: Option<Text>,
    pub(crate) value: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CpuShape {
    pub(crate) min: Option<Text>,
    pub(crate) max: Text,
    pub(crate) asks: Option<Text>,
    pub(crate) serial: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TopologyShape {
    pub(crate) preferred: Option<Text>,
    pub(crate) required: Option<Text>,
    pub(crate) teams: Option<TeamsShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TeamsShape {
    pub(crate) size: Text,
    pub(crate) within: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TrafficShape {
    pub(crate) period: Text,
    #[serde(default)]
    pub(crate) phases: Vec<PhaseShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PhaseShape {
    pub(crate) offset: Option<Text>,
    pub(crate) length: Text,
    pub(crate) rate: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CheckpointShape {
    pub(crate) every: Option<Text>,
    pub(crate) takes: Option<Text>,
    pub(crate) restart: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ProgressShape {
    pub(crate) from: Text,
}
