//! From members on a node to parts of an assignment: whole GPUs together, shares device by device.

use super::Search;
use crate::decide::draft::{Draft, Reach};
use crate::model::id::NodeId;
use crate::model::job::Role;
use crate::model::plan::Part;

/// A role with its number in the job.
pub(super) type Numbered<'a> = (usize, &'a Role);

impl<'a> Search<'a> {
    /// Takes capacity on a node for members that fit there. Each share goes to the fullest device that has capacity
    /// for it, an unclaimed one before a claimed one.
    pub(super) fn seat(
        &self,
        draft: &mut Draft<'a>,
        (index, role): Numbered<'a>,
        node: NodeId,
        members: u32,
    ) -> Vec<Part> {
        let (shape, each) = (&role.shape, role.shape.each.gpus);
        let whole = Part::of(index as u8, node, members);
        if !each.is_share() {
            draft.take(whole, shape);
            return vec![whole];
        }
        let mut parts: Vec<Part> = Vec::new();
        for _ in 0..members {
            let unclaimed = draft.devices_on(node, Reach::Unclaimed).best_for(each);
            let device = unclaimed.or_else(|| draft.devices_on(node, self.reach).best_for(each));
            let device = Some(device.expect("a node was chosen that has a device for every member"));
            let part = Part { device, members: 1, ..whole };
            draft.take(part, shape);
            parts.push(part);
        }
        merged(parts)
    }
}

/// Merges parts on the same node and device.
pub(super) fn merged(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_unstable();
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match merged.last_mut().filter(|last| last.is_with(&part)) {
            Some(last) => last.members += part.members,
            None => merged.push(part),
        }
    }
    merged
}
