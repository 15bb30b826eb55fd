//! Asks a running scheduler, for those who are not in its process.

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use metronome_core::engine::State;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("understand the address {0}")]
    Address(String),
    #[error("reach the scheduler at {server}")]
    Unreachable {
        server: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It answered that it does not know.
    #[error("{what}: {why}")]
    Unknown { what: String, why: String },
}

/// What the scheduler at an address has to say about a job: the document of its `/explain`.
pub async fn explain(server: &str, job: &str) -> Result<Value, AskError> {
    ask(server, &format!("/explain?job={job}"), &format!("explain {job}")).await
}

/// All that the scheduler at an address knows, to look ahead from.
pub async fn state(server: &str) -> Result<State, AskError> {
    ask(server, "/state", "say what it knows").await
}

async fn ask<T: DeserializeOwned>(server: &str, path: &str, what: &str) -> Result<T, AskError> {
    let text = format!("{}{path}", server.trim_end_matches('/'));
    let uri: Uri = text.parse().map_err(|_| AskError::Address(text.clone()))?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let unreachable = |source: Box<dyn std::error::Error + Send + Sync>| AskError::Unreachable {
        server: server.to_owned(),
        source,
    };
    let request = Request::get(uri).body(Empty::new()).map_err(|_| AskError::Address(text.clone()))?;
    let response = client.request(request).await.map_err(|error| unreachable(error.into()))?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| unreachable(error.into()))?.to_bytes();
    if status == StatusCode::OK {
        return serde_json::from_slice(&body).map_err(|error| unreachable(error.into()));
    }
    let document: Value = serde_json::from_slice(&body).map_err(|error| unreachable(error.into()))?;
    let why = document["error"].as_str().unwrap_or("the scheduler did not say why").to_owned();
    Err(AskError::Unknown { what: what.to_owned(), why })
}
