//! When something happened to which pod, as a watch of ours saw it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::cast::Cast;
use crate::work::NAMESPACE;

/// How long a scheduler may take for all of its pods.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often to look whether it is still there.
const PULSE: Duration = Duration::from_millis(500);
/// How many of our pods that ask for little a node has room for.
const ROOM: usize = 32;

/// What to look for.
#[derive(Debug, Clone)]
pub(crate) enum Sight {
    /// Any pod with a node.
    Bound,
    /// This pod with a node: for where there are too many others to look at.
    BoundAlone(String),
    /// Any pod that a scheduler has said it cannot place.
    Refused,
}

#[derive(Debug, Default, Clone)]
struct Seen {
    /// When each pod was first as wanted, and where it is.
    pods: BTreeMap<String, (Instant, Option<String>)>,
    synced: bool,
}

impl Seen {
    /// The first list is of what was so before; a later one fills a gap in the watch.
    fn begin(&mut self) {
        if !self.synced {
            *self = Self { pods: BTreeMap::new(), synced: true };
        }
    }
}

/// A watch under way; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sightings {
    seen: watch::Receiver<Seen>,
    task: JoinHandle<()>,
}

/// The first and the last of the pods that were waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) first: Instant,
    pub(crate) last: Instant,
}

impl Sightings {
    /// Watches from now on: what was so before does not count, and what happens after this returns is not missed.
    pub(crate) async fn of(client: Client, sight: Sight) -> Self {
        let (sender, mut seen) = watch::channel(Seen::default());
        let task = tokio::spawn(follow(client, sight, sender));
        seen.wait_for(|seen| seen.synced).await.expect("the watch goes on until it is dropped");
        Self { seen, task }
    }

    /// Waits until so many pods are as wanted, as long as the scheduler lives.
    pub(crate) async fn until(&self, count: usize, cast: &mut Cast) -> Result<Span> {
        let mut seen = self.seen.clone();
        let begin = Instant::now();
        while timeout(PULSE, seen.wait_for(|seen| seen.pods.len() >= count)).await.is_err() {
            let so_far = self.seen.borrow().pods.len();
            check_hope(cast, begin)
                .inspect_err(|_| eprintln!("{}", cast.log_tails()))
                .with_context(|| format!("go on after {so_far} of {count} pods"))?;
        }
        let seen = self.seen.borrow();
        let times = || seen.pods.values().map(|(time, _)| *time);
        let span = times().min().zip(times().max()).map(|(first, last)| Span { first, last });
        Ok(span.expect("a pod is waited for"))
    }

    /// Fails where a node holds more than it has: such a scheduler is not quick but wrong.
    pub(crate) fn check_room(&self) -> Result<()> {
        let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
        for (_, node) in self.seen.borrow().pods.values() {
            *nodes.entry(node.clone().unwrap_or_default()).or_default() += 1;
        }
        let fullest = nodes.into_iter().max_by_key(|(_, pods)| *pods);
        let too_full = fullest.filter(|(_, pods)| *pods > ROOM);
        too_full
            .map_or(Ok(()), |(node, pods)| bail!("count this: {node} holds {pods} pods, and has {ROOM} CPUs"))
    }
}

fn check_hope(cast: &mut Cast, begin: Instant) -> Result<()> {
    if let Some((name, status)) = cast.ended() {
        bail!("{name} ended with {status}");
    }
    ensure!(begin.elapsed() < PATIENCE, "{} s have passed", PATIENCE.as_secs());
    Ok(())
}

impl Span {
    /// Pods a second.
    pub(crate) fn rate(&self, pods: usize) -> f64 {
        pods as f64 / (self.last - self.first).as_secs_f64()
    }
}

impl Drop for Sightings {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(client: Client, sight: Sight, sender: watch::Sender<Seen>) {
    let config = watcher::Config::default().fields(&sight.selector());
    let mut events = watcher(Api::<Pod>::namespaced(client, NAMESPACE), config).boxed();
    while let Some(event) = events.next().await {
        let now = Instant::now();
        match event {
            Ok(Event::Apply(pod) | Event::InitApply(pod)) if sight.is(&pod) => {
                sender.send_modify(|seen| {
                    seen.pods.entry(pod.name_any()).or_insert_with(|| (now, node(&pod)));
                });
            }
            Ok(Event::InitDone) => sender.send_modify(Seen::begin),
            // What else happens to pods is of no interest, and after an error the watcher goes on by itself.
            _ => {}
        }
    }
}

fn node(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

impl Sight {
    /// Lets the API server leave out what is not wanted, so that it costs neither side anything.
    fn selector(&self) -> String {
        match self {
            Self::Bound => "spec.nodeName!=".to_owned(),
            Self::BoundAlone(pod) => format!("metadata.name={pod},spec.nodeName!="),
            Self::Refused => "spec.nodeName=".to_owned(),
        }
    }

    fn is(&self, pod: &Pod) -> bool {
        match self {
            Self::Bound | Self::BoundAlone(_) => node(pod).is_some(),
            Self::Refused => {
                let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.any(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
            }
        }
    }
}
