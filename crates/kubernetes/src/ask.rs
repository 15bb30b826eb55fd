//! Asks a running scheduler, for those who are not in its process.

use std::fmt;

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client as DirectClient;
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::Body;
use metronome_core::engine::State;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::manifests::{NAME, PORT_NAME};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("understand the address {0}")]
    Address(String),
    #[error("reach the scheduler at {server}")]
    Unreachable {
        server: String,
        #[source]
        source: BoxError,
    },
    /// It answered that it does not know.
    #[error("{what}: {why}")]
    Unknown { what: String, why: String },
}

/// Where a running scheduler is reached.
pub enum Scheduler {
    /// At an address of its own.
    At(String),
    /// Through an API server, by the service of its installation.
    Behind { client: Client, namespace: String },
}

impl Scheduler {
    /// What it has to say about a job: the document of its `/explain`.
    pub async fn explain(&self, job: &str) -> Result<Value, AskError> {
        self.ask(&format!("/explain?job={job}"), &format!("explain {job}")).await
    }

    /// All that it knows, to look ahead from.
    pub async fn state(&self) -> Result<State, AskError> {
        self.ask("/state", "say what it knows").await
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str, what: &str) -> Result<T, AskError> {
        let (status, body) = match self {
            Self::At(server) => at(server, path).await?,
            Self::Behind { client, namespace } => behind(client, namespace, path).await?,
        };
        let unreadable = |error: serde_json::Error| self.unreachable(error.into());
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map_err(unreadable);
        }
        let document: Value = serde_json::from_slice(&body).map_err(unreadable)?;
        // An API server that cannot pass a question on says why in a field of its own.
        let why = [&document["error"], &document["message"]].into_iter().find_map(Value::as_str);
        let why = why.unwrap_or("the scheduler did not say why").to_owned();
        Err(AskError::Unknown { what: what.to_owned(), why })
    }

    fn unreachable(&self, source: BoxError) -> AskError {
        let server = match self {
            Self::At(server) => server.clone(),
            Self::Behind { namespace, .. } => format!("the service {NAME} in the namespace {namespace}"),
        };
        AskError::Unreachable { server, source }
    }
}

/// A client has nothing to show.
impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(server) => f.debug_tuple("At").field(server).finish(),
            Self::Behind { namespace, .. } => f.debug_tuple("Behind").field(namespace).finish(),
        }
    }
}

async fn at(server: &str, path: &str) -> Result<(StatusCode, Bytes), AskError> {
    let text = format!("{}{path}", server.trim_end_matches('/'));
    let uri: Uri = text.parse().map_err(|_| AskError::Address(text.clone()))?;
    let client = DirectClient::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let unreachable = |source: BoxError| AskError::Unreachable { server: server.to_owned(), source };
    let request = Request::get(uri).body(Empty::new()).map_err(|_| AskError::Address(text.clone()))?;
    let response = client.request(request).await.map_err(|error| unreachable(error.into()))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| unreachable(error.into()))?;
    Ok((status, body.to_bytes()))
}

async fn behind(client: &Client, namespace: &str, path: &str) -> Result<(StatusCode, Bytes), AskError> {
    let path = format!("/api/v1/namespaces/{namespace}/services/http:{NAME}:{PORT_NAME}/proxy{path}");
    let unreachable = |source: BoxError| AskError::Unreachable { server: path.clone(), source };
    let request = Request::get(&path).body(Body::empty()).map_err(|_| AskError::Address(path.clone()))?;
    let response = client.send(request).await.map_err(|error| unreachable(error.into()))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| unreachable(error.into()))?;
    Ok((status, body.to_bytes()))
}
