//! What can be counted of the agent of a node.

use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Clones share their counts.
#[derive(Clone, Debug)]
pub(super) struct AgentMetrics {
    pub(super) members: Gauge,
    pub(super) unmeasured: Gauge,
    pub(super) doors: Gauge,
    pub(super) heard: Gauge,
    pub(super) notes: Counter,
    pub(super) failed_notes: Counter,
    registry: Arc<Registry>,
}

impl Default for AgentMetrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("metronome_agent");
        let [members, unmeasured, doors, heard] = [(); 4].map(|()| Gauge::default());
        let [notes, failed_notes] = [(); 2].map(|()| Counter::default());
        registry.register("members", "Members of jobs that run on this node", members.clone());
        registry.register("unmeasured_members", "Those whose wire was not found", unmeasured.clone());
        registry.register("doors", "Pods that can report to the agent", doors.clone());
        registry.register("measures", "1 where the part that measures answers", heard.clone());
        registry.register("notes", "Annotations written on pods", notes.clone());
        registry.register("failed_notes", "Annotations that could not be written", failed_notes.clone());
        Self { members, unmeasured, doors, heard, notes, failed_notes, registry: Arc::new(registry) }
    }
}

impl AgentMetrics {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        text::encode(&mut text, &self.registry).expect("a string takes whatever is written to it");
        text
    }
}
