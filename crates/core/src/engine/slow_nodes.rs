//! Nodes on which members of jobs fall behind their peers.

use super::Engine;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Life;
use crate::model::policy::Moving;
use crate::model::units::Duration;
use crate::observe::progress::StragglerVerdict;

impl Engine {
    /// Members of a role on a node took so long for their own part of an iteration. Who moves nobody for gain does not
    /// look at that, and of members that are not there nothing is believed.
    pub(super) fn member_took(&mut self, id: JobId, role: u8, node: NodeId, iteration: Duration) {
        let (now, nodes) = (self.state.now, self.state.cluster.nodes());
        let Some(job) = self.state.jobs.get_mut(id) else { return };
        let Life::Running(held) = &job.life else { return };
        let is_there = held.parts().iter().any(|part| (part.role, part.node) == (role, node));
        if !is_there || self.state.policy.moving != Moving::ForGain {
            return;
        }
        let kind = |node: NodeId| nodes[node].gpu_type;
        let tuning = &self.state.policy.tuning.observe;
        let alike = |other| kind(other) == kind(node);
        let verdict = job.progress.record_member_time(now, (role, node), iteration, alike, tuning);
        let (count, slow_nodes) = (nodes.len(), &mut self.state.slow_nodes);
        self.state.dirty |= match verdict {
            StragglerVerdict::Nothing => false,
            StragglerVerdict::IsSlow { speed, beside } => {
                slow_nodes.note_slow(now, (node, id), (speed, beside), count, tuning)
            }
            StragglerVerdict::KeepsUp => slow_nodes.keeps_up(node, id, tuning),
            StragglerVerdict::SlowEverywhere => slow_nodes.withdraw_evidence(id, tuning),
        };
    }

    /// Nodes of which nobody has said for long that they are slow count as well again; true if there were any.
    pub(super) fn end_slowness(&mut self) -> bool {
        let ended = self.state.slow_nodes.end(self.state.now);
        self.state.dirty |= ended;
        ended
    }
}
