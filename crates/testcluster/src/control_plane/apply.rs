//! Objects from YAML, and namespaces to put them in.

use std::fs;
use std::path::Path;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
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
        let text = fs::read_to_string(path);
        self.apply_yaml(&text.map_err(|source| Error::File { path: path.to_owned(), source })?).await
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

/// A document without content, as between two separators, is passed over.
fn documents(text: &str) -> Result<Vec<DynamicObject>> {
    let documents: Vec<Option<DynamicObject>> =
        serde_saphyr::from_multiple(text).map_err(|error| Error::Yaml(error.to_string()))?;
    Ok(documents.into_iter().flatten().collect())
}

async fn apply(client: &Client, object: &DynamicObject) -> Result<()> {
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
        until_established(&api, &object.name_any()).await?;
    }
    Ok(())
}

/// Asked again and again, untyped: it is a matter of a moment, and definitions of others are large.
async fn until_established(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    let established = async || -> kube::Result<bool> {
        let conditions = &api.get(name).await?.data["status"]["conditions"];
        let wanted = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
        Ok(conditions.as_array().is_some_and(|conditions| conditions.iter().any(wanted)))
    };
    while !established().await? {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
