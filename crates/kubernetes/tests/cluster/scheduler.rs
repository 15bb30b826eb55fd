//! A scheduler in this process, for one corner of the cluster.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use metronome_kubernetes::run::{self, Options};
use metronome_kubernetes::world::Settings;
use metronome_kubernetes::{act, lead, watch};
use metronome_testcluster::{ControlPlane, Corner};
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;

pub(crate) struct Scheduled {
    corner: Corner,
    scheduler: Option<Running>,
}

struct Running {
    stop: channel::Sender<bool>,
    task: JoinHandle<()>,
}

impl Deref for Scheduled {
    type Target = Corner;
    fn deref(&self) -> &Corner {
        &self.corner
    }
}

impl Scheduled {
    pub(crate) async fn new(plane: &'static ControlPlane, name: &str, nodes: usize) -> Self {
        let mut corner = Self::not_yet(plane, name, nodes).await;
        corner.start().await;
        corner
    }

    /// The scheduler is started later.
    pub(crate) async fn not_yet(plane: &'static ControlPlane, name: &str, nodes: usize) -> Self {
        Self { corner: Corner::new(plane, name, nodes).await, scheduler: None }
    }

    pub(crate) async fn start(&mut self) {
        let kubeconfig = self.plane.kubeconfig_path();
        self.start_through(&kubeconfig, |_| {}).await;
    }

    /// Starts the scheduler, talking to the API server by this configuration.
    pub(crate) async fn start_through(&mut self, kubeconfig: &Path, adjust: impl FnOnce(&mut Options)) {
        let config = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let mut options = self.options();
        adjust(&mut options);
        let (stop, stopped) = channel::channel(false);
        let task = tokio::spawn(async move { run::run(config, options, stopped).await.unwrap() });
        self.scheduler = Some(Running { stop, task });
    }

    /// Each corner has a scheduler of its own name, so that tests can share one API server.
    fn options(&self) -> Options {
        let mut lead = lead::Settings::new(&self.namespace, "test", "1");
        lead.retry = Duration::from_millis(200);
        let name = self.namespace.clone();
        Options {
            world: Settings::new(&self.namespace),
            lead,
            act: act::Settings::new(&self.namespace, "test"),
            watch: watch::Settings::new(&self.namespace),
            listen: None,
            accepts_first_plan: false,
            journal: None,
            say: Arc::new(move |line| eprintln!("{name}: {line}")),
        }
    }

    pub(crate) async fn stop(&mut self) {
        if let Some(Running { stop, task }) = self.scheduler.take() {
            stop.send_replace(true);
            task.await.unwrap();
        }
    }
}
