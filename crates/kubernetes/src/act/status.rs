//! What has become of a gang or a queue, written back to the object that declared it.

use serde::Serialize;
use serde_json::Value;

use super::hands::{Hands, Stop};
use super::promise::Result as Became;
use crate::deed::ObjectRef;
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
    /// Best effort: a status that could not be written is written with the next.
    pub(super) async fn write_status(&self, object: &ObjectRef, status: &Value) -> Became {
        if let Err(stop) = self.patch_status(object, status).await {
            tracing::debug!(name = %object.name, ?stop, "a status was not written");
        }
        Became::Written
    }

    /// Not every kind keeps its status apart: that of Volcano's groups is part of the object.
    async fn patch_status(&self, object: &ObjectRef, status: &Value) -> Result<(), Stop> {
        let path = path(object);
        let patch = Patch { metadata: Identity { uid: &object.uid }, status };
        let apart = Call::with(Verb::MergePatch, "declarations/status", format!("{path}/status"), &patch);
        if let Answer::Absent = self.settle(&self.quiet, &apart).await? {
            let within = Call::with(Verb::MergePatch, "declarations", path, &patch);
            self.settle(&self.quiet, &within).await?;
        }
        Ok(())
    }
}

pub(super) fn path(object: &ObjectRef) -> String {
    let ObjectRef { api_version, plural, namespace, name, .. } = object;
    // The oldest kinds belong to no group.
    let root = if api_version.contains('/') { "apis" } else { "api" };
    match &**namespace {
        "" => format!("/{root}/{api_version}/{plural}/{name}"),
        namespace => format!("/{root}/{api_version}/namespaces/{namespace}/{plural}/{name}"),
    }
}
