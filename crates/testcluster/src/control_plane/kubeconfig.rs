//! Kubeconfigs: who speaks to which address.

use std::fs;
use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::certificates::{Certificates, Identity};
use crate::error::{Error, Result};

/// The user that an identity with many rights pretends to be. The API server then applies RBAC as it would to the
/// user itself, and a user may have any number of groups, which our certificates cannot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Impersonated<'a> {
    pub(super) user: &'a str,
    pub(super) groups: &'a [&'a str],
}

/// A kubeconfig as a document; JSON is YAML, too.
pub(super) fn of(url: &str, certificates: &Certificates, identity: Identity) -> Value {
    let cluster = json!({ "server": url, "certificate-authority": certificates.certificate("ca") });
    let user = json!({
        "client-certificate": certificates.certificate(identity.file),
        "client-key": certificates.key(identity.file),
    });
    document(&cluster, &user)
}

pub(super) fn impersonating(
    url: &str,
    certificates: &Certificates,
    identity: Identity,
    impersonated: Impersonated<'_>,
) -> Value {
    let mut document = of(url, certificates, identity);
    document["users"][0]["user"]["as"] = json!(impersonated.user);
    document["users"][0]["user"]["as-groups"] = json!(impersonated.groups);
    document
}

/// For a server that does not ask who we are.
pub(crate) fn anonymous(url: &str) -> Value {
    document(&json!({ "server": url }), &json!({}))
}

fn document(cluster: &Value, user: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testcluster", "cluster": cluster }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "testcluster", "context": { "cluster": "testcluster", "user": "user" } }],
        "current-context": "testcluster",
    })
}

pub(crate) fn write(path: &Path, document: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(document).expect("a value is JSON");
    fs::write(path, text).map_err(|source| Error::File { path: path.to_owned(), source })
}

/// A client as a kubeconfig says, bound to the runtime of the caller. It retries nothing by itself: a test is to see
/// what the server says, not what it said after a while.
pub(crate) async fn client(path: &Path) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}
