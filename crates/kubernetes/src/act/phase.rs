//! The phase of a gang, written back to the object that declared it.

use serde::Serialize;
use serde_json::Value;

use super::hands::{Hands, Stop};
use crate::deed::GroupRef;
use crate::request::{Answer, Call, Verb};

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
        if let Err(stop) = self.patch_phase(group, status).await {
            tracing::debug!(name = %group.name, ?stop, "a phase was not written");
        }
    }

    /// Not every kind keeps its status apart: Volcano's is part of the object.
    async fn patch_phase(&self, group: &GroupRef, status: &Value) -> Result<(), Stop> {
        let GroupRef { api_version, plural, namespace, name, uid, .. } = group;
        let path = format!("/apis/{api_version}/namespaces/{namespace}/{plural}/{name}");
        let patch = Patch { metadata: Identity { uid }, status };
        let apart = Call::with(Verb::MergePatch, "groups/status", format!("{path}/status"), &patch);
        if let Answer::Absent = self.settle(&self.quiet, &apart).await? {
            let within = Call::with(Verb::MergePatch, "groups", path, &patch);
            self.settle(&self.quiet, &within).await?;
        }
        Ok(())
    }
}
