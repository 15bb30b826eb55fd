//! The border and an engine, fed with objects made by hand.

mod bound;
mod company;
mod hostile;
mod nodes;

use std::sync::Arc;

use metronome_core::engine::{Engine, Settings};
use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{IdVec, JobId};
use metronome_core::model::job::{Gang, JobSpec, Role, RoleKind};
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Instant, Resources};
use serde_json::{Value, json};

use super::*;

const NOW: Instant = Instant::START;

/// A cluster of hand-made objects.
struct World {
    border: Border,
    engine: Engine,
}

fn read<T: serde::de::DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// Objects in which what is given stands above what is usual.
fn with(mut usual: Value, given: Value) -> Value {
    let Value::Object(given) = given else { return given };
    for (key, value) in given {
        let before = usual.get(&key).cloned().unwrap_or(Value::Null);
        usual[&key] = with(before, value);
    }
    usual
}

impl World {
    fn new() -> Self {
        let cluster = Cluster::new(&["zone"]).unwrap();
        let queues: IdVec<_, Queue> = [Queue::open("default")].into_iter().collect();
        let engine = Engine::new(cluster, queues, Policy::named("metronome").unwrap(), Settings::default());
        Self { border: Border::new(vec!["zone".into()]), engine }
    }

    /// Four nodes `a1`, `a2`, `b1`, `b2` in two zones.
    fn of_two_zones() -> Self {
        let mut world = Self::new();
        for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")] {
            world.node(name, json!({"metadata": {"labels": {"zone": zone}}}));
        }
        world
    }

    fn node(&mut self, name: &str, given: Value) {
        let usual = json!({
            "metadata": {"name": name, "labels": {"host": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        });
        self.border.node_applied(&mut self.engine, NOW, read(with(usual, given)));
    }

    fn other(&mut self, uid: &str, node: &str, given: Value) {
        let usual =
            json!({"metadata": {"uid": uid, "name": uid, "namespace": "n"}, "spec": {"nodeName": node}});
        self.border.other_applied(&mut self.engine, NOW, &read(with(usual, given)));
    }

    fn gone(&mut self, uid: &str) {
        self.border.other_gone(&mut self.engine, NOW, uid);
    }

    fn facts(&mut self, given: Value) -> Result<Arc<Facts>, Refusal> {
        let usual = json!({"metadata": {"uid": "p", "name": "p", "namespace": "n"}});
        self.border.facts(&mut self.engine, NOW, &read(with(usual, given)))
    }

    /// Submits a job of so many such pods.
    fn job(&mut self, members: u64, given: Value) -> JobId {
        let facts = self.facts(given).unwrap();
        let shaped = self.border.shape(&mut self.engine, NOW, &facts);
        let role =
            Role { kind: RoleKind::Worker, gang: Gang::rigid(members).unwrap(), shape: shaped.shape.clone() };
        let spec = JobSpec {
            roles: vec![role],
            ..JobSpec::workers("job", Gang::rigid(1).unwrap(), Resources::default())
        };
        let job = self.engine.submit(NOW, Arc::new(spec));
        let cast = Cast { shaped, members: vec![facts; members as usize] };
        self.border.job_joined(&mut self.engine, NOW, job, vec![cast]);
        job
    }

    /// Where such a pod could go now.
    fn feasible(&mut self, given: Value) -> String {
        let job = self.job(1, given);
        let feasible = self.feasible_for(job);
        self.engine.observe(NOW, metronome_core::engine::Event::JobCancelled(job));
        self.border.job_left(&mut self.engine, NOW, job);
        feasible
    }

    fn feasible_for(&self, job: JobId) -> String {
        let nodes = self.engine.feasible_nodes(job);
        let names: Vec<&str> = nodes.into_iter().map(|id| &**self.border.node_name(id)).collect();
        names.join(" ")
    }
}
