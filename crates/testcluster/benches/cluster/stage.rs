//! Where a trial takes place: an API server, nodes, and nothing else that acts.

use anyhow::{Context, Result};
use kube::Client;
use metronome_testcluster::{Companion, ControlPlane, Kubelets, Options, SimNode};

use crate::schedulers::Contestant;
use crate::sightings::{Sight, Sightings};
use crate::work::{NAMESPACE, Work};

pub(crate) struct Stage {
    plane: ControlPlane,
    client: Client,
}

impl Stage {
    /// Starts everything anew, with what each of the schedulers needs.
    pub(crate) async fn set(nodes: usize, contestants: &[&Contestant]) -> Result<Self> {
        let plane = ControlPlane::start(Options::default().without_flow_control()).await;
        let plane = plane.context("start a control plane")?;
        let client = plane.client().await?;
        plane.apply_yaml(&namespace(NAMESPACE)).await?;
        // Kubelets register their nodes and are sent home: nothing is to run, and nothing about the nodes changes.
        drop(Kubelets::start(client.clone(), SimNode::many("node", nodes)).await?);
        for contestant in contestants {
            contestant
                .prepare(&plane)
                .await
                .with_context(|| format!("prepare for {}", contestant.scheduler))?;
        }
        Ok(Self { plane, client })
    }

    pub(crate) fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) async fn create(&self, work: &Work) -> Result<()> {
        work.create(&self.client).await.context("create pods")
    }

    pub(crate) async fn watch(&self, sight: Sight) -> Sightings {
        Sightings::of(self.client(), sight).await
    }

    pub(crate) fn launch(&self, contestant: &Contestant) -> Result<Companion> {
        contestant.launch(&self.plane)
    }
}

/// A namespace as YAML.
pub(crate) fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {name} }}")
}
