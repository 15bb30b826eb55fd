//! A faulty network: an HTTP proxy on loopback between a client and the API server, with faults set at run time.
//!
//! It speaks plain HTTP and lends its identity to whoever connects. One proxy stands for the line of one client:
//! pausing it is a partition.

mod answer;
mod class;
mod forward;
mod link;
mod rule;
mod tally;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::control_plane::{ControlPlane, kubeconfig};
use crate::error::{Error, Result};
use forward::Forwarder;

pub use class::{Class, Verb};
pub use rule::{Chance, Fault, Rule};
pub use tally::Tally;

/// A line to the API server. It ends when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    kubeconfig: PathBuf,
    forwarder: Arc<Forwarder>,
    /// Aborted on drop, with all connections.
    _accepting: JoinSet<()>,
}

impl Proxy {
    /// A line for a client that may do everything. The seed decides when faults strike.
    pub async fn start(plane: &ControlPlane, seed: u64) -> Result<Self> {
        Self::start_as(plane, &plane.kubeconfig_path(), seed).await
    }

    /// A line for a client that is whom a kubeconfig says.
    pub async fn start_as(plane: &ControlPlane, identity: &Path, seed: u64) -> Result<Self> {
        let upstream = kubeconfig::client(identity).await?;
        let spawning = |source| Error::Spawn { what: "a proxy".to_owned(), source };
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(spawning)?;
        let address = listener.local_addr().map_err(spawning)?;
        let kubeconfig = new_kubeconfig(plane.folder(), address)?;
        let forwarder = Arc::new(Forwarder::new(upstream, seed));
        let mut accepting = JoinSet::new();
        accepting.spawn(forward::accept(listener, Arc::clone(&forwarder)));
        Ok(Self { address, kubeconfig, forwarder, _accepting: accepting })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client that sees every fault: it retries nothing by itself.
    pub async fn client(&self) -> Result<Client> {
        kubeconfig::client(&self.kubeconfig).await
    }

    /// From now on, until healed.
    pub fn inject(&self, rule: Rule) {
        self.forwarder.rules().push(rule);
    }

    /// No more faults, and what was paused goes on.
    pub fn heal(&self) {
        self.forwarder.rules().clear();
        self.resume();
    }

    /// A partition: what is sent is held, in both directions, and nobody is told.
    pub fn pause(&self) {
        self.forwarder.switch.pause();
    }

    pub fn resume(&self) {
        self.forwarder.switch.resume();
    }

    /// Ends all watches that are open.
    pub fn cut_watches(&self) {
        self.forwarder.switch.cut();
    }

    /// What has happened to requests of a class.
    pub fn tally(&self, verb: Verb, resource: &str) -> Tally {
        self.forwarder.tallies().get(&Class::new(verb, resource)).copied().unwrap_or_default()
    }

    /// What has happened to all requests.
    pub fn total(&self) -> Tally {
        self.forwarder.tallies().values().copied().fold(Tally::default(), Tally::plus)
    }
}

/// In the folder of the control plane, with which it is removed.
fn new_kubeconfig(folder: &Path, address: SocketAddr) -> Result<PathBuf> {
    static PROXIES: AtomicU32 = AtomicU32::new(0);
    let number = PROXIES.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("proxy-{number}.kubeconfig"));
    kubeconfig::write(&path, &kubeconfig::anonymous(&format!("http://{address}")))?;
    Ok(path)
}
