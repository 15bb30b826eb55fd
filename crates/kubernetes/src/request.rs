//! One request to the API server and what its answer means, no more: bodies are small, answers are read only as far
//! as they matter. When to try again is for the caller to say, who knows whether it still may.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::{Client, Config};
use serde::{Deserialize, Serialize};

use crate::metrics::Metrics;

/// A client that sends what it is told once and says what came of it. By default `kube` repeats requests on its own,
/// writes included, with nobody asked whether they still may be made.
pub fn connect(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Client::try_from(config)
}

/// The API server as those see it who write.
#[derive(Clone)]
pub struct Server {
    client: Client,
    metrics: Metrics,
    timeout: Duration,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// A request that can be sent more than once.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) verb: Verb,
    pub(crate) resource: &'static str,
    pub(crate) path: String,
    pub(crate) body: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Create,
    Update,
    Delete,
    MergePatch,
    /// Merges lists by their keys; only the API server's own kinds know it.
    StrategicPatch,
}

/// What the API server's answer means for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Done(Bytes),
    /// There is no such object.
    Absent,
    /// A precondition does not hold, or the object exists already.
    Conflict,
    /// A disruption budget stands in the way.
    Guarded(String),
    /// Not now, and certainly not done.
    Busy {
        after: Option<Duration>,
    },
    /// It may or may not have been done.
    Lost(String),
    /// Asking again would change nothing.
    Refused(String),
}

impl Server {
    pub fn new(client: Client, metrics: Metrics, timeout: Duration) -> Self {
        Self { client, metrics, timeout }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) async fn ask(&self, call: &Call) -> Answer {
        let (code, answer) = match tokio::time::timeout(self.timeout, self.exchange(call)).await {
            Ok(Ok((code, answer))) => (code.as_u16(), answer),
            Ok(Err(error)) => (0, Answer::Lost(error.to_string())),
            Err(_) => (0, Answer::Lost(format!("no answer within {:?}", self.timeout))),
        };
        self.metrics.asked(call.verb.name(), call.resource, code);
        answer
    }

    async fn exchange(&self, call: &Call) -> Result<(StatusCode, Answer), kube::Error> {
        let response = self.client.send(call.request()?).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok((head.status, Answer::from(head.status, &head.headers, body)))
    }
}

impl Call {
    pub(crate) fn get(resource: &'static str, path: String) -> Self {
        Self { verb: Verb::Get, resource, path, body: Bytes::new() }
    }

    pub(crate) fn with(verb: Verb, resource: &'static str, path: String, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("bodies are plain structs, which always serialise");
        Self { verb, resource, path, body: body.into() }
    }

    fn request(&self) -> Result<http::Request<Body>, kube::Error> {
        http::Request::builder()
            .method(self.verb.method())
            .uri(&self.path)
            .header(header::CONTENT_TYPE, self.verb.content())
            .header(header::ACCEPT, "application/json")
            .body(Body::from(self.body.clone()))
            .map_err(kube::Error::HttpError)
    }
}

impl Verb {
    /// As roles and the API server's own metrics call it.
    fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::MergePatch | Self::StrategicPatch => "patch",
        }
    }

    fn method(self) -> http::Method {
        match self {
            Self::Get | Self::List => http::Method::GET,
            Self::Create => http::Method::POST,
            Self::Update => http::Method::PUT,
            Self::Delete => http::Method::DELETE,
            Self::MergePatch | Self::StrategicPatch => http::Method::PATCH,
        }
    }

    fn content(self) -> &'static str {
        match self {
            Self::MergePatch => "application/merge-patch+json",
            Self::StrategicPatch => "application/strategic-merge-patch+json",
            _ => "application/json",
        }
    }
}

impl Answer {
    fn from(code: StatusCode, headers: &HeaderMap, body: Bytes) -> Self {
        match code.as_u16() {
            200..=299 => Self::Done(body),
            404 => Self::Absent,
            409 => Self::Conflict,
            429 => too_many(headers, &body),
            // Our own credentials are being renewed: it is not the request that is wrong.
            401 => Self::Busy { after: None },
            408 | 500..=599 => Self::Lost(format!("{code}: {}", Said::read(&body).message)),
            _ => Self::Refused(format!("{code}: {}", Said::read(&body).message)),
        }
    }
}

/// Both a full server and a disruption budget answer 429, and only the first is worth asking again.
fn too_many(headers: &HeaderMap, body: &[u8]) -> Answer {
    let said = Said::read(body);
    let budget = said.details.causes.iter().find(|cause| cause.reason == "DisruptionBudget");
    match budget {
        Some(cause) => Answer::Guarded(cause.message.clone()),
        None => Answer::Busy { after: retry_after(headers) },
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// As much of a `Status` as is looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Said {
    pub(crate) status: String,
    pub(crate) message: String,
    pub(crate) details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Details {
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

impl Said {
    /// A proxy may answer with anything; then there is nothing said.
    pub(crate) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
        let headers = headers.iter().map(|(name, value)| {
            (header::HeaderName::from_static(name), value.parse().expect("a header's value"))
        });
        let code = StatusCode::from_u16(code).expect("a status");
        Answer::from(code, &headers.collect(), Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn a_full_server_says_when_to_come_back() {
        let busy = answer(429, &[("retry-after", "3")], "{}");
        assert_eq!(busy, Answer::Busy { after: Some(Duration::from_secs(3)) });
        assert_eq!(answer(429, &[("retry-after", "soon")], "busy"), Answer::Busy { after: None });
    }

    #[test]
    fn a_budget_is_no_full_server() {
        let body = r#"{"details":{"causes":[{"reason":"DisruptionBudget","message":"needs 2, has 2"}]}}"#;
        assert_eq!(answer(429, &[("retry-after", "10")], body), Answer::Guarded("needs 2, has 2".into()));
    }

    #[test]
    fn after_a_server_error_nobody_knows() {
        for code in [408, 500, 502, 503, 504] {
            assert!(matches!(answer(code, &[], "<html>"), Answer::Lost(_)), "{code}");
        }
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        let said = answer(422, &[], r#"{"message":"target.kind: Unsupported"}"#);
        assert_eq!(said, Answer::Refused("422 Unprocessable Entity: target.kind: Unsupported".into()));
    }
}
