//! `Queue`: whose work it is and how much it may hold.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::job::ResourcesShape;
use super::policy::WeightsShape;
use crate::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueueSpec {
    pub parent: Option<Text>,
    pub weight: Option<Text>,
    pub quota: Option<ResourcesShape>,
    pub limit: Option<ResourcesShape>,
    pub lends: Option<bool>,
    pub borrows: Option<bool>,
    #[serde(default)]
    pub users: Vec<UserShape>,
    pub order: Option<Spanned<WeightsShape>>,
    pub history: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserShape {
    pub name: Text,
    pub priority: Option<Text>,
    pub limit: Option<ResourcesShape>,
}
