//! Pods that fail are held against their node, and what follows from that is said on the node.

use std::collections::BTreeSet;
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::cluster::Name;
use metronome_core::model::id::NodeId;
use metronome_core::model::report::AvoidedNode;
use metronome_core::model::units::Instant;
use metronome_words::is_avoided;

use super::World;
use super::pods::Uid;
use crate::deed::{About, EventReason, Kind, ObjectRef, Telling};
use crate::objects::Pod;

impl World {
    /// A pod is over. If it failed by itself, and not because it was to go, the engine is told where.
    pub(super) fn note_failure(&mut self, now: Instant, uid: &Uid, pod: &Pod) {
        let failed =
            pod.status.phase.as_deref() == Some("Failed") && pod.metadata.deletion_timestamp.is_none();
        let Some(known) = self.pods.get(uid).filter(|known| failed && !known.is_leaving()) else { return };
        let node = known.node().and_then(|node| self.border.node_id(node));
        let of = owner(pod).unwrap_or_else(|| known.gang.full_name().into());
        if let Some(node) = node {
            self.engine.observe(now, Event::MemberFailed { node, of });
        }
    }

    /// Says of each node that is avoided that it is, once.
    pub(super) fn say_what_is_avoided(&mut self) {
        let state = self.engine.state();
        let all = state.node_failures.avoided().iter().map(|(node, avoided)| AvoidedNode {
            node: *node,
            failed: avoided.failed.iter().cloned().collect(),
            lasts: avoided.until.since(state.now),
        });
        let all: Vec<AvoidedNode> = all.collect();
        let now: BTreeSet<NodeId> = all.iter().map(|avoided| avoided.node).collect();
        let before = std::mem::replace(&mut self.avoided, now);
        for avoided in all.iter().filter(|avoided| !before.contains(&avoided.node)) {
            let message = is_avoided(avoided, self.engine.state());
            let about = About::Object(reference(&self.node_name(avoided.node)));
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::NodeAvoided, message }));
        }
    }
}

/// Whoever makes a pod anew when it fails: all that it makes are one job.
fn owner(pod: &Pod) -> Option<Name> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    Some(format!("{namespace}/{}", controller.name).into())
}

/// Events about nodes name them in place of a uid, as kubelets do.
fn reference(name: &Arc<str>) -> ObjectRef {
    ObjectRef {
        api_version: "v1".into(),
        kind: "Node".into(),
        plural: "nodes".into(),
        namespace: "".into(),
        name: name.clone(),
        uid: name.clone(),
    }
}
