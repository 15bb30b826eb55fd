//! Where further members of a running gang go.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::decide::draft::{Draft, Reach};
use crate::decide::elastic_gang::{ElasticGang, Place, Proximity};
use crate::model::id::NodeId;
use crate::model::plan::{Assignment, Part};

impl<'a> ElasticGang<'a> {
    /// The gang with this number of members more, each where it would go after the others.
    pub(in crate::decide) fn with_more(
        &self,
        draft: &Draft<'a>,
        held: &Assignment,
        members: u32,
        reach: Reach,
    ) -> Option<Assignment> {
        if self.teams.is_some() {
            let mut larger = held.clone();
            for _ in 0..members.div_ceil(self.unit()) {
                larger = self.with_one_more(draft, &larger)?;
            }
            return Some(larger);
        }
        let near = Proximity::to(draft.snapshot, self.job, held);
        let stays = self.job.spec.capabilities.resize_in_place;
        let allowed = |node: &NodeId| near.allows(*node) && (!stays || held.touches(*node));
        let nodes = draft.snapshot.cluster.nodes().ids().filter(allowed);
        let fits = nodes.map(|node| (draft.fit_on(node, &self.role.shape, reach), node));
        let mut fits: Vec<(Reverse<usize>, u32, NodeId)> = fits
            .filter(|(fit, _)| *fit > 0)
            .map(|(fit, node)| (Reverse(near.count(node)), fit, node))
            .collect();
        fits.sort_unstable();
        let (mut parts, mut left) = (held.parts().to_vec(), members);
        for (_, fit, node) in fits {
            let more = fit.min(left);
            if more > 0 {
                self.add(draft, &mut parts, node, more);
            }
            left -= more;
        }
        Assignment::whole(&self.job.spec, parts).ok().filter(|_| left == 0)
    }

    /// The gang with one more member, or team: on its own nodes before others, near before far, and where least is
    /// left.
    pub(in crate::decide) fn with_one_more(
        &self,
        draft: &Draft<'a>,
        held: &Assignment,
    ) -> Option<Assignment> {
        let near = Proximity::to(draft.snapshot, self.job, held);
        let mut places: BTreeMap<Place, Vec<(Reverse<usize>, u32, NodeId)>> = BTreeMap::new();
        // A member on a slow node would hold up the whole gang.
        let is_of_use = |node: &NodeId| near.allows(*node) && !draft.is_slow(*node);
        for node in draft.snapshot.cluster.nodes().ids().filter(is_of_use) {
            let fit = draft.fit_on(node, &self.role.shape, Reach::Unclaimed);
            if fit > 0 {
                let nodes = places.entry(self.place(draft.snapshot.cluster, node)).or_default();
                nodes.push((Reverse(near.count(node)), fit, node));
            }
        }
        let fit = |nodes: &[(Reverse<usize>, u32, NodeId)]| -> u64 {
            nodes.iter().map(|(_, fit, _)| u64::from(*fit)).sum()
        };
        let large = places.into_values().filter(|nodes| fit(nodes) >= u64::from(self.unit()));
        let mut nodes = large.min_by_key(|nodes| (nodes.iter().map(|(near, ..)| *near).min(), fit(nodes)))?;
        nodes.sort_unstable_by_key(|(near, fit, node)| (*near, Reverse(*fit), *node));
        let (mut parts, mut left) = (held.parts().to_vec(), self.unit());
        for (_, fit, node) in nodes {
            self.add(draft, &mut parts, node, fit.min(left));
            left -= fit.min(left);
        }
        Assignment::whole(&self.job.spec, parts).ok()
    }

    fn add(&self, draft: &Draft<'a>, parts: &mut Vec<Part>, node: NodeId, members: u32) {
        let each = self.role.shape.each.gpus;
        let device = draft.devices_on(node, Reach::Unclaimed).best_for(each).filter(|_| each.is_share());
        let more = Part { device, ..Part::of(self.index, node, members) };
        match parts.iter_mut().find(|part| part.is_with(&more)) {
            Some(part) => part.members += members,
            None => parts.push(more),
        }
    }
}
