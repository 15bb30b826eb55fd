//! What changes at the API server, kind by kind, as one stream of changes.
//!
//! Every kind is listed whole, then watched from there. A watch that breaks is taken up where it broke; where that is
//! no longer possible, the kind is listed again and the world told to start over with it (`Delta::Reset`). Lists are
//! consistent reads: a cached one may lack what a leader before us bound a moment ago.

mod declarations;
mod follow;
mod intent;
mod pace;
mod policy;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::metrics::Metrics;
use crate::objects::{
    Attachment, Budget, Claim, CsiDriver, CsiNode, Fabric, Group, GroupKind, JOB_LABEL, Job, Member,
    Namespace, Node, PersistentVolume, Pod, Queue, QueueKind, StorageCapacity, StorageClass, TrainJob,
    TrainingJob,
};
use follow::{Outlet, follow};

pub(crate) use intent::recorded_intents;
pub use intent::{INTENT_KEY, INTENT_LABEL, Recorded};
pub use policy::{Binding, PolicyDocument};

/// What became of the objects of one kind.
#[derive(Clone, Debug)]
pub enum Delta<T> {
    /// All there is now.
    Reset(Vec<T>),
    Applied(T),
    Deleted(T),
}

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all that is sent are pods, the largest")]
pub enum Change {
    Pod(Delta<Pod>),
    Node(Delta<Node>),
    Namespace(Delta<Namespace>),
    Claim(Delta<Claim>),
    Volume(Delta<PersistentVolume>),
    Class(Delta<StorageClass>),
    CsiNode(Delta<CsiNode>),
    Driver(Delta<CsiDriver>),
    Capacity(Delta<StorageCapacity>),
    Attachment(Delta<Attachment>),
    Budget(Delta<Budget>),
    Job(Delta<Job>),
    /// A kind whose API is gone is reset to nothing; so are queues.
    Group(GroupKind, Delta<Group>),
    Queue(QueueKind, Delta<Queue>),
    Fabric(Delta<Fabric>),
    TrainJob(Delta<TrainJob>),
    TrainingJob(Delta<TrainingJob>),
    /// A pod of a `TrainingJob`, also one that is over.
    Member(Delta<Member>),
    Intent(Delta<Recorded>),
    Policy(Option<PolicyDocument>),
    /// Every kind that is there has been reset once. Said once, after the last of them.
    Synced,
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Metronome's own, where intents and the policy are.
    pub namespace: String,
    /// The name of the ConfigMap with the policy.
    pub policy: String,
    /// Objects in one page of a list.
    pub page: u32,
    /// How often to look for kinds whose API came or went.
    pub rediscover: Duration,
}

impl Settings {
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            policy: "metronome".to_owned(),
            page: 2_000,
            rediscover: Duration::from_secs(30),
        }
    }
}

/// How long one watch lasts before it is taken up anew, in seconds. A line that died without a word is noticed by
/// then.
pub(crate) const ROUND: u32 = 60;

/// Pods that have ended hold nothing and are most of what a busy cluster keeps.
const LIVING: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// Watches everything until `out` is closed.
pub async fn watch(client: Client, settings: Settings, metrics: Metrics, out: mpsc::Sender<Change>) {
    let client = pace::paced(client, metrics.clone());
    let (outlet, mut first_resets) = Outlet::new(out.clone(), metrics);
    let mut watches = JoinSet::new();
    follow_cluster(&client, &settings, &outlet, &mut watches);
    follow_own(&client, &settings, &outlet, &mut watches);
    watches.spawn(declarations::follow(client, settings, outlet));
    while first_resets.recv().await.is_some() {}
    if out.send(Change::Synced).await.is_ok() {
        out.closed().await;
    }
}

/// The kinds that every cluster has.
fn follow_cluster(client: &Client, settings: &Settings, outlet: &Outlet, watches: &mut JoinSet<()>) {
    let all = listed(settings);
    let pods = all.clone().fields(LIVING);
    watches.spawn(follow(Api::all(client.clone()), pods, outlet.of("pods"), |delta| [Change::Pod(delta)]));
    let members = all.clone().labels(JOB_LABEL);
    watches.spawn(follow(Api::all(client.clone()), members, outlet.of("members"), |delta| {
        [Change::Member(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("nodes"), |delta| {
        [Change::Node(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("namespaces"), |delta| {
        [Change::Namespace(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("claims"), |delta| {
        [Change::Claim(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("volumes"), |delta| {
        [Change::Volume(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("classes"), |delta| {
        [Change::Class(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("csinodes"), |delta| {
        [Change::CsiNode(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("csidrivers"), |delta| {
        [Change::Driver(delta)]
    }));
    watches.spawn(follow(
        Api::all(client.clone()),
        all.clone(),
        outlet.of("csistoragecapacities"),
        |delta| [Change::Capacity(delta)],
    ));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("attachments"), |delta| {
        [Change::Attachment(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all.clone(), outlet.of("budgets"), |delta| {
        [Change::Budget(delta)]
    }));
    watches.spawn(follow(Api::all(client.clone()), all, outlet.of("jobs"), |delta| [Change::Job(delta)]));
}

/// What Metronome keeps in its own namespace.
fn follow_own(client: &Client, settings: &Settings, outlet: &Outlet, watches: &mut JoinSet<()>) {
    let maps = || Api::<ConfigMap>::namespaced(client.clone(), &settings.namespace);
    let intents = listed(settings).labels(INTENT_LABEL);
    watches.spawn(follow(maps(), intents, outlet.of("intents"), |delta| {
        [Change::Intent(delta.map(Recorded::read))]
    }));
    let policy = listed(settings).fields(&format!("metadata.name={}", settings.policy));
    watches.spawn(follow(maps(), policy, outlet.of("policy"), |delta| {
        [Change::Policy(delta.only().map(|map| PolicyDocument::read(&map)))]
    }));
}

/// How every kind is listed and watched.
fn listed(settings: &Settings) -> watcher::Config {
    watcher::Config::default().page_size(settings.page).timeout(ROUND)
}

impl<T> Delta<T> {
    fn map<U>(self, read: impl Fn(T) -> U) -> Delta<U> {
        match self {
            Self::Reset(all) => Delta::Reset(all.into_iter().map(read).collect()),
            Self::Applied(one) => Delta::Applied(read(one)),
            Self::Deleted(one) => Delta::Deleted(read(one)),
        }
    }

    /// Of a kind that has at most one: what it is now.
    fn only(self) -> Option<T> {
        match self {
            Self::Reset(all) => all.into_iter().next(),
            Self::Applied(one) => Some(one),
            Self::Deleted(_) => None,
        }
    }
}
