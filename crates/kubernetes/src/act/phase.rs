//! The phase of a gang, written back to the object that declared it.

use serde::Serialize;
use serde_json::Value;

use super::hands::Hands;
use crate::deed::GroupRef;
use crate::request::{Call, Verb};

#[derive(Debug, Serialize)]
struct Patch<'a> {
    metadata: Identity<'a>,
    status: &'a Value,
}

/// Not another of its name.
#[derive(Debug, Serialize)]
struct Identity<'a> {
    uid: &'a str,
}

impl Hands {
    /// Best effort: a phase that could not be written is written with the next.
    pub(super) async fn write_phase(&self, group: &GroupRef, status: &Value) {
        let GroupRef { api_version, plural, namespace, name, uid, .. } = group;
        let path = format!("/apis/{api_version}/namespaces/{namespace}/{plural}/{name}/status");
        let call = Call::with(
            Verb::MergePatch,
            "groups/status",
            path,
            &Patch { metadata: Identity { uid }, status },
        );
        if let Err(stop) = self.settle(&self.quiet, &call).await {
            tracing::debug!(%name, ?stop, "a phase was not written");
        }
    }
}
