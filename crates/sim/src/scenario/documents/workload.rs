//! `Workload`: which jobs arrive when, and what the world itself takes and breaks.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use super::job::{CheckpointShape, JobShape};
use crate::scenario::values::Text;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WorkloadSpec {
    pub(crate) jobs: Option<Text>,
    pub(crate) arrivals: Option<Spanned<ArrivalsShape>>,
    /// What arrives at each of `arrivals.at`.
    pub(crate) job: Option<Spanned<JobShape>>,
    pub(crate) models: Option<Spanned<IgnoredAny>>,
    pub(crate) gpus: Option<Spanned<GpusShape>>,
    pub(crate) duration: Option<Spanned<IgnoredAny>>,
    pub(crate) priorities: Option<Spanned<PrioritiesShape>>,
    pub(crate) noise: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    pub(crate) faults: Vec<Spanned<FaultShape>>,
    pub(crate) checkpoint: Option<Spanned<CheckpointShape>>,
    pub(crate) costs: Option<CostsShape>,
    pub(crate) tick: Option<Text>,
    pub(crate) limit: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ArrivalsShape {
    pub(crate) trace: Option<Text>,
    pub(crate) at: Option<Spanned<Vec<Text>>>,
    pub(crate) poisson: Option<Spanned<IgnoredAny>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GpusShape {
    pub(crate) per_member: Option<Text>,
    pub(crate) powers_of_two: Option<Spanned<IgnoredAny>>,
    pub(crate) from: Option<Spanned<IgnoredAny>>,
    pub(crate) to: Option<Spanned<IgnoredAny>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PrioritiesShape {
    pub(crate) high: Option<Text>,
    pub(crate) normal: Option<Text>,
    pub(crate) low: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CostsShape {
    pub(crate) start: Option<Text>,
    pub(crate) stop: Option<Text>,
}

/// Either a node that goes, or chances for every step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FaultShape {
    pub(crate) node: Option<Text>,
    pub(crate) at: Option<Text>,
    #[serde(rename = "for")]
    pub(crate) lasts: Option<Text>,
    pub(crate) steps: Option<Spanned<StepsShape>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StepsShape {
    pub(crate) fail: Option<Text>,
    pub(crate) late: Option<Text>,
    pub(crate) lost: Option<Text>,
    pub(crate) delay: Option<Text>,
}
