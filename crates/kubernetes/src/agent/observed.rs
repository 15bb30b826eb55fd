//! What the part of the agent that measures has to say: asked of its socket, from where the last answer ended.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// So long an answer may take, and so large it may be.
const PATIENCE: Duration = Duration::from_secs(5);
const LARGEST: u64 = 4 << 20;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Answer {
    /// Whatever comes later has this number or a greater one.
    pub next: u64,
    #[serde(default)]
    pub observed: Vec<Observation>,
}

/// One of both.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Observation {
    pub progress: Option<Progress>,
    pub traffic: Option<Measured>,
}

/// How far a member says that it is. What it says is passed on as it came, but for who says it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Progress {
    pub job: String,
    pub member: String,
    #[serde(flatten)]
    pub said: serde_json::Map<String, Value>,
}

/// What a member was seen to send in each iteration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Measured {
    pub job: String,
    pub member: String,
    pub period_ns: u64,
    pub phases: Vec<MeasuredPhase>,
    /// From 0 to 1.
    pub confidence: f64,
    #[serde(rename = "while")]
    pub company: Company,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct MeasuredPhase {
    pub offset_ns: u64,
    pub length_ns: u64,
    pub rate_bps: u64,
}

/// Whether others were on the same links meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Company {
    Alone,
    Contending,
}

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("reach the socket")]
    Reach(#[from] std::io::Error),
    #[error("no answer came in time")]
    TooLate,
    #[error("the answer is {0}")]
    Refused(String),
    #[error("the answer makes no sense")]
    Nonsense(#[from] serde_json::Error),
}

/// Everything from a number on, as far as it is still known there.
pub async fn ask(socket: &Path, token: &str, after: u64) -> Result<Answer, AskError> {
    tokio::time::timeout(PATIENCE, exchange(socket, token, after)).await.map_err(|_| AskError::TooLate)?
}

/// An old dialect of HTTP has all that this needs: the answer ends with the connection.
async fn exchange(socket: &Path, token: &str, after: u64) -> Result<Answer, AskError> {
    let mut stream = UnixStream::connect(socket).await?;
    let request = format!(
        "GET /v1/observed?after={after} HTTP/1.0\r\nHost: agent\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LARGEST).read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = answer.split_at(end.map_or(answer.len(), |at| at + 4));
    let head = String::from_utf8_lossy(head);
    let first = head.lines().next().unwrap_or_default();
    if first.split_whitespace().nth(1) != Some("200") {
        return Err(AskError::Refused(first.chars().take(100).collect()));
    }
    Ok(serde_json::from_slice(body)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::net::UnixListener;

    use super::*;

    /// Asks a socket that gives one answer, and says what it was asked.
    async fn answered(answer: &'static str) -> (Result<Answer, AskError>, String) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let heard = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 1024];
            let length = stream.read(&mut asked).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        let answer = ask(&socket, "secret", 7).await;
        (answer, heard.await.unwrap())
    }

    #[tokio::test]
    async fn what_was_observed_is_asked_for_once() {
        let (answer, asked) = answered(concat!(
            "HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n",
            r#"{"next": 9, "observed": [{"seq": 7, "progress": {"job": "a/b", "member": "worker-0", "iteration": 3}},"#,
            r#"{"seq": 8, "traffic": {"job": "a/b", "member": "worker-0", "period_ns": 5, "noise": 0.1, "confidence": 0.9,"#,
            r#""while": "alone", "phases": [{"offset_ns": 1, "length_ns": 2, "rate_bps": 3}]}}]}"#,
        ))
        .await;
        assert!(asked.starts_with("GET /v1/observed?after=7 "), "{asked}");
        assert!(asked.contains("Authorization: Bearer secret\r\n"), "{asked}");
        let Answer { next, observed } = answer.unwrap();
        assert_eq!((next, observed.len()), (9, 2));
        assert_eq!(observed[0].progress.as_ref().unwrap().said["iteration"], json!(3));
        assert_eq!(observed[1].traffic.as_ref().unwrap().company, Company::Alone);
    }

    #[tokio::test]
    async fn an_answer_that_is_none_is_an_error() {
        let (refused, _) = answered("HTTP/1.0 401 Unauthorized\r\n\r\n{}").await;
        assert!(matches!(refused, Err(AskError::Refused(line)) if line.contains("401")));
        for nonsense in ["HTTP/1.0 200 OK\r\n\r\n[]", "HTTP/1.0 200 OK\r\n", "hello", ""] {
            assert!(answered(nonsense).await.0.is_err(), "{nonsense}");
        }
        assert!(matches!(ask(Path::new("/nowhere"), "", 0).await, Err(AskError::Reach(_))));
    }
}
