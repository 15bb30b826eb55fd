//! What the outside may ask over HTTP: whether we live and are ready, what we have counted, and why a job waits.
//! The last is asked of the world, which answers between two of its turns.

mod health;

use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use metronome_core::engine::State as EngineState;

use crate::metrics::Metrics;
pub use health::Health;

/// How long the world may think about a question.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long open requests may go on once we stop.
const GRACE: Duration = Duration::from_secs(5);

/// Something asked of the world.
#[derive(Debug)]
pub struct Question {
    pub ask: Ask,
    pub answer: oneshot::Sender<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Why a job is where it is: `namespace/name`.
    Explain { job: String },
    /// All jobs there are.
    Jobs,
    /// What would have started earlier or later than under the scheduler in charge.
    Observe,
    /// All that the engine knows.
    State,
}

#[derive(Clone, Debug)]
pub enum Answer {
    Known(Value),
    /// Written down by whoever serves it: that takes long in a large cluster.
    State(Box<EngineState>),
    /// There is no such thing; why, for people.
    Unknown(String),
}

/// All that is served from.
#[derive(Clone, Debug)]
pub struct Sources {
    pub health: Health,
    pub metrics: Metrics,
    /// Bounded: whoever asks when it is full is told to come back.
    pub questions: mpsc::Sender<Question>,
}

/// Serves until `stop` completes and what is open has ended, or has had its time.
pub async fn serve(
    listener: TcpListener,
    sources: Sources,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopping, mut stopped) = oneshot::channel();
    let signal = async move {
        stop.await;
        // The other end waits for this alone and may be gone only when all has ended.
        let _ = stopping.send(());
    };
    let serving = axum::serve(listener, routes(sources)).with_graceful_shutdown(signal).into_future();
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        done = &mut serving => return done,
        _ = &mut stopped => {}
    }
    tokio::time::timeout(GRACE, serving).await.unwrap_or(Ok(()))
}

fn routes(sources: Sources) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/explain", get(explain))
        .route("/jobs", get(jobs))
        .route("/observe", get(observe))
        .route("/state", get(state))
        .with_state(sources)
}

async fn livez(State(sources): State<Sources>) -> Response {
    checked(sources.health.is_alive(), "the loop stands still")
}

async fn readyz(State(sources): State<Sources>) -> Response {
    checked(sources.health.is_ready(), "not all kinds have been listed")
}

fn checked(is_well: bool, complaint: &'static str) -> Response {
    match is_well {
        true => "ok".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, complaint).into_response(),
    }
}

async fn metrics(State(sources): State<Sources>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], sources.metrics.text()).into_response()
}

#[derive(Debug, Deserialize)]
struct Job {
    job: String,
}

async fn explain(State(sources): State<Sources>, Query(Job { job }): Query<Job>) -> Response {
    sources.ask(Ask::Explain { job }).await
}

async fn jobs(State(sources): State<Sources>) -> Response {
    sources.ask(Ask::Jobs).await
}

async fn observe(State(sources): State<Sources>) -> Response {
    sources.ask(Ask::Observe).await
}

async fn state(State(sources): State<Sources>) -> Response {
    sources.ask(Ask::State).await
}

impl Sources {
    async fn ask(&self, ask: Ask) -> Response {
        let (answer, answered) = oneshot::channel();
        if self.questions.try_send(Question { ask, answer }).is_err() {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "too many questions are open");
        }
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(Answer::Known(value))) => axum::Json(value).into_response(),
            Ok(Ok(Answer::State(state))) => axum::Json(state).into_response(),
            Ok(Ok(Answer::Unknown(why))) => refused(StatusCode::NOT_FOUND, &why),
            Ok(Err(_)) | Err(_) => refused(StatusCode::GATEWAY_TIMEOUT, "the scheduler did not answer"),
        }
    }
}

fn refused(code: StatusCode, why: &str) -> Response {
    (code, axum::Json(json!({ "version": 1, "error": why }))).into_response()
}
