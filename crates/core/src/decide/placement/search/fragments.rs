//! Fragmentation: what a placement leaves of a node for other jobs.
//!
//! A free GPU may be of no use: to members that need more of one device than is left of it, that need more CPU or
//! memory than is left beside it, or that ask for another type. The loss of a placement is how many GPUs more are of
//! no use after it than before, as a mean over the requests of all jobs that wait or run, each weighted by how many
//! members ask for it. The node with the least loss is taken, so that GPUs which can serve hardly any other request
//! are used first.
//!
//! Each node that takes the members costs two looks at up to `max_fragmentation_requests` requests and the shared
//! devices of the node. Where no job asks for a share of a GPU this is left out: there the tightest node does as well,
//! for nothing.

use std::cmp::Reverse;

use crate::decide::draft::Draft;
use crate::model::allocated::is_eligible;
use crate::model::cluster::Cluster;
use crate::model::devices::Devices;
use crate::model::id::NodeId;
use crate::model::job::{Eligibility, Shape};
use crate::model::policy::Placement;
use crate::model::units::{Gpus, Resources};

use super::Search;

/// Thousandths of GPUs that become useless, added up over the requests: where nodes are compared, that is as good as
/// their mean. Less than nothing where less is useless than before.
pub(super) type Loss = i64;

/// The requests that there are.
#[derive(Debug)]
pub(super) struct Requests {
    common: Vec<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    each: Resources,
    on: Eligibility,
    uses: u32,
}

impl Requests {
    /// Nothing where only whole GPUs are asked for, or the policy does not look at what it leaves.
    pub(super) fn around(draft: &Draft<'_>, rule: Placement) -> Option<Self> {
        let shapes = &draft.snapshot.room.shapes;
        if rule != Placement::Topology || !shapes.asks_for_gpu_shares() {
            return None;
        }
        let mut asked: Vec<(u32, &Shape)> = shapes
            .in_use()
            .filter(|(shape, _)| !shape.each.gpus.is_zero())
            .map(|(shape, uses)| (uses, shape))
            .collect();
        asked.sort_unstable_by_key(|(uses, shape)| (Reverse(*uses), *shape));
        asked.truncate(draft.snapshot.tuning.decide.max_fragmentation_requests);
        let request = |(uses, shape): (u32, &Shape)| Request { each: shape.each, on: shape.on, uses };
        Some(Self { common: asked.into_iter().map(request).collect() })
    }

    /// The free GPUs of a node that are of no use to each request, added up.
    fn useless(&self, cluster: &Cluster, node: NodeId, left: &Left<'_>) -> Loss {
        let useless = |request: &Request| {
            let gpus = match is_eligible(cluster, node, request.on) {
                true => left.useless_to(request.each),
                false => left.room.gpus,
            };
            Loss::from(request.uses) * gpus.0 as Loss
        };
        self.common.iter().map(useless).sum()
    }
}

/// Free capacity of a node.
struct Left<'d> {
    room: Resources,
    devices: Devices<'d>,
    empty: u64,
}

impl<'d> Left<'d> {
    fn new(room: Resources, devices: Devices<'d>) -> Self {
        Self { room, empty: devices.empty().unwrap_or(0), devices }
    }

    /// Free capacity after this number of members more.
    fn with(self, each: Resources, members: u32) -> Option<Self> {
        let room = self.room - each.times(u64::from(members));
        Some(Self::new(room, self.devices.with(each.gpus, members)?))
    }

    /// Free GPUs that requests of one kind cannot use: pieces of devices that are smaller than what each needs of one,
    /// and whatever is more than there is CPU and memory for; all, where not even one finds a place.
    fn useless_to(&self, each: Resources) -> Gpus {
        let (mut large, mut fits) = (Gpus::whole(self.empty), Gpus::whole(self.empty) >= each.gpus);
        for piece in self.devices.pieces().filter(|piece| *piece >= each.gpus) {
            large += piece;
            fits = true;
        }
        if !fits {
            return self.room.gpus;
        }
        let beside = Resources { gpus: Gpus::ZERO, ..each }.count_in(self.room);
        self.room.gpus - large.min(each.gpus.times(u64::from(beside)))
    }
}

impl Search<'_> {
    /// What other jobs would lose if the whole gang were on that node; zero where the policy does not look at it.
    pub(super) fn loss(&self, draft: &Draft<'_>, node: NodeId) -> Loss {
        let roles = self.job.spec.roles.iter().map(|role| (role.shape.each, self.size(role)));
        self.loss_by(draft, node, roles)
    }

    /// The same of these members.
    pub(super) fn loss_by(
        &self,
        draft: &Draft<'_>,
        node: NodeId,
        members: impl Iterator<Item = (Resources, u32)>,
    ) -> Loss {
        let Some(requests) = &self.requests else { return 0 };
        let cluster = draft.snapshot.cluster;
        let left = || Left::new(draft.free_on(node, self.reach), draft.devices_on(node, self.reach));
        let mut after = Some(left());
        for (each, members) in members {
            after = after.and_then(|left| left.with(each, members));
        }
        // Roles that fit one by one need not fit together; then the node is as good or bad as by its slack.
        let after = after.map(|after| requests.useless(cluster, node, &after));
        after.map_or(0, |after| after - requests.useless(cluster, node, &left()))
    }
}
