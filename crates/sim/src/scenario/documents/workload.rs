//! `Workload`: which jobs arrive when, and what the world itself takes and breaks.

use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::job::{CheckpointShape, JobShape, ResourcesShape};
use crate::scenario::values::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WorkloadSpec {
    pub(crate) jobs: Option<Text>,
    pub(crate) arrivals: Option<Spanned<ArrivalsShape>>,
    /// What arrives at each of `arrivals.at`.
    pub(crate) job: Option<Spanned<JobShape>>,
    pub(crate) models: Option<Spanned<ModelsShape>>,
    pub(crate) gpus: Option<Spanned<GpusShape>>,
    pub(crate) cpus: Option<Spanned<CpusShape>>,
    pub(crate) serial: Option<Spanned<SerialShape>>,
    pub(crate) deadlines: Option<Spanned<DeadlinesShape>>,
    pub(crate) learners: Option<Spanned<LearnersShape>>,
    pub(crate) duration: Option<Spanned<DurationShape>>,
    pub(crate) priorities: Option<Spanned<PrioritiesShape>>,
    pub(crate) users: Option<Spanned<Vec<DrawnUserShape>>>,
    pub(crate) servers: Option<Spanned<ServersShape>>,
    pub(crate) noise: Option<NoiseShape>,
    pub(crate) estimates: Option<EstimatesShape>,
    #[serde(default)]
    pub(crate) faults: Vec<Spanned<FaultShape>>,
    pub(crate) checkpoint: Option<Spanned<CheckpointShape>>,
    pub(crate) costs: Option<CostsShape>,
    pub(crate) round: Option<Text>,
    pub(crate) rounds: Option<Text>,
    pub(crate) departures: Option<Text>,
    pub(crate) tick: Option<Text>,
    pub(crate) limit: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArrivalsShape {
    pub(crate) trace: Option<Text>,
    pub(crate) at: Option<Spanned<Vec<Text>>>,
    pub(crate) poisson: Option<PoissonShape>,
    pub(crate) within: Option<Text>,
}

/// Processes that share the cores of their nodes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LearnersShape {
    pub(crate) members: Option<Vec<Text>>,
    pub(crate) asks: Vec<Text>,
    pub(crate) uses: Vec<Text>,
    pub(crate) work: Vec<Spanned<WorkShareShape>>,
    pub(crate) reports: Option<Text>,
    pub(crate) noise: Option<Text>,
    pub(crate) ends: Option<Text>,
}

/// The core-time of one kind of jobs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WorkShareShape {
    pub(crate) share: Text,
    pub(crate) takes: Spanned<DurationShape>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GpusShape {
    pub(crate) per_member: Option<Text>,
    pub(crate) per_gpu: Option<Spanned<PerGpuShape>>,
    pub(crate) powers_of_two: Option<Text>,
    pub(crate) from: Option<Text>,
    pub(crate) to: Option<Text>,
}

/// What a member takes beside each of its GPUs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PerGpuShape {
    pub(crate) cpu: Option<Text>,
    pub(crate) memory: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PoissonShape {
    pub(crate) load: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DurationShape {
    pub(crate) median: Option<Text>,
    pub(crate) sigma: Option<Text>,
    pub(crate) at_most: Option<Text>,
    pub(crate) mean: Option<Text>,
    pub(crate) at_least: Option<Text>,
    pub(crate) from: Option<Text>,
    pub(crate) to: Option<Text>,
}

/// Cores that a job may have, and those that its owner asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CpusShape {
    pub(crate) min: Option<Text>,
    pub(crate) max: Text,
    pub(crate) asks: Option<Text>,
}

/// The part of an iteration that one core does.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SerialShape {
    pub(crate) from: Text,
    pub(crate) to: Text,
}

/// Times the time that a job takes as it is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeadlinesShape {
    pub(crate) from: Text,
    pub(crate) to: Text,
    pub(crate) binding: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EstimatesShape {
    pub(crate) error: Text,
    pub(crate) of: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NoiseShape {
    pub(crate) compute: Option<Text>,
    pub(crate) measured: Option<Text>,
    pub(crate) column: Option<Text>,
}

/// `all`, or a list of names.
#[derive(Debug)]
pub(crate) enum ModelsShape {
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
pub(crate) struct PrioritiesShape {
    pub(crate) high: Option<Text>,
    pub(crate) normal: Option<Text>,
    pub(crate) low: Option<Text>,
}

/// A user, and the share of jobs that are theirs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DrawnUserShape {
    pub(crate) name: Text,
    pub(crate) share: Text,
    pub(crate) queue: Option<Text>,
}

/// Parameter servers beside the workers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ServersShape {
    pub(crate) from: Text,
    pub(crate) to: Text,
    pub(crate) resources: ResourcesShape,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CostsShape {
    pub(crate) start: Option<Text>,
    pub(crate) stop: Option<Text>,
}

/// A node that goes, on which members fail or that is slow, a link that carries less or nothing, a job that hangs, or chances for every step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FaultShape {
    pub(crate) node: Option<Text>,
    pub(crate) link: Option<Spanned<EndsShape>>,
    pub(crate) job: Option<Text>,
    pub(crate) members: Option<Text>,
    pub(crate) slowdown: Option<Text>,
    pub(crate) notice: Option<Text>,
    pub(crate) rate: Option<Text>,
    pub(crate) at: Option<Text>,
    #[serde(rename = "for")]
    pub(crate) lasts: Option<Text>,
    pub(crate) steps: Option<Spanned<StepsShape>>,
}

/// The two ends of a cable.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EndsShape {
    pub(crate) from: Text,
    pub(crate) to: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StepsShape {
    pub(crate) fail: Option<Text>,
    pub(crate) late: Option<Text>,
    pub(crate) lost: Option<Text>,
    pub(crate) delay: Option<Text>,
}
