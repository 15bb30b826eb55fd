//! The one loop behind all kubelets: what happens goes into the books, what they order goes out.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use tokio::sync::{mpsc, watch};

use super::books::{Books, Diligence, Order};
use super::pod::BoundPod;
use super::{Counts, Rejection};

/// What a test tells the kubelets.
#[derive(Debug)]
pub(super) enum Command {
    RejectNext { node: String, reason: String },
    Turn { node: String, diligence: Diligence },
}

/// Where the outside sees what happens.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) orders: mpsc::UnboundedSender<Order>,
    pub(super) counts: watch::Sender<Counts>,
    pub(super) rejections: Arc<Mutex<Vec<Rejection>>>,
}

pub(super) async fn run(
    client: Client,
    mut books: Books,
    mut commands: mpsc::UnboundedReceiver<Command>,
    outlets: Outlets,
) {
    let mut pods = std::pin::pin!(bound_pods(client));
    loop {
        let due = books.next_due().map(tokio::time::Instant::from_std);
        tokio::select! {
            // What a test says holds for all that it does afterwards; what is due does not wait for a quiet moment.
            biased;
            Some(command) = commands.recv() => obey(&mut books, command),
            () = tokio::time::sleep_until(due.unwrap_or_else(tokio::time::Instant::now)), if due.is_some() => {
                books.wake(Instant::now());
            }
            Some(event) = pods.next() => observe(&mut books, event),
            else => return,
        }
        outlets.publish(&mut books);
    }
}

/// One watch for all nodes: a thousand would be a thousand connections.
fn bound_pods(client: Client) -> impl Stream<Item = Event<Pod>> {
    let config = watcher::Config::default().fields("spec.nodeName!=");
    let events = watcher::watcher(Api::<Pod>::all(client), config).default_backoff();
    // The watcher goes on by itself after an error, when it has waited.
    events.filter_map(async |event| event.ok())
}

fn observe(books: &mut Books, event: Event<Pod>) {
    match event {
        Event::Init => books.begin_listing(),
        Event::InitDone => books.end_listing(),
        Event::InitApply(pod) | Event::Apply(pod) => {
            if let Some(pod) = BoundPod::of(&pod) {
                books.observe(pod, Instant::now());
            }
        }
        Event::Delete(pod) => {
            if let Some(pod) = BoundPod::of(&pod) {
                books.forget(&pod.key);
            }
        }
    }
}

fn obey(books: &mut Books, command: Command) {
    match command {
        Command::RejectNext { node, reason } => books.reject_next(&node, reason),
        Command::Turn { node, diligence } => books.turn(&node, diligence, Instant::now()),
    }
}

impl Outlets {
    fn publish(&self, books: &mut Books) {
        for order in books.take_orders() {
            // Nobody takes orders any more only while everything is being stopped.
            let _ = self.orders.send(order);
        }
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner).extend(books.take_rejections());
        let counts = books.counts();
        self.counts.send_if_modified(|published| std::mem::replace(published, counts) != counts);
    }
}
