//! What assignments take, computed from the members they name.

use std::collections::BTreeMap;

use crate::model::id::{CounterId, IdVec, NodeId};
use crate::model::job::{Job, JobSpec, Shape};
use crate::model::plan::{Assignment, Part};
use crate::model::units::Resources;

/// Used amounts of counters that are not zero.
pub(super) type Counts = BTreeMap<(CounterId, NodeId), u64>;

/// What all jobs hold in fact, added up from their lives.
pub fn occupied<'a>(nodes: usize, jobs: impl Iterator<Item = &'a Job>) -> IdVec<NodeId, Resources> {
    let mut used = IdVec::filled(Resources::NONE, nodes);
    for job in jobs {
        for assignment in job.life.holds() {
            for (node, amount) in amounts(&job.spec, &assignment) {
                used[node] = used[node] + amount;
            }
        }
    }
    used
}

/// What all jobs hold in fact of counters, where it is not nothing, in order of counter and node.
pub fn occupied_counters<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<(CounterId, NodeId, u64)> {
    let mut used = Counts::new();
    for job in jobs {
        for assignment in job.life.holds() {
            add_counts(&mut used, &job.spec, &assignment);
        }
    }
    used.into_iter().map(|((counter, node), used)| (counter, node, used)).collect()
}

pub(super) fn add_counts(to: &mut Counts, spec: &JobSpec, assignment: &Assignment) {
    for (place, amount) in counts(spec, assignment).filter(|(_, amount)| *amount > 0) {
        *to.entry(place).or_default() += amount;
    }
}

/// What an assignment takes of counters, computed from the members it names.
pub(super) fn counts<'a>(
    spec: &'a JobSpec,
    assignment: &'a Assignment,
) -> impl Iterator<Item = ((CounterId, NodeId), u64)> + 'a {
    assignment.parts().iter().flat_map(|part| {
        let needs = shape(spec, part).into_iter().flat_map(|shape| shape.counters.iter());
        needs.map(|(counter, each)| ((*counter, part.node), each.saturating_mul(u64::from(part.members))))
    })
}

/// What an assignment takes, computed from the members it names.
pub(super) fn amounts<'a>(
    spec: &'a JobSpec,
    assignment: &'a Assignment,
) -> impl Iterator<Item = (NodeId, Resources)> + 'a {
    assignment.parts().iter().map(|part| {
        let each = shape(spec, part).map_or(Resources::NONE, |shape| shape.each);
        (part.node, each.times(u64::from(part.members)))
    })
}

/// What a member asks for. A part of a role that the job does not have takes nothing, and such a gang is not whole.
pub(super) fn shape<'a>(spec: &'a JobSpec, part: &Part) -> Option<&'a Shape> {
    spec.roles.get(usize::from(part.role)).map(|role| &role.shape)
}
