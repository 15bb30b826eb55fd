//! Asks a running scheduler, for those who are not in its process.

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
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
    #[error("explain {job}: {why}")]
    Unknown { job: String, why: String },
}

/// What the scheduler at an address has to say about a job: the document of its `/explain`.
pub async fn explain(server: &str, job: &str) -> Result<Value, AskError> {
    let text = format!("{}/explain?job={job}", server.trim_end_matches('/'));
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
    let document: Value = serde_json::from_slice(&body).map_err(|error| unreachable(error.into()))?;
    match status {
        StatusCode::OK => Ok(document),
        _ => {
            let why = document["error"].as_str().unwrap_or("the scheduler did not say why").to_owned();
            Err(AskError::Unknown { job: job.to_owned(), why })
        }
    }
}
