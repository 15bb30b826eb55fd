//! An outside observer of a whole test: it sees every pod and node as the API server does, in its order, and writes
//! down what must never happen. It shares no code with the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};

type Amounts = BTreeMap<String, u128>;

#[derive(Debug, Default)]
struct Book {
    nodes: BTreeMap<String, Amounts>,
    /// Bound pods that are not over, by uid.
    pods: BTreeMap<String, Held>,
    /// Where each pod was ever bound, by uid.
    seats: BTreeMap<String, String>,
    violations: Vec<String>,
    seen: u64,
}

#[derive(Debug)]
struct Held {
    name: String,
    node: String,
    needs: Amounts,
}

#[derive(Debug)]
pub struct Judge {
    book: Arc<Mutex<Book>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Judge {
    /// Judges what happens on the nodes that these labels select.
    pub fn over(client: &Client, labels: &str) -> Self {
        let book = Arc::new(Mutex::new(Book::default()));
        let nodes = watcher::Config::default().labels(labels);
        let tasks = vec![
            tokio::spawn(follow_nodes(client.clone(), nodes, book.clone())),
            tokio::spawn(follow_pods(client.clone(), book.clone())),
        ];
        Self { book, tasks }
    }

    /// Everything that went wrong so far.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// How many changes of pods it has seen: a judge that saw nothing proves nothing.
    pub fn seen(&self) -> u64 {
        self.lock().seen
    }

    /// How many pods hold a node now.
    pub fn bound(&self) -> usize {
        self.lock().pods.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().expect("the observer does not panic")
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn follow_nodes(client: Client, nodes: watcher::Config, book: Arc<Mutex<Book>>) {
    let mut events = watcher(Api::<Node>::all(client), nodes).boxed();
    while let Some(event) = events.next().await {
        if let Ok(Event::Apply(node) | Event::InitApply(node)) = event {
            let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
            let amounts = allocatable.map(amounts).unwrap_or_default();
            book.lock().expect("no panics").nodes.insert(node.name_any(), amounts);
        }
    }
}

async fn follow_pods(client: Client, book: Arc<Mutex<Book>>) {
    let mut events = watcher(Api::<Pod>::all(client), watcher::Config::default()).boxed();
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        let mut book = book.lock().expect("no panics");
        match event {
            Ok(Event::Apply(pod)) => book.applied(&pod),
            Ok(Event::Delete(pod)) => book.gone(&pod.uid().unwrap_or_default()),
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => {
                listed.insert(pod.uid().unwrap_or_default());
                book.applied(&pod);
            }
            Ok(Event::InitDone) => book.pods.retain(|uid, _| listed.contains(uid)),
            // The watcher goes on by itself.
            Err(_) => {}
        }
    }
}

impl Book {
    fn applied(&mut self, pod: &Pod) {
        self.seen += 1;
        let uid = pod.uid().unwrap_or_default();
        let over = matches!(
            pod.status.as_ref().and_then(|status| status.phase.as_deref()),
            Some("Succeeded" | "Failed")
        );
        self.note_rejection(pod);
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|_| !over) else {
            return self.gone(&uid);
        };
        let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
        let before = self.seats.insert(uid.clone(), node.clone());
        if let Some(before) = before.filter(|before| *before != node) {
            self.violations.push(format!("pod {name} was bound to {before} and then to {node}"));
        }
        let known = self.pods.insert(uid, Held { name, node: node.clone(), needs: needs(pod) });
        if known.is_none() {
            self.weigh(&node);
        }
    }

    fn note_rejection(&mut self, pod: &Pod) {
        let reason = pod.status.as_ref().and_then(|status| status.reason.as_deref()).unwrap_or_default();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        if reason.starts_with("OutOf") && node.is_some_and(|node| self.nodes.contains_key(node)) {
            self.violations.push(format!("the node rejected pod {}: {reason}", pod.name_any()));
        }
    }

    fn gone(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// A node never holds more than it has.
    fn weigh(&mut self, node: &str) {
        let Some(has) = self.nodes.get(node) else { return };
        let mut held: Amounts = BTreeMap::new();
        let here: Vec<&Held> = self.pods.values().filter(|pod| pod.node == node).collect();
        for (what, amount) in here.iter().flat_map(|pod| &pod.needs) {
            *held.entry(what.clone()).or_default() += amount;
        }
        let over = held.iter().find(|(what, held)| **held > has.get(*what).copied().unwrap_or(0));
        if let Some((what, held)) = over {
            let names: Vec<&str> = here.iter().map(|pod| &*pod.name).collect();
            let line = format!("node {node} holds {held} of {what}, more than it has: {}", names.join(", "));
            self.violations.push(line);
        }
    }
}

fn needs(pod: &Pod) -> Amounts {
    let mut needs = Amounts::from([("pods".to_owned(), 1000)]);
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        for (what, amount) in requests.map(amounts).unwrap_or_default() {
            *needs.entry(what).or_default() += amount;
        }
    }
    needs
}

/// In thousandths. Tests write plain numbers, `m`, and binary suffixes.
fn amounts(quantities: &BTreeMap<String, Quantity>) -> Amounts {
    quantities.iter().map(|(what, quantity)| (what.clone(), thousandths(&quantity.0))).collect()
}

fn thousandths(text: &str) -> u128 {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u128 = digits.parse().unwrap_or_else(|_| panic!("tests use plain quantities, not {text}"));
    match &text[digits.len()..] {
        "m" => number,
        "" => number * 1000,
        "k" => number * 1_000_000,
        "Ki" => number * 1024 * 1000,
        "Mi" => number * (1 << 20) * 1000,
        "Gi" => number * (1 << 30) * 1000,
        "Ti" => number * (1 << 40) * 1000,
        other => panic!("tests use plain quantities, not {other}"),
    }
}
