//! Objects from YAML, and namespaces to put them in.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::{ControlPlane, PAUSE};
use crate::error::{Error, Result};

impl ControlPlane {
    /// Applies every document of a YAML text, in order. A custom resource can be used as soon as its definition has
    /// been applied.
    pub async fn apply_yaml(&self, text: &str) -> Result<()> {
        let client = self.client().await?;
        for object in documents(text)? {
            apply(&client, &object).await?;
        }
        Ok(())
    }

    pub async fn apply_file(&self, path: &Path) -> Result<()> {
        self.apply_yaml(&read(path)?).await
    }

    /// A new namespace, whose name begins with `prefix`.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let api: Api<Namespace> = Api::all(self.client().await?);
        let generate_name = Some(format!("{prefix}-"));
        let namespace = Namespace {
            metadata: ObjectMeta { generate_name, ..ObjectMeta::default() },
            ..Namespace::default()
        };
        Ok(api.create(&PostParams::default(), &namespace).await?.name_any())
    }
}

pub(super) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// A document without content, as between two separators, is passed over.
pub(super) fn documents(text: &str) -> Result<Vec<DynamicObject>> {
    let documents: Vec<Option<DynamicObject>> =
        serde_saphyr::from_multiple(text).map_err(|error| Error::Yaml(error.to_string()))?;
    Ok(documents.into_iter().flatten().collect())
}

pub(super) async fn apply(client: &Client, object: &DynamicObject) -> Result<()> {
    let types = object.types.clone().ok_or_else(|| Error::Yaml("a document has no kind".to_owned()))?;
    let kind = GroupVersionKind::try_from(&types).map_err(|error| Error::Yaml(error.to_string()))?;
    let doing = || format!("apply {} {}", kind.kind, object.name_any());
    let failed = |source| Error::Api { doing: doing(), source: Box::new(source) };
    let (resource, capabilities) = pinned_kind(client, &kind).await.map_err(failed)?;
    let namespace = object.namespace().unwrap_or_else(|| client.default_namespace().to_owned());
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), &namespace, &resource),
    };
    let params = PatchParams::apply("testcluster").force();
    api.patch(&object.name_any(), &params, &Patch::Apply(object)).await.map_err(failed)?;
    if kind.kind == "CustomResourceDefinition" {
        for defined in defined_by(object) {
            until_served(client, &defined).await.map_err(failed)?;
        }
    }
    Ok(())
}

/// The kinds that a custom resource definition says are served.
fn defined_by(definition: &DynamicObject) -> Vec<GroupVersionKind> {
    let spec = &definition.data["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions =
        spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
    versions
        .map(|version| GroupVersionKind {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            kind: text(&spec["names"]["kind"]),
        })
        .collect()
}

/// A definition that is `Established` may still not be served, nor be found by discovery: three parts of the API
/// server learn of it one by one. So it is asked for, again and again: it is a matter of a moment.
async fn until_served(client: &Client, kind: &GroupVersionKind) -> kube::Result<()> {
    let listed = async || -> kube::Result<()> {
        let (resource, _) = pinned_kind(client, kind).await?;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        api.list(&ListParams::default().limit(1)).await.map(drop)
    };
    loop {
        match listed().await {
            Err(error) if is_unknown(&error) => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

fn is_unknown(error: &kube::Error) -> bool {
    match error {
        kube::Error::Discovery(_) => true,
        kube::Error::Api(status) => status.code == 404,
        _ => false,
    }
}
