//! The agent as a whole: what is served, and what is watched.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio::signal::unix::{SignalKind, signal};

use crate::intake::{self, Shared, lock};
use crate::marks::Marks;
use crate::watch::Watcher;

#[derive(Clone, Debug)]
pub struct Options {
    /// Where `members.json` and `token` are, and `socket` will be.
    pub dir: PathBuf,
    /// Where to listen besides.
    pub listen: Option<SocketAddr>,
    /// The least time between two looks at counters.
    pub step: Duration,
    /// Whether what members send is marked with the class of their job.
    pub mark: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("listen on {path}")]
    Socket { path: PathBuf, source: io::Error },
    #[error("listen on {address}")]
    Port { address: SocketAddr, source: io::Error },
    #[error("start a thread")]
    Thread(#[source] io::Error),
}

/// Runs until the process is asked to end.
pub fn run_until_told_to_stop(options: Options) -> Result<(), AgentError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(AgentError::Thread)?;
    runtime.block_on(async {
        let mut ended = signal(SignalKind::terminate()).map_err(AgentError::Thread)?;
        let mut interrupted = signal(SignalKind::interrupt()).map_err(AgentError::Thread)?;
        let stop = async {
            tokio::select! {
                _ = ended.recv() => {}
                _ = interrupted.recv() => {}
            }
        };
        run(options, stop).await
    })
}

/// Runs until `stop` completes, and then takes back whatever it has made.
pub async fn run(options: Options, stop: impl Future<Output = ()>) -> Result<(), AgentError> {
    let shared = Arc::new(Shared::default());
    lock(&shared.observed).go_on_after_earlier_agents(SystemTime::now());
    let path = options.dir.join("socket");
    let unix = intake::unix(&path).map_err(|source| AgentError::Socket { path: path.clone(), source })?;
    let mut doors = vec![tokio::spawn(intake::serve(unix, shared.clone()))];
    if let Some(address) = options.listen {
        let tcp = intake::tcp(address).await.map_err(|source| AgentError::Port { address, source })?;
        doors.push(tokio::spawn(intake::serve(tcp, shared.clone())));
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let marks = options.mark.then(Marks::default);
    let (watcher, told) = (Watcher::new(&options.dir, shared, options.step, marks), is_over.clone());
    let watching = std::thread::Builder::new()
        .name("watch".into())
        .spawn(move || watcher.run(&told))
        .map_err(AgentError::Thread)?;
    stop.await;
    is_over.store(true, Ordering::Relaxed);
    doors.iter().for_each(tokio::task::JoinHandle::abort);
    // It has to take back what it made; that is worth waiting for.
    let _ = tokio::task::spawn_blocking(|| watching.join()).await;
    let _ = std::fs::remove_file(&path);
    Ok(())
}
