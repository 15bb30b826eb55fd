//! Where Kubernetes ends and the core begins: the book of nodes, of what others hold on them, and of everything that
//! was given an id. Objects go in as they change, the engine is told what that means, and pods come out as shapes.
//!
//! Cost: a pod is O(the groups it belongs to), a new set or division O(nodes), a node O(sets and divisions), a new
//! group O(the kinds of pods it may be about). Ids of what nobody uses any more are used again.

mod anchored;
mod counters;
mod divisions;
mod groups;
mod jobs;
mod kinds;
mod nodes;
mod others;
mod pool;
mod queues;
mod sets;
mod shape;
mod storage;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::Engine;
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::units::Instant;

use crate::objects::{Namespace, Node, Pod};
use crate::rules::Refusal;
use crate::rules::selector::{Labels, labels_of};
use crate::rules::storage::Storage;
use wire::Wire;

pub use jobs::{Cast, Shaped};
pub use queues::{DEFAULT as DEFAULT_QUEUE, Queues};
pub use shape::Facts;

#[derive(Debug, Default)]
pub struct Border {
    nodes: nodes::Nodes,
    counters: counters::Counters,
    sets: sets::Sets,
    divisions: divisions::Divisions,
    groups: groups::Groups,
    kinds: kinds::Kinds,
    others: others::Others,
    jobs: jobs::Jobs,
    storage: Storage,
    namespaces: BTreeMap<String, Labels>,
}

impl Border {
    /// `levels` are the labels of nodes that say where they are, outermost first, as the engine's cluster has them. A
    /// node without the label is in a domain of its own.
    pub fn new(levels: Vec<String>) -> Self {
        Self { nodes: nodes::Nodes::new(levels), ..Self::default() }
    }

    /// A node is new or has changed. Whether it is ready does not matter: its taints say what follows from that.
    pub fn node_applied(&mut self, engine: &mut Engine, now: Instant, node: Node) {
        self.node_came(&mut Wire { engine, now }, node);
    }

    pub fn node_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        self.node_left(&mut Wire { engine, now }, name);
    }

    pub fn namespace_applied(&mut self, engine: &mut Engine, now: Instant, namespace: &Namespace) {
        let name = namespace.metadata.name.clone().unwrap_or_default();
        let labels = labels_of(&namespace.metadata).clone();
        if self.namespaces.get(&name) != Some(&labels) {
            self.namespaces.insert(name.clone(), labels);
            self.namespace_differs(&mut Wire { engine, now }, &name);
        }
    }

    pub fn namespace_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        if self.namespaces.remove(name).is_some() {
            self.namespace_differs(&mut Wire { engine, now }, name);
        }
    }

    fn namespace_differs(&mut self, wire: &mut Wire<'_>, name: &str) {
        self.ask_again(wire);
        let jobs = self.jobs_in(name);
        self.jobs.outdated.extend(jobs);
    }

    /// A pod on a node that is no job of the engine: another scheduler's, or one whose job is over but not the pod.
    pub fn other_applied(&mut self, engine: &mut Engine, now: Instant, pod: &Pod) {
        self.other_came(&mut Wire { engine, now }, pod);
    }

    pub fn other_gone(&mut self, engine: &mut Engine, now: Instant, uid: &str) {
        self.other_left(&mut Wire { engine, now }, uid);
    }

    /// Learns what a pod needs, and makes it known to the engine as far as it is new.
    pub fn facts(&mut self, engine: &mut Engine, now: Instant, pod: &Pod) -> Result<Arc<Facts>, Refusal> {
        self.learn(&mut Wire { engine, now }, pod).map(Arc::new)
    }

    /// A pod's needs as of now. They are to be asked for once the facts of all the job's pods are known, and again
    /// whenever the job comes back to waiting.
    pub fn shape(&mut self, engine: &mut Engine, now: Instant, facts: &Facts) -> Shaped {
        self.shape_now(&mut Wire { engine, now }, facts)
    }

    /// A job with these roles is with the engine, waiting or running, or has other shapes now.
    pub fn job_joined(&mut self, engine: &mut Engine, now: Instant, job: JobId, roles: Vec<Cast>) {
        self.joined(&mut Wire { engine, now }, job, roles);
    }

    /// The engine has nothing more to do with the job.
    pub fn job_left(&mut self, engine: &mut Engine, now: Instant, job: JobId) {
        self.left(&Wire { engine, now }, job);
    }

    /// Jobs for whose pods rules hold that their shapes do not have yet, because somebody came who keeps such pods
    /// away, or a namespace has other labels. Those that wait must be given new shapes.
    pub fn outdated(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.jobs.outdated).into_iter().collect()
    }

    /// All that are there.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.present().map(|(_, node)| node)
    }

    pub fn node_id(&self, name: &str) -> Option<NodeId> {
        self.nodes.id(name)
    }

    pub fn node_name(&self, id: NodeId) -> &Arc<str> {
        self.nodes.name(id)
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests;
