//! Connections, and what is answered on them.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use super::bucket::Bucket;
use super::report::{Report, TrainJobReport};
use super::{Shared, lock};
use crate::observed::{Progress, What};

/// Where connections come from.
#[derive(Debug)]
pub enum Door {
    Unix(UnixListener),
    Tcp(TcpListener),
}

const LARGEST_BODY: usize = 16 << 10;
const MOST_CONNECTIONS: usize = 256;
/// Whoever takes longer over a request's head, a whole request, or has been here for so long, is let go.
const HEAD: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(10);
const CONNECTION: Duration = Duration::from_secs(600);
/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves for ever; whoever no longer wants it drops it.
pub async fn serve(door: Door, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let routes = routes(shared.clone());
    loop {
        let accepted = match &door {
            Door::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
            Door::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
        };
        let Ok(stream) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            shared.figures.turned_away.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let routes = routes.clone();
        tokio::spawn(async move {
            // How a connection ends is of no interest to anybody but its other end.
            let _ = tokio::time::timeout(CONNECTION, converse(stream, routes)).await;
            drop(place);
        });
    }
}

enum Stream {
    Unix(tokio::net::UnixStream),
    Tcp(tokio::net::TcpStream),
}

async fn converse(stream: Stream, routes: Router) -> io::Result<()> {
    match stream {
        Stream::Unix(stream) => converse_over(stream, routes).await,
        Stream::Tcp(stream) => converse_over(stream, routes).await,
    }
}

async fn converse_over(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    routes: Router,
) -> io::Result<()> {
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_BODY);
    let service = TowerToHyperService::new(routes);
    http.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
}

fn routes(shared: Arc<Shared>) -> Router {
    let train_job = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status";
    Router::new()
        .route("/v1/progress", post(progress))
        .route(train_job, post(train_job_status))
        .route("/v1/observed", get(observed))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok" }))
        .layer(axum::middleware::from_fn(in_time))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(shared)
}

async fn in_time(request: axum::extract::Request, next: axum::middleware::Next) -> Response {
    let answered = tokio::time::timeout(REQUEST, next.run(request)).await;
    answered.unwrap_or_else(|_| refused(StatusCode::REQUEST_TIMEOUT, "the request took too long"))
}

async fn progress(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Body) -> Response {
    shared.counted(|| {
        let report: Report = parsed(&body.0?)?;
        shared.admit(&report.job, Some(&report.member), &headers)?;
        report.progress(Timestamp::now()).map_err(bad)
    })
}

async fn train_job_status(
    State(shared): State<Arc<Shared>>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    shared.counted(|| {
        let job = format!("{namespace}/{name}");
        let member = shared.admit(&job, None, &headers)?;
        let report: TrainJobReport = parsed(&body.0?)?;
        report.progress(job, member, Timestamp::now()).map_err(bad)
    })
}

#[derive(Debug, Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn observed(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Query(After { after }): Query<After>,
) -> Response {
    let world = shared.world.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    if !is_shown(&headers, &world) {
        return refused(StatusCode::UNAUTHORIZED, "the token is not that of the world");
    }
    let (next, observed) = lock(&shared.observed).after(after);
    axum::Json(json!({ "next": next, "observed": observed })).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], shared.metrics()).into_response()
}

/// A body, or why there is none; read here so that what is too large is refused in our words.
struct Body(Result<Bytes, Refusal>);

impl<S: Send + Sync> axum::extract::FromRequest<S> for Body {
    type Rejection = std::convert::Infallible;

    async fn from_request(request: axum::extract::Request, state: &S) -> Result<Self, Self::Rejection> {
        let read = Bytes::from_request(request, state).await;
        Ok(Self(read.map_err(|error| match error.into_response().status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                Refusal(StatusCode::PAYLOAD_TOO_LARGE, "a report has at most 16 KiB".into())
            }
            status => Refusal(status, "the body cannot be read".into()),
        })))
    }
}

/// Why a report is not taken.
#[derive(Debug)]
struct Refusal(StatusCode, String);

fn bad(why: &'static str) -> Refusal {
    Refusal(StatusCode::BAD_REQUEST, why.into())
}

fn parsed<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Refusal> {
    let cannot = |error: serde_json::Error| {
        Refusal(StatusCode::BAD_REQUEST, format!("the report makes no sense: {error}"))
    };
    serde_json::from_slice(body).map_err(cannot)
}

impl Shared {
    fn counted(&self, take: impl FnOnce() -> Result<Progress, Refusal>) -> Response {
        match take() {
            Ok(progress) => {
                self.figures.accepted.fetch_add(1, Ordering::Relaxed);
                lock(&self.observed).note(What::Progress(progress));
                (StatusCode::ACCEPTED, axum::Json(json!({}))).into_response()
            }
            Err(Refusal(code, why)) => {
                self.figures.refused.fetch_add(1, Ordering::Relaxed);
                refused(code, &why)
            }
        }
    }

    /// Whether a report may be taken, and of which member it is.
    fn admit(&self, job: &str, member: Option<&str>, headers: &HeaderMap) -> Result<String, Refusal> {
        let jobs = self.jobs.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Whether there is such a job is nobody's business who does not have its token.
        let known = jobs.get(job);
        let token = known.map_or("", |job| job.token.as_str());
        if !is_shown(headers, token) {
            return Err(Refusal(StatusCode::UNAUTHORIZED, "the token is not that of the job".into()));
        }
        let known = known.ok_or_else(|| bad("there is no such job"))?;
        let member = member
            .or(known.leads.as_deref())
            .filter(|member| known.members.iter().any(|known| known == member));
        let member = member.ok_or_else(|| bad("there is no such member here"))?.to_owned();
        let now = Instant::now();
        let mut buckets = lock(&self.buckets);
        let bucket = buckets.entry((job.to_owned(), member.clone())).or_insert_with(|| Bucket::full(now));
        match bucket.take(now) {
            true => Ok(member),
            false => Err(Refusal(StatusCode::TOO_MANY_REQUESTS, "this member reports too often".into())),
        }
    }
}

/// Whether a request shows a token. It takes as long whatever the token begins with; an empty one is never right.
fn is_shown(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let shown = shown.strip_prefix(b"Bearer ").unwrap_or_default();
    let differ = shown.iter().zip(token.as_bytes()).fold(0_u8, |differ, (one, other)| differ | (one ^ other));
    std::hint::black_box(differ) == 0 && shown.len() == token.len() && !token.is_empty()
}

fn refused(code: StatusCode, why: &str) -> Response {
    let body = axum::Json(json!({ "error": why }));
    match code {
        StatusCode::TOO_MANY_REQUESTS => (code, [(header::RETRY_AFTER, "1")], body).into_response(),
        _ => (code, body).into_response(),
    }
}

/// Opens the Unix socket, in place of one that an earlier agent left.
pub(crate) fn unix(path: &std::path::Path) -> io::Result<Door> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // Members may run as anybody: what lets a report in is its token.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(Door::Unix(listener))
}

/// Opens a port.
pub(crate) async fn tcp(address: std::net::SocketAddr) -> io::Result<Door> {
    TcpListener::bind(address).await.map(Door::Tcp)
}
