//! How many members of a job fit, for jobs of which that number alone decides whether they fit.

use super::draft::{Draft, Reach};
use crate::model::id::NodeId;
use crate::model::job::{Job, Shape, Topology};
use crate::model::plan::Assignment;
use crate::model::units::Resources;

#[derive(Clone, Copy, Debug)]
pub(super) struct Fits<'a> {
    shape: &'a Shape,
    pub(super) wanted: u64,
}

impl<'a> Fits<'a> {
    /// `None` for jobs of several roles, with rules, or bound to a level: more decides about those.
    pub(super) fn of(job: &'a Job) -> Option<Self> {
        let [role] = &job.spec.roles[..] else { return None };
        let anywhere = !matches!(job.spec.topology, Topology::Required(_)) && job.spec.teams.is_none();
        let wanted = u64::from(job.spec.members());
        (anywhere && role.shape.rules.is_empty()).then_some(Self { shape: &role.shape, wanted })
    }

    pub(super) fn everywhere(self, trial: &Draft<'_>) -> u64 {
        let nodes = trial.snapshot.cluster.nodes().ids();
        nodes.map(|node| u64::from(trial.fit_on(node, self.shape, Reach::Claimed))).sum()
    }

    /// The most members more that a node takes if this much is released there.
    pub(super) fn at_most_more(self, draft: &Draft<'_>, node: NodeId, freed: Resources) -> u64 {
        let then = self.shape.each.count_in(draft.free_on(node, Reach::Claimed) + freed);
        u64::from(then.saturating_sub(draft.fit_on(node, self.shape, Reach::Claimed)))
    }

    /// How many members fit on the nodes of an assignment.
    pub(super) fn around(self, trial: &Draft<'_>, somebody: &Assignment) -> u64 {
        somebody.nodes().map(|node| u64::from(trial.fit_on(node, self.shape, Reach::Claimed))).sum()
    }
}
