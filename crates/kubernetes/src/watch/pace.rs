//! A client for watches that cannot be made to run hot. A watch that ends at once without an error is taken up again
//! at once; where a server or something before it does nothing but end watches, that would be a busy loop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::time::Instant;

use crate::bucket::{Bucket, Limit};
use crate::metrics::Metrics;

/// How often one path is watched anew.
const WATCHES: Limit = Limit { per_second: 1.0, burst: 5 };

/// The same client, with watches spaced and every request counted.
pub(super) fn paced(client: Client, metrics: Metrics) -> Client {
    let namespace = client.default_namespace().to_owned();
    let paths = Arc::new(Mutex::new(HashMap::new()));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, metrics, paths) = (client.clone(), metrics.clone(), paths.clone());
        async move {
            tokio::time::sleep(delay(&paths, &request)).await;
            send(&client, &metrics, request).await
        }
    });
    Client::new(service, namespace)
}

/// How long a request has to wait; only watches do.
fn delay(paths: &Mutex<HashMap<String, Bucket>>, request: &Request<Body>) -> Duration {
    if !is_watch(request) {
        return Duration::ZERO;
    }
    let now = Instant::now();
    let mut paths = paths.lock().expect("nobody panics while holding it");
    let path = paths.entry(request.uri().to_string()).or_insert_with(|| Bucket::new(WATCHES, now));
    path.reserve(now)
}

async fn send(client: &Client, metrics: &Metrics, request: Request<Body>) -> kube::Result<Response<Body>> {
    let verb = if is_watch(&request) { "watch" } else { "list" };
    let resource = resource(request.uri().path());
    let response = client.send(request).await;
    let code = response.as_ref().map_or(0, |response| response.status().as_u16());
    metrics.asked(verb, resource, code);
    response
}

fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("watch=")))
}

/// What is listed, as a label: one of a few.
fn resource(path: &str) -> &'static str {
    const KNOWN: [&str; 12] = [
        "pods",
        "nodes",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "storageclasses",
        "csinodes",
        "poddisruptionbudgets",
        "jobs",
        "configmaps",
        "podgroups",
        "workloads",
    ];
    let last = path.rsplit('/').next().unwrap_or_default();
    KNOWN.into_iter().find(|known| *known == last).unwrap_or("apis")
}
