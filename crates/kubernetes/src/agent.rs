//! The agent in a cluster: one on each node. It learns from the API server who runs there and which turns they have, hands
//! that to the part that measures and enforces, and writes what was measured and reported on the pods.
//!
//! The other part is the same as outside of Kubernetes and knows nothing of pods: between the two are a file with the
//! members, written here (`handed`), and a socket that is asked for what was observed (`observed`). Where a pod's processes
//! and its wire are on the node is found in folders (`cgroups`, `interfaces`).

pub mod cgroups;
mod doors;
pub mod handed;
pub mod interfaces;
pub mod members;
mod metrics;
pub mod notes;
pub mod observed;
mod seats;
mod serve;
mod token;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Config, ResourceExt};
use metronome_core::model::units::Bandwidth;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::request::connect;
use crate::serve::Health;
use crate::world::TRAFFIC;

use doors::Doors;
use handed::Handed;
use members::Member;
use metrics::AgentMetrics;
use notes::{Note, Notes};
use seats::Seats;

/// How often the node is looked at and what was observed is asked for.
const EVERY: Duration = Duration::from_secs(1);

/// A loop that has not turned for so long hangs.
const STALLED_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct Options {
    /// The node that this is.
    pub node: String,
    /// Pods with this `schedulerName` are looked after.
    pub scheduler: String,
    /// Where both parts of the agent meet.
    pub folder: PathBuf,
    pub roots: Roots,
    /// The node's link to the others, if classes are to be enforced on it, and what it carries.
    pub uplink: Option<(String, Bandwidth)>,
    /// Where health and metrics are served.
    pub listen: Option<SocketAddr>,
}

/// Where the node's own folders are.
#[derive(Clone, Debug)]
pub struct Roots {
    pub processes: PathBuf,
    pub interfaces: PathBuf,
    pub cgroups: PathBuf,
    /// Where the kubelet keeps the volumes of pods.
    pub pods: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            processes: "/proc".into(),
            interfaces: "/sys/class/net".into(),
            cgroups: "/sys/fs/cgroup".into(),
            pods: "/var/lib/kubelet/pods".into(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("connect to the API server")]
    Connect(#[source] kube::Error),
    #[error("listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("use the folder {folder}")]
    Folder {
        folder: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Runs until `stop` says so. The other part of the agent may come later, or come and go: nothing is lost but what it
/// would have measured.
pub async fn run(
    config: Config,
    options: Options,
    mut stop: watch::Receiver<bool>,
) -> Result<(), AgentError> {
    let client = connect(config).map_err(AgentError::Connect)?;
    let health = Health::new(STALLED_AFTER);
    let metrics = AgentMetrics::default();
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| AgentError::Listen { address, source })?;
        tokio::spawn(serve::serve(listener, health.clone(), metrics.clone()));
    }
    let mut agent = Agent::new(client.clone(), options, metrics)?;
    let here = watcher::Config::default().fields(&format!("spec.nodeName={}", agent.options.node));
    let mut pods = pin!(watcher(Api::<Pod>::all(client), here).default_backoff());
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(event) = pods.next() => match event {
                Ok(Event::InitDone) => {
                    agent.listed();
                    health.ready();
                }
                Ok(event) => agent.see(event),
                Err(error) => tracing::warn!(%error, "the watch of pods broke"),
            },
            _ = ticks.tick() => {
                agent.turn().await;
                health.beat();
            }
            () = told_to_stop(&mut stop) => break,
        }
    }
    agent.leave();
    Ok(())
}

/// Whoever could say so and is gone has said it.
async fn told_to_stop(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

struct Agent {
    client: Client,
    options: Options,
    token: String,
    members: BTreeMap<Arc<str>, Member>,
    /// What a listing has shown so far.
    listing: BTreeMap<Arc<str>, Member>,
    is_listed: bool,
    seats: Seats,
    handed: Option<Handed>,
    doors: Doors,
    notes: Notes,
    /// From which observation on to ask.
    after: u64,
    metrics: AgentMetrics,
}

impl Agent {
    fn new(client: Client, options: Options, metrics: AgentMetrics) -> Result<Self, AgentError> {
        let token = token::read_or_make(&options.folder);
        let token = token.map_err(|source| AgentError::Folder { folder: options.folder.clone(), source })?;
        Ok(Self {
            client,
            token,
            members: BTreeMap::new(),
            listing: BTreeMap::new(),
            is_listed: false,
            seats: Seats::new(options.roots.clone()),
            handed: None,
            doors: Doors::new(options.folder.join("socket")),
            notes: Notes::new(Instant::now()),
            after: 0,
            metrics,
            options,
        })
    }

    fn see(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(pod) => {
                if let Some(member) = self.meet(&pod) {
                    self.listing.insert(member.uid.clone(), member);
                }
            }
            Event::Apply(pod) => {
                let uid: Arc<str> = pod.uid().unwrap_or_default().into();
                match self.meet(&pod) {
                    Some(member) => drop(self.members.insert(uid, member)),
                    None => drop(self.members.remove(&uid)),
                }
            }
            Event::Delete(pod) => drop(self.members.remove(&*pod.uid().unwrap_or_default())),
            Event::InitDone => {}
        }
    }

    fn meet(&mut self, pod: &Pod) -> Option<Member> {
        let member = Member::of(pod, &self.options.scheduler)?;
        self.notes.meet(&member.uid, pod.annotations().get(TRAFFIC).map(String::as_str));
        Some(member)
    }

    /// Who was not listed is gone.
    fn listed(&mut self) {
        self.members = std::mem::take(&mut self.listing);
        self.is_listed = true;
    }

    async fn turn(&mut self) {
        if !self.is_listed {
            return;
        }
        self.hand_over();
        self.notes.keep(&self.members);
        self.hear().await;
        for note in self.notes.due(Instant::now(), &self.members) {
            self.write(&note).await;
        }
    }

    /// Says who is there, where that is news.
    fn hand_over(&mut self) {
        self.seats.find(&self.members);
        self.doors.keep(&self.seats.volumes(&self.members));
        let handed = self.seats.handed(&self.members, self.options.uplink.as_ref());
        self.metrics.members.set(handed.members.len() as i64);
        let blind = handed.members.iter().filter(|member| member.counters.is_none()).count();
        self.metrics.unmeasured.set(blind as i64);
        self.metrics.doors.set(self.doors.count() as i64);
        if self.handed.as_ref() == Some(&handed) {
            return;
        }
        match handed.write(&self.options.folder) {
            Ok(()) => self.handed = Some(handed),
            Err(error) => tracing::warn!(%error, "who is on this node cannot be handed over"),
        }
    }

    async fn hear(&mut self) {
        let socket = self.options.folder.join("socket");
        let answer = match observed::ask(&socket, &self.token, self.after).await {
            Ok(answer) => answer,
            Err(error) => {
                self.metrics.heard.set(0);
                // It may have been started anew, and count from the beginning.
                self.after = 0;
                tracing::debug!(%error, "nothing is heard of what is measured");
                return;
            }
        };
        self.metrics.heard.set(1);
        self.after = answer.next;
        for one in answer.observed {
            if let Some(progress) = &one.progress
                && let Some(member) = self.called(&progress.job, &progress.member)
            {
                self.notes.reported(&member, progress);
            }
            if let Some(measured) = &one.traffic
                && let Some(member) = self.called(&measured.job, &measured.member)
            {
                self.notes.measured(&member, measured);
            }
        }
    }

    fn called(&self, job: &str, name: &str) -> Option<Member> {
        self.members.values().find(|member| member.job == job && member.name == name).cloned()
    }

    /// Only this pod is meant, and none that took its name.
    async fn write(&mut self, note: &Note) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &note.namespace);
        let patch = json!({"metadata": {"uid": &*note.uid, "annotations": {note.key: note.value}}});
        match pods.patch_metadata(&note.pod, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => drop(self.metrics.notes.inc()),
            Err(error) => {
                self.metrics.failed_notes.inc();
                self.notes.was_not_written(note);
                tracing::debug!(pod = %note.pod, key = note.key, %error, "a note was not written");
            }
        }
    }

    /// Nobody is looked after any more.
    fn leave(&mut self) {
        if let Err(error) = Handed::default().write(&self.options.folder) {
            tracing::warn!(%error, "that nobody is left cannot be handed over");
        }
    }
}
