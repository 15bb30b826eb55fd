//! `Workload`: which jobs arrive when, and what the world itself takes and breaks.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::job::{CheckpointShape, JobShape, ResourcesShape};
use crate::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadSpec {
    pub jobs: Option<Text>,
    pub arrivals: Option<Spanned<ArrivalsShape>>,
    /// What arrives at each of `arrivals.at`.
    pub job: Option<Spanned<JobShape>>,
    pub models: Option<Spanned<ModelsShape>>,
    pub gpus: Option<Spanned<GpusShape>>,
    pub cpus: Option<Spanned<CpusShape>>,
    pub serial: Option<Spanned<SerialShape>>,
    pub deadlines: Option<Spanned<DeadlinesShape>>,
    pub learners: Option<Spanned<LearnersShape>>,
    pub duration: Option<Spanned<DurationShape>>,
    pub priorities: Option<Spanned<PrioritiesShape>>,
    pub users: Option<Spanned<Vec<DrawnUserShape>>>,
    pub servers: Option<Spanned<ServersShape>>,
    pub noise: Option<NoiseShape>,
    pub estimates: Option<EstimatesShape>,
    #[serde(default)]
    pub faults: Vec<Spanned<FaultShape>>,
    pub checkpoint: Option<Spanned<CheckpointShape>>,
    pub costs: Option<CostsShape>,
    pub round: Option<Text>,
    pub rounds: Option<Text>,
    pub departures: Option<Text>,
    pub tick: Option<Text>,
    pub limit: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArrivalsShape {
    pub trace: Option<Text>,
    pub at: Option<Spanned<Vec<Text>>>,
    pub poisson: Option<PoissonShape>,
    pub within: Option<Text>,
}

/// Processes that share the cores of their nodes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnersShape {
    pub members: Option<Vec<Text>>,
    pub asks: Vec<Text>,
    pub uses: Vec<Text>,
    pub work: Vec<Spanned<WorkShareShape>>,
    pub reports: Option<Text>,
    pub noise: Option<Text>,
    pub ends: Option<Text>,
}

/// The core-time of one kind of jobs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkShareShape {
    pub share: Text,
    pub takes: Spanned<DurationShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpusShape {
    pub per_member: Option<Text>,
    pub per_gpu: Option<Spanned<PerGpuShape>>,
    pub powers_of_two: Option<Text>,
    pub from: Option<Text>,
    pub to: Option<Text>,
}

/// What a member takes beside each of its GPUs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PerGpuShape {
    pub cpu: Option<Text>,
    pub memory: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoissonShape {
    pub load: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DurationShape {
    pub median: Option<Text>,
    pub sigma: Option<Text>,
    pub at_most: Option<Text>,
    pub mean: Option<Text>,
    pub at_least: Option<Text>,
    pub from: Option<Text>,
    pub to: Option<Text>,
}

/// Cores that a job may have, and those that its owner asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CpusShape {
    pub min: Option<Text>,
    pub max: Text,
    pub asks: Option<Text>,
}

/// The part of an iteration that one core does.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SerialShape {
    pub from: Text,
    pub to: Text,
}

/// Times the time that a job takes as it is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadlinesShape {
    pub from: Text,
    pub to: Text,
    pub binding: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EstimatesShape {
    pub error: Text,
    pub of: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NoiseShape {
    pub compute: Option<Text>,
    pub measured: Option<Text>,
    pub column: Option<Text>,
}

/// `all`, or a list of names.
#[derive(Debug)]
pub enum ModelsShape {
    Word(String),
    List(Vec<Text>),
}

impl<'de> Deserialize<'de> for ModelsShape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ModelsVisitor)
    }
}

struct ModelsVisitor;

impl<'de> Visitor<'de> for ModelsVisitor {
    type Value = ModelsShape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`all` or a list of models")
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<ModelsShape, E> {
        Ok(ModelsShape::Word(word.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ModelsShape, A::Error> {
        Deserialize::deserialize(SeqAccessDeserializer::new(list)).map(ModelsShape::List)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PrioritiesShape {
    pub high: Option<Text>,
    pub normal: Option<Text>,
    pub low: Option<Text>,
}

/// A user, and the share of jobs that are theirs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DrawnUserShape {
    pub name: Text,
    pub share: Text,
    pub queue: Option<Text>,
}

/// Parameter servers beside the workers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServersShape {
    pub from: Text,
    pub to: Text,
    pub resources: ResourcesShape,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CostsShape {
    pub start: Option<Text>,
    pub stop: Option<Text>,
}

/// A node that goes, on which members fail or that is slow, a link that carries less or nothing, a job that hangs, or chances for every step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FaultShape {
    pub node: Option<Text>,
    pub link: Option<Spanned<EndsShape>>,
    pub job: Option<Text>,
    pub members: Option<Text>,
    pub slowdown: Option<Text>,
    pub notice: Option<Text>,
    pub rate: Option<Text>,
    pub agent: Option<Text>,
    pub delay: Option<Text>,
    pub at: Option<Text>,
    #[serde(rename = "for")]
    pub lasts: Option<Text>,
    pub steps: Option<Spanned<StepsShape>>,
}

/// The two ends of a cable.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndsShape {
    pub from: Text,
    pub to: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepsShape {
    pub fail: Option<Text>,
    pub late: Option<Text>,
    pub lost: Option<Text>,
    pub delay: Option<Text>,
}
