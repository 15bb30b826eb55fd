//! What a kubelet has to say when an API server asks it for logs: simulated kubelets have none.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::json;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{self, ServerConfig, ServerConnection, StreamOwned};

/// How many lines each container writes, one every so often.
pub(crate) const LINES: u32 = 8;
const BETWEEN: Duration = Duration::from_millis(50);

/// Serves the logs of all containers on some nodes. Whoever follows one is cut off once, in the middle.
pub(crate) struct Logs {
    pub(crate) cuts: Arc<AtomicU32>,
}

impl Logs {
    pub(crate) async fn serve(client: &Client, nodes: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (config, begin) = (config(), half_past(Timestamp::now()));
        let cuts = Arc::new(AtomicU32::new(0));
        let counted = cuts.clone();
        // Threads of their own, which end with the process: tests block those that they have.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (config, cuts) = (config.clone(), counted.clone());
                std::thread::spawn(move || {
                    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
                    // Whoever has heard enough closes the line, which is no failure.
                    let _ = answer(&mut stream, begin, &cuts);
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                });
            }
        });
        stand_for(client, nodes, address).await;
        Self { cuts }
    }
}

/// The middle of a second: whoever asks for lines since the one before the cut, and rounds its time up, asks for none of
/// those that are left.
fn half_past(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap() + Duration::from_millis(500)
}

fn config() -> Arc<ServerConfig> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key);
    Arc::new(config.unwrap())
}

/// From now on an API server asks here what it wants to know of these nodes.
async fn stand_for(client: &Client, labels: &str, address: SocketAddr) {
    let nodes: Api<Node> = Api::all(client.clone());
    let ours = ListParams::default().labels(labels);
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": address.ip().to_string()}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": address.port()}},
    }});
    for node in nodes.list(&ours).await.unwrap().items {
        let name = node.metadata.name.unwrap();
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }
}

fn answer(stream: &mut (impl Read + Write), begin: Timestamp, cuts: &AtomicU32) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    let target = request.split_whitespace().nth(1).unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pod = path.split('/').nth(3).unwrap();
    let asked = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.replace("%3A", ":")).next()
    };
    let since = asked("sinceTime").map(|since| since.parse::<Timestamp>().unwrap());
    let first = LINES - asked("tailLines").map_or(LINES, |tail| tail.parse().unwrap()).min(LINES);
    let follows = asked("follow").as_deref() == Some("true");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    for line in first..LINES {
        let at = begin + BETWEEN * line;
        if since.is_some_and(|since| at < since) {
            continue;
        }
        stream.write_all(format!("{at:.9} {pod} is at epoch {line}\n").as_bytes())?;
        if follows {
            stream.flush()?;
            std::thread::sleep(BETWEEN);
            if since.is_none() && line == LINES / 2 {
                cuts.fetch_add(1, Ordering::Relaxed);
                break;
            }
        }
    }
    stream.flush()
}
