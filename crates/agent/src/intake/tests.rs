//! Real sockets, and who is on their other end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::{Door, Shared, lock, serve, tcp, unix};
use crate::observed::What;

struct Agent {
    shared: Arc<Shared>,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

fn agent() -> Agent {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let shared = Arc::new(Shared::default());
    let member =
        |job: &str, name: &str| json!({"job": job, "member": name, "token": format!("token of {job}")});
    let members = [member("a/one", "worker-0"), member("a/one", "worker-1"), member("a/two", "worker-0")];
    shared.follow(&serde_json::from_value(json!({ "members": members })).unwrap(), "the world's");
    tokio::spawn(serve(unix(&socket).unwrap(), shared.clone()));
    Agent { shared, socket, _folder: folder }
}

async fn send(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    // It may be closed on us before we have said everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(path: &str, token: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn get(path: &str, token: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n")
        .into_bytes()
}

fn report(job: &str, member: &str, iteration: u64) -> String {
    json!({"job": job, "member": member, "iteration": iteration, "time": "2026-11-16T12:00:00Z", "metrics": {"loss": 0.41}})
        .to_string()
}

fn code(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

async fn post_progress(agent: &Agent, token: &str, body: &str) -> (u16, String) {
    let answer = send(&agent.socket, &post("/v1/progress", token, body)).await;
    (code(&answer), answer)
}

async fn observed(agent: &Agent) -> Value {
    let answer = send(&agent.socket, &get("/v1/observed?after=0", "the world's")).await;
    assert_eq!(code(&answer), 200, "{answer}");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_is_taken_and_told_to_the_world_alone() {
    let agent = agent();
    let (code_, answer) = post_progress(&agent, "token of a/one", &report("a/one", "worker-0", 7)).await;
    assert_eq!((code_, answer.ends_with("{}")), (202, true), "{answer}");
    let told = observed(&agent).await;
    assert_eq!(told["next"], 1);
    assert_eq!(told["observed"][0]["progress"]["iteration"], 7);
    assert_eq!(told["observed"][0]["progress"]["metrics"]["loss"], 0.41);
    for token in ["", "token of a/one", "the world"] {
        assert_eq!(code(&send(&agent.socket, &get("/v1/observed", token)).await), 401);
    }
    let metrics = send(&agent.socket, &get("/metrics", "")).await;
    assert!(metrics.contains("metronome_agent_reports_accepted_total 1\n"), "{metrics}");
    assert!(metrics.contains("metronome_agent_members 3\n"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_taken_at_a_port_too() {
    let agent = agent();
    let door = tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let Door::Tcp(listener) = &door else { panic!("a port was asked for") };
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(door, agent.shared.clone()));
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(&post("/v1/progress", "token of a/one", &report("a/one", "worker-1", 9))).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(code(&answer), 202, "{answer}");
    assert_eq!(observed(&agent).await["observed"][0]["progress"]["member"], "worker-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_with_why() {
    let agent = agent();
    let good = report("a/one", "worker-0", 7);
    let long =
        format!(r#"{{"job": "a/one", "member": "worker-0", "iteration": 1, "x": "{}"}}"#, "y".repeat(17_000));
    let many: serde_json::Map<String, Value> = (0..40).map(|at| (format!("m{at}"), json!(1.0))).collect();
    let many = json!({"job": "a/one", "member": "worker-0", "iteration": 1, "metrics": many}).to_string();
    let when = json!({"job": "a/one", "member": "worker-0", "iteration": 1, "time": "noon"}).to_string();
    let cases = [
        ("token of a/two", good.as_str(), 401),
        ("token of a/on", &good, 401),
        ("", &good, 401),
        ("token of a/one", &report("a/three", "worker-0", 7), 401),
        ("token of a/one", &report("a/one", "worker-9", 7), 400),
        ("token of a/one", "{", 400),
        ("token of a/one", r#"{"job": "a/one", "member": "worker-0", "iteration": -1}"#, 400),
        ("token of a/one", &long, 413),
        ("token of a/one", &many, 400),
        ("token of a/one", &when, 400),
    ];
    for (token, body, wanted) in cases {
        let (code, answer) = post_progress(&agent, token, body).await;
        assert_eq!(code, wanted, "{body:.60}: {answer}");
        assert!(answer.contains(r#"{"error":""#), "{answer}");
    }
    assert_eq!(observed(&agent).await["observed"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_kubeflow_is_taken() {
    let agent = agent();
    let path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/a/trainjobs/two/status";
    let body = json!({"trainerStatus": {"progressPercentage": 45, "estimatedRemainingSeconds": 795,
        "metrics": [{"name": "loss", "value": "0.2347"}, {"name": "step", "value": "1200"}],
        "lastUpdatedTime": "2026-11-16T12:00:00Z"}});
    let answer = send(&agent.socket, &post(path, "token of a/two", &body.to_string())).await;
    assert_eq!(code(&answer), 202, "{answer}");
    let told = &observed(&agent).await["observed"][0]["progress"];
    assert_eq!((&told["job"], &told["member"]), (&json!("a/two"), &json!("worker-0")));
    assert_eq!(
        (&told["percent"], &told["remainingSeconds"], &told["iteration"]),
        (&json!(45.0), &json!(795.0), &json!(1200))
    );
    assert_eq!(code(&send(&agent.socket, &post(path, "token of a/one", &body.to_string())).await), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_one_job_is_bounded_and_others_are_heard() {
    let agent = agent();
    let flood = post("/v1/progress", "token of a/one", &report("a/one", "worker-0", 1));
    let keep_alive = String::from_utf8(flood).unwrap().replace("Connection: close\r\n", "");
    let mut stream = UnixStream::connect(&agent.socket).await.unwrap();
    let began = Instant::now();
    let mut answers = Vec::new();
    for _ in 0..20 {
        let many = keep_alive.repeat(200);
        let (mut reading, mut writing) = stream.split();
        let write = writing.write_all(many.as_bytes());
        let read = async {
            let mut part = vec![0; 64 << 10];
            let patience = Duration::from_millis(20);
            while let Ok(Ok(count @ 1..)) = tokio::time::timeout(patience, reading.read(&mut part)).await {
                answers.extend_from_slice(&part[..count]);
            }
        };
        let (written, ()) = tokio::join!(write, read);
        written.unwrap();
    }
    let seconds = began.elapsed().as_secs_f64();
    let figures = &agent.shared.figures;
    let (accepted, refused) =
        (figures.accepted.load(Ordering::Relaxed), figures.refused.load(Ordering::Relaxed));
    println!("{accepted} accepted and {refused} refused in {seconds:.2} s");
    assert!(accepted as f64 <= 100.0 + 50.0 * (seconds + 1.0), "{accepted} in {seconds} s");
    assert!(refused > accepted, "{refused}");
    let answers = String::from_utf8_lossy(&answers).to_lowercase();
    assert!(answers.contains("http/1.1 429 too many requests") && answers.contains("retry-after: 1"));
    let (code, _) = post_progress(&agent, "token of a/two", &report("a/two", "worker-0", 3)).await;
    assert_eq!(code, 202);
    let (_, told) = lock(&agent.shared.observed).after(0);
    assert!(told.len() <= 33, "{}", told.len());
    let is_of_two = |what: &What| matches!(what, What::Progress(progress) if progress.job == "a/two");
    assert!(told.iter().any(|observation| is_of_two(&observation.what)));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_those_who_never_finish_hold_up_nobody() {
    let agent = agent();
    let mut dawdlers = Vec::new();
    for _ in 0..250 {
        let mut stream = UnixStream::connect(&agent.socket).await.unwrap();
        stream.write_all(b"POST /v1/progress HTTP/1.1\r\nHost: x\r\nX-Slow: ").await.unwrap();
        dawdlers.push(stream);
    }
    for seed in 0..200_u32 {
        let garbage: Vec<u8> =
            (0..3000_u32).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect();
        send(&agent.socket, &garbage).await;
    }
    let (code, answer) = post_progress(&agent, "token of a/two", &report("a/two", "worker-0", 3)).await;
    assert_eq!(code, 202, "{answer}");
    for _ in 0..50 {
        dawdlers.push(UnixStream::connect(&agent.socket).await.unwrap());
    }
    // Beyond the bound connections are closed at once; those that dawdle are let go in time.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(agent.shared.figures.turned_away.load(Ordering::Relaxed) > 0);
    let (code, answer) = post_progress(&agent, "token of a/two", &report("a/two", "worker-0", 4)).await;
    assert_eq!(code, 202, "{answer}");
    drop(dawdlers);
}
