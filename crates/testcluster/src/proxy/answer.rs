//! Answers: the API server's own, streamed; or ours, in its place.

use std::io;
use std::time::Duration;

use futures::{Stream, stream};
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use serde_json::json;

use super::link::Link;

const FLUSHED: Duration = Duration::from_millis(5);

type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;
pub(super) type Answer = Response<AnswerBody>;

/// What the API server itself would say, as far as clients look at it.
pub(super) fn refusal(code: u16, retry_after: Option<Duration>) -> Answer {
    let status = StatusCode::from_u16(code).expect("a test names codes that exist");
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let document = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": "the proxy of the test says so",
    });
    let body = Full::new(Bytes::from(document.to_string()));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(time) = retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, time.as_secs().into());
    }
    answer
}

/// Hands an answer on as it is.
pub(super) fn whole(answer: Response<Body>) -> Answer {
    handed_on(answer, |body| body.map_err(io::Error::other).boxed_unsync())
}

/// Hands a watch on piece by piece, as it comes. It ends early if the link is cut or when its time is up.
pub(super) fn streamed(answer: Response<Body>, link: Link, events_left: Option<u32>) -> Answer {
    handed_on(answer, |body| StreamBody::new(pieces(Relay { body, link, events_left })).boxed_unsync())
}

fn handed_on(answer: Response<Body>, body_of: impl FnOnce(Body) -> AnswerBody) -> Answer {
    let (parts, body) = answer.into_parts();
    let mut answer = Response::new(body_of(body));
    *answer.status_mut() = parts.status;
    *answer.headers_mut() = end_to_end(parts.headers);
    answer
}

/// After an error there is nothing more.
fn pieces(relay: Relay) -> impl Stream<Item = io::Result<Frame<Bytes>>> {
    stream::unfold(Some(relay), |relay| async {
        let mut relay = relay?;
        let piece = relay.next().await?;
        let rest = piece.is_ok().then_some(relay);
        Some((piece, rest))
    })
}

/// Each connection has its own way of marking the end of a body.
pub(super) fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::HOST] {
        headers.remove(name);
    }
    headers
}

struct Relay {
    body: Body,
    link: Link,
    events_left: Option<u32>,
}

impl Relay {
    async fn next(&mut self) -> Option<io::Result<Frame<Bytes>>> {
        if self.events_left == Some(0) {
            // An error throws away what has not been sent yet; what may still pass is sent while we wait.
            tokio::time::sleep(FLUSHED).await;
            return Some(Err(cut()));
        }
        let frame = tokio::select! {
            frame = self.body.frame() => frame?,
            () = self.link.cut() => return Some(Err(cut())),
        };
        self.link.open().await;
        Some(frame.map_err(io::Error::other).map(|frame| self.up_to_the_cut(frame)))
    }

    /// As many events, one a line, as may still pass.
    fn up_to_the_cut(&mut self, frame: Frame<Bytes>) -> Frame<Bytes> {
        let Some(left) = &mut self.events_left else { return frame };
        let Ok(data) = frame.into_data() else { return Frame::data(Bytes::new()) };
        let ends = data.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let ends: Vec<usize> = ends.take(*left as usize).collect();
        *left -= u32::try_from(ends.len()).expect("no more than were left");
        match (*left, ends.last()) {
            (0, Some(end)) => Frame::data(data.slice(..*end)),
            _ => Frame::data(data),
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the watch was cut")
}
