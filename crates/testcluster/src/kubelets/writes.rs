//! Carrying out orders: some at a time, again after errors that pass.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::books::Order;
use super::pod::BoundPod;
use super::status;

/// How often a write is tried again after a conflict, which another try resolves unless the pod is another by now.
const CONFLICTS: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Carries out all orders, `at_once` of them at a time, for as long as there is somebody to give them.
pub(super) async fn carry_out(client: Client, orders: UnboundedReceiver<Order>, at_once: usize) {
    let orders = stream::unfold(orders, async |mut orders| Some((orders.recv().await?, orders)));
    orders.for_each_concurrent(at_once, |order| persist(&client, order)).await;
}

/// Tries until it is done or has become pointless. A server that is down for a while is waited for.
async fn persist(client: &Client, order: Order) {
    let mut conflicts = 0;
    let mut pause = FIRST_PAUSE;
    while let Err(error) = perform(client, &order).await {
        match &error {
            Error::Api(status) if status.code == 404 => return,
            Error::Api(status) if status.code == 409 => conflicts += 1,
            _ => {}
        }
        if conflicts > CONFLICTS {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn perform(client: &Client, order: &Order) -> Result<(), Error> {
    let now = Time(jiff::Timestamp::now());
    match order {
        Order::Run(pod, addresses) => patch(client, pod, &status::running(pod, *addresses, &now)).await,
        Order::Resize(pod) => patch(client, pod, &status::resized(pod)).await,
        Order::End(pod, ending) => patch(client, pod, &status::ended(pod, *ending, &now)).await,
        Order::Reject(pod, rejection) => {
            patch(client, pod, &status::rejected(pod, &rejection.reason, &now)).await
        }
        Order::Delete(pod) => delete(client, pod).await,
        Order::RenewLease(node) => renew(client, node).await,
    }
}

fn pods(client: &Client, pod: &BoundPod) -> Api<Pod> {
    Api::namespaced(client.clone(), &pod.key.namespace)
}

async fn patch(client: &Client, pod: &BoundPod, status: &Value) -> Result<(), Error> {
    let patch = Patch::Strategic(status);
    pods(client, pod).patch_status(&pod.key.name, &PatchParams::default(), &patch).await.map(drop)
}

async fn delete(client: &Client, pod: &BoundPod) -> Result<(), Error> {
    let preconditions = Some(Preconditions { uid: Some(pod.uid.clone()), ..Preconditions::default() });
    let params = DeleteParams { grace_period_seconds: Some(0), preconditions, ..DeleteParams::default() };
    pods(client, pod).delete(&pod.key.name, &params).await.map(drop)
}

/// Applying makes the lease where there is none.
async fn renew(client: &Client, node: &str) -> Result<(), Error> {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": node },
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": 40,
            "renewTime": MicroTime(jiff::Timestamp::now()),
        },
    });
    let api: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    api.patch(node, &PatchParams::apply("kubelet").force(), &Patch::Apply(lease)).await.map(drop)
}
