//! What is asked over HTTP.

use std::time::Duration;

use metronome_kubernetes::metrics::Metrics;
use metronome_kubernetes::serve::{Answer, Ask, Health, Question, Sources, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

struct Served {
    address: std::net::SocketAddr,
    health: Health,
    questions: mpsc::Receiver<Question>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn start() -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let health = Health::new(Duration::from_secs(30));
    let (asked, questions) = mpsc::channel(1);
    let sources = Sources { health: health.clone(), metrics: Metrics::default(), questions: asked };
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(serve(listener, sources, async move { stopped.await.unwrap_or(()) }));
    Served { address, health, questions, stop, task }
}

/// Status line and body.
async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let code = text.split(' ').nth(1).unwrap().parse().unwrap();
    (code, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

#[tokio::test]
async fn readiness_waits_for_the_caches_and_life_does_not() {
    let served = start().await;
    assert_eq!(get(served.address, "/livez").await.0, 200);
    assert_eq!(get(served.address, "/readyz").await.0, 503);
    served.health.ready();
    assert_eq!(get(served.address, "/readyz").await, (200, "ok".into()));
}

#[tokio::test]
async fn metrics_are_open_metrics() {
    let (code, text) = get(start().await.address, "/metrics").await;
    assert_eq!(code, 200);
    assert!(text.contains("# TYPE metronome_leader gauge") && text.contains("# EOF"), "{text}");
}

#[tokio::test]
async fn questions_go_to_the_world_and_too_many_are_refused() {
    let mut served = start().await;
    let address = served.address;
    let asking = tokio::spawn(async move { get(address, "/explain?job=a/b").await });
    let question = served.questions.recv().await.unwrap();
    assert_eq!(question.ask, Ask::Explain { job: "a/b".into() });
    question.answer.send(Answer::Known(json!({"reason": "quota"}))).unwrap();
    assert_eq!(asking.await.unwrap(), (200, r#"{"reason":"quota"}"#.into()));

    let asking = tokio::spawn(async move { get(address, "/jobs").await });
    while served.questions.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(get(address, "/observe").await.0, 503, "the world is behind");
    let question = served.questions.recv().await.unwrap();
    question.answer.send(Answer::Unknown("no jobs".into())).unwrap();
    assert_eq!(asking.await.unwrap(), (404, r#"{"error":"no jobs","version":1}"#.into()));
    assert_eq!(get(address, "/explain").await.0, 400);
}

#[tokio::test]
async fn it_stops_when_told() {
    let served = start().await;
    served.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), served.task).await.expect("an end").unwrap().unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}
