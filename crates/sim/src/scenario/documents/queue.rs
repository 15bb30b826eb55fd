//! `Queue`: whose work it is and how much it may hold.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::job::ResourcesShape;
use super::policy::WeightsShape;
use crate::scenario::values::Text;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct QueueSpec {
    pub(crate) parent: Option<Text>,
    pub(crate) weight: Option<Text>,
    pub(crate) quota: Option<ResourcesShape>,
    pub(crate) limit: Option<ResourcesShape>,
    pub(crate) lends: Option<bool>,
    pub(crate) borrows: Option<bool>,
    #[serde(default)]
    pub(crate) users: Vec<UserShape>,
    pub(crate) order: Option<Spanned<WeightsShape>>,
    pub(crate) history: Option<Text>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UserShape {
    pub(crate) name: Text,
    pub(crate) priority: Option<Text>,
    pub(crate) limit: Option<ResourcesShape>,
}
