//! Simulated kubelets, thousands in one process: they register nodes, run the pods bound to them and refuse what does
//! not fit, as real ones do; there is just nothing inside the pods.

mod amounts;
mod books;
mod node;
mod pod;
mod routine;
mod status;
mod writes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use books::{Books, Diligence, node_address};
use node::Readiness;
use routine::{Command, Outlets};

pub use node::{Effect, SimNode};
pub use pod::{FAILS_AFTER, RUNS_FOR};

/// How quick kubelets are.
#[derive(Debug, Clone)]
pub struct Pace {
    /// From the binding of a pod until it runs.
    pub start_after: Duration,
    /// From the deletion of a pod until it has ended; never longer than its grace period.
    pub stop_after: Duration,
    /// From the start of a pod that is to end, and does not say when, until it has ended well; never, if not given.
    pub ends_after: Option<Duration>,
    /// How often each node renews its lease, if at all. Only the node controller asks.
    pub heartbeat: Option<Duration>,
    /// How many writes to the API server may be under way.
    pub writes_at_once: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            start_after: Duration::ZERO,
            stop_after: Duration::ZERO,
            ends_after: None,
            heartbeat: None,
            writes_at_once: 32,
        }
    }
}

/// What has happened to pods, as far as the API server has confirmed it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Now.
    pub running: u64,
    /// Ever.
    pub started: u64,
    /// Refused at the node's door, for lack of room or on a test's demand.
    pub rejected: u64,
    /// Gone from the API server.
    pub removed: u64,
}

/// A pod that a node did not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub namespace: String,
    pub pod: String,
    pub node: String,
    /// As in the status of the pod: `OutOfcpu`.
    pub reason: String,
}

/// The kubelets of some nodes. They stop when this is dropped; what they have written stays.
pub struct Kubelets {
    client: Client,
    nodes: BTreeMap<String, (usize, SimNode)>,
    commands: mpsc::UnboundedSender<Command>,
    counts: watch::Receiver<Counts>,
    rejections: Arc<Mutex<Vec<Rejection>>>,
    /// Aborted on drop.
    _tasks: JoinSet<()>,
}

impl Kubelets {
    /// Registers the nodes and runs their kubelets, as quickly as they can.
    pub async fn start(client: Client, nodes: impl IntoIterator<Item = SimNode>) -> Result<Self> {
        Self::start_at(Pace::default(), client, nodes).await
    }

    pub async fn start_at(
        pace: Pace,
        client: Client,
        nodes: impl IntoIterator<Item = SimNode>,
    ) -> Result<Self> {
        let nodes: Vec<SimNode> = nodes.into_iter().collect();
        register(&client, &nodes, pace.writes_at_once).await?;
        let (commands, obeyed) = mpsc::unbounded_channel();
        let (orders, carried_out) = mpsc::unbounded_channel();
        let (counts, counted) = watch::channel(Counts::default());
        let rejections = Arc::default();
        let amounts = nodes.iter().map(|node| (node.name().to_owned(), node.amounts()));
        let at_once = pace.writes_at_once;
        let books = Books::new(pace, amounts, Instant::now());
        let outlets = Outlets { orders, counts, rejections: Arc::clone(&rejections) };
        let mut tasks = JoinSet::new();
        tasks.spawn(routine::run(client.clone(), books, obeyed, outlets));
        tasks.spawn(writes::carry_out(client.clone(), carried_out, at_once));
        let nodes =
            nodes.into_iter().enumerate().map(|(at, node)| (node.name().to_owned(), (at, node))).collect();
        Ok(Self { client, nodes, commands, counts: counted, rejections, _tasks: tasks })
    }

    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until the counts are as wanted; a test that would wait too long has a timeout around it.
    pub async fn until(&self, wanted: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.counts.clone();
        *counts.wait_for(wanted).await.expect("kubelets run until they are dropped")
    }

    /// All pods that were not let in.
    pub fn rejections(&self) -> Vec<Rejection> {
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next pod that comes to a node fails with a reason, such as `OutOfcpu`.
    pub fn reject_next(&self, node: &str, reason: &str) {
        self.tell(Command::RejectNext { node: self.known(node), reason: reason.to_owned() });
    }

    /// The kubelet does nothing any more and says nothing, as if its cable were cut.
    pub fn silence(&self, node: &str) {
        self.turn(node, Diligence::Idle);
    }

    /// The kubelet says that its node is not ready, and does nothing any more. The node is tainted as the node
    /// controller would.
    pub async fn lose_readiness(&self, node: &str) -> Result<()> {
        self.turn(node, Diligence::Idle);
        self.report(node, Readiness::NotReady).await
    }

    /// The node is deleted, and its kubelet does nothing any more.
    pub async fn remove(&self, node: &str) -> Result<()> {
        self.turn(node, Diligence::Idle);
        self.api().delete(node, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The node is back and ready, registered again if need be; its kubelet takes up its work.
    pub async fn recover(&self, node: &str) -> Result<()> {
        let (number, described) = &self.nodes[&self.known(node)];
        if self.api().get_opt(node).await?.is_none() {
            create(&self.client, *number, described).await?;
        }
        self.report(node, Readiness::Ready).await?;
        self.turn(node, Diligence::Working);
        Ok(())
    }

    async fn report(&self, node: &str, readiness: Readiness) -> Result<()> {
        let now = Time(jiff::Timestamp::now());
        let status = json!({ "status": { "conditions": node::conditions(readiness, &now) } });
        let taints = self.nodes[&self.known(node)].1.taints(readiness);
        let params = PatchParams::default();
        self.api().patch_status(node, &params, &Patch::Strategic(status)).await?;
        self.api().patch(node, &params, &Patch::Merge(taints)).await?;
        Ok(())
    }

    fn turn(&self, node: &str, diligence: Diligence) {
        self.tell(Command::Turn { node: self.known(node), diligence });
    }

    fn tell(&self, command: Command) {
        self.commands.send(command).expect("kubelets run until they are dropped");
    }

    fn known(&self, node: &str) -> String {
        assert!(self.nodes.contains_key(node), "there is no node `{node}`");
        node.to_owned()
    }

    fn api(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }
}

/// A client has nothing to show.
impl fmt::Debug for Kubelets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelets").field("nodes", &self.nodes.len()).field("counts", &self.counts()).finish()
    }
}

async fn register(client: &Client, nodes: &[SimNode], at_once: usize) -> Result<()> {
    let created = stream::iter(nodes.iter().enumerate()).map(|(number, node)| create(client, number, node));
    created.buffer_unordered(at_once).try_collect().await
}

async fn create(client: &Client, number: usize, node: &SimNode) -> Result<()> {
    let object = node.object(node_address(number), &Time(jiff::Timestamp::now()));
    let created = Api::<Node>::all(client.clone()).create(&PostParams::default(), &object).await;
    let doing = || format!("register node {}", node.name());
    created.map(drop).map_err(|source| Error::Api { doing: doing(), source: Box::new(source) })
}
