//! `Policy`: a named policy as changes to one that is built in.

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::scenario::values::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PolicySpec {
    pub(crate) base: Option<Text>,
    pub(crate) order: Option<OrderShape>,
    pub(crate) gangs: Option<Text>,
    pub(crate) queueing: Option<Text>,
    pub(crate) sharing: Option<Text>,
    pub(crate) sizing: Option<Text>,
    pub(crate) preemption: Option<Text>,
    pub(crate) placement: Option<Text>,
    pub(crate) links: Option<Text>,
    pub(crate) slowdowns: Option<Text>,
    pub(crate) moving: Option<Text>,
    pub(crate) throttling: Option<Text>,
    pub(crate) deadlines: Option<Text>,
}

/// A word, or a word with what it needs: `order: {leastAttained: {limits: [3250, 7200]}}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum OrderShape {
    Fifo,
    Priority,
    Srtf,
    Srsf,
    LeastAttained(LimitsShape),
    Weighted(Box<Spanned<WeightsShape>>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LimitsShape {
    pub(crate) limits: Spanned<Vec<Text>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WeightsShape {
    pub(crate) user: Option<Text>,
    pub(crate) task: Option<Text>,
    pub(crate) wait: Option<Text>,
    pub(crate) width: Option<Text>,
    pub(crate) brevity: Option<Text>,
    pub(crate) window: Option<Text>,
}
