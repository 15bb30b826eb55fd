//! Where a trial takes place: an API server, nodes, and nothing else that acts but, where that is wanted, kubelets.

use anyhow::{Context, Result};
use kube::Client;
use metronome_testcluster::{ControlPlane, Kubelets, Options, SimNode};

use crate::cast::Cast;
use crate::schedulers::Contestant;
use crate::sightings::{Sight, Sightings};
use crate::work::{NAMESPACE, Work};

pub(crate) struct Stage {
    plane: ControlPlane,
    client: Client,
    kubelets: Option<Kubelets>,
}

impl Stage {
    /// Starts everything anew, with what each of the schedulers needs. No pod is run.
    pub(crate) async fn set(nodes: usize, contestants: &[&Contestant]) -> Result<Self> {
        let mut stage = Self::set_with_kubelets(nodes, contestants).await?;
        // They have registered their nodes and are sent home: nothing about the nodes is to change.
        stage.kubelets = None;
        Ok(stage)
    }

    /// The same with kubelets that run what is bound.
    pub(crate) async fn set_with_kubelets(nodes: usize, contestants: &[&Contestant]) -> Result<Self> {
        let plane = ControlPlane::start(Options::default().without_flow_control()).await;
        let plane = plane.context("start a control plane")?;
        let client = plane.client().await?;
        plane.apply_yaml(&namespace(NAMESPACE)).await?;
        let kubelets = Kubelets::start(client.clone(), SimNode::many("node", nodes)).await?;
        for contestant in contestants {
            contestant
                .prepare(&plane)
                .await
                .with_context(|| format!("prepare for {}", contestant.scheduler))?;
        }
        Ok(Self { plane, client, kubelets: Some(kubelets) })
    }

    pub(crate) fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// How many pods kubelets have started, each with one write.
    pub(crate) fn started(&self) -> u64 {
        self.kubelets.as_ref().map_or(0, |kubelets| kubelets.counts().started)
    }

    /// Waits until so many pods run, where there are kubelets.
    pub(crate) async fn until_running(&self, pods: u64) {
        if let Some(kubelets) = &self.kubelets {
            kubelets.until(|counts| counts.running >= pods).await;
        }
    }

    pub(crate) async fn create(&self, work: &Work) -> Result<()> {
        work.create(&self.client).await.context("create pods")
    }

    pub(crate) async fn watch(&self, sight: Sight) -> Sightings {
        Sightings::of(self.client(), sight).await
    }

    pub(crate) fn launch(&self, contestant: &Contestant) -> Result<Cast> {
        contestant.launch(&self.plane)
    }
}

/// A namespace as YAML.
pub(crate) fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {name} }}")
}
