//! Nodes that take no new members, whatever is free on them.
//!
//! `Draft::fit_on` asks `excludes` before it counts free capacity, so a filter holds for every placement: starts, moves and
//! further members of elastic gangs. A new filter is a function in this file and a line in `excludes`. Members that run on
//! an excluded node stay there. Counts that are kept for speed (`Draft::fits`) include nodes that only a new filter excludes:
//! they are upper bounds, and a search finds out. Proposers that look at `NodeState::Ready` themselves only choose candidates; the
//! place that they propose goes through `fit_on`.

use crate::decide::snapshot::Snapshot;
use crate::model::cluster::NodeState;
use crate::model::id::NodeId;

/// Whether slow nodes count as excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preference {
    HealthyNodes,
    AnyNode,
}

/// Whether some filter excludes a node.
pub(super) fn excludes(snapshot: &Snapshot<'_>, node: NodeId, preference: Preference) -> bool {
    is_not_ready(snapshot, node) || preference == Preference::HealthyNodes && is_slow(snapshot, node)
}

/// A node that is cordoned, avoided, draining or gone.
pub(super) fn is_not_ready(snapshot: &Snapshot<'_>, node: NodeId) -> bool {
    snapshot.cluster.node(node).state != NodeState::Ready
}

/// A node on which members fall behind their peers.
pub(super) fn is_slow(snapshot: &Snapshot<'_>, node: NodeId) -> bool {
    snapshot.slow.contains_key(&node)
}
