//! `Policy`: a named policy as changes to one that is built in.

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicySpec {
    pub base: Option<Text>,
    pub order: Option<OrderShape>,
    pub gangs: Option<Text>,
    pub queueing: Option<Text>,
    pub sharing: Option<Text>,
    pub sizing: Option<Text>,
    pub preemption: Option<Text>,
    pub placement: Option<Text>,
    pub links: Option<Text>,
    pub slowdowns: Option<Text>,
    pub moving: Option<Text>,
    pub throttling: Option<Text>,
    pub deadlines: Option<Text>,
}

/// A word, or a word with what it needs: `order: {leastAttained: {limits: [3250, 7200]}}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OrderShape {
    Fifo,
    Priority,
    Srtf,
    Srsf,
    LeastAttained(LimitsShape),
    Weighted(Box<Spanned<WeightsShape>>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsShape {
    pub limits: Spanned<Vec<Text>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WeightsShape {
    pub user: Option<Text>,
    pub task: Option<Text>,
    pub wait: Option<Text>,
    pub width: Option<Text>,
    pub brevity: Option<Text>,
    pub window: Option<Text>,
}
