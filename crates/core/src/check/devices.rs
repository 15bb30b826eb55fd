//! Whether shares of GPUs lie on devices, computed from the members that assignments name.
//!
//! A node has as many devices as whole GPUs. Each member with less than one GPU names a device, of which no more may be
//! taken than there is; all others have whole devices, of which there must be enough beside the named ones.

use std::collections::BTreeMap;

use super::amounts::shape;
use super::{Checker, Violation};
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::Cluster;
use crate::model::id::{DeviceId, JobId, NodeId};
use crate::model::job::{Job, JobSpec};
use crate::model::plan::{Amendment, Assignment};
use crate::model::units::Gpus;

/// Used shares of devices that are not zero.
pub(super) type Shares = BTreeMap<(NodeId, DeviceId), u64>;

const DEVICE: u64 = Gpus::whole(1).0;

/// What all jobs hold in fact of devices that are shared, in order of node and device.
pub fn occupied_shares<'a>(jobs: impl Iterator<Item = &'a Job>) -> Vec<(NodeId, DeviceId, Gpus)> {
    let mut used = Shares::new();
    for job in jobs {
        for assignment in job.life.holds() {
            add_shares(&mut used, &job.spec, &assignment);
        }
    }
    used.into_iter().map(|((node, device), used)| (node, device, Gpus(used))).collect()
}

pub(super) fn add_shares(to: &mut Shares, spec: &JobSpec, assignment: &Assignment) {
    for (place, share) in shares(spec, assignment) {
        *to.entry(place).or_default() += share;
    }
}

pub(super) fn remove_shares(from: &mut Shares, spec: &JobSpec, assignment: &Assignment) {
    for (place, share) in shares(spec, assignment) {
        let left = from.remove(&place).unwrap_or(0).saturating_sub(share);
        if left > 0 {
            from.insert(place, left);
        }
    }
}

pub(super) fn shares<'a>(
    spec: &'a JobSpec,
    assignment: &'a Assignment,
) -> impl Iterator<Item = ((NodeId, DeviceId), u64)> + 'a {
    assignment.parts().iter().filter_map(|part| {
        let each = shape(spec, part)?.each.gpus.0;
        Some(((part.node, part.device?), each.saturating_mul(u64::from(part.members))))
    })
}

/// Whether every member with a share of a GPU names a device, and every other has whole GPUs.
pub(super) fn lies_on_devices(id: JobId, spec: &JobSpec, assignment: &Assignment) -> Result<(), Violation> {
    for part in assignment.parts() {
        let each = spec.roles[usize::from(part.role)].shape.each.gpus.0;
        let right = match part.device {
            Some(_) => each > 0 && each < DEVICE,
            None => each.is_multiple_of(DEVICE),
        };
        if !right {
            return Err(Violation::NotOnDevices(id, part.node));
        }
    }
    Ok(())
}

/// Whether a node has a device for every one that is shared or used whole. `gpus` is what is used of it in all.
pub(super) fn suffice(
    cluster: &Cluster,
    node: NodeId,
    gpus: Gpus,
    shares: impl Iterator<Item = u64>,
) -> bool {
    let devices = cluster.node(node).capacity.gpus.0 / DEVICE;
    let (mut shared, mut open) = (0u64, 0u64);
    for used in shares {
        shared += used;
        open += 1;
    }
    gpus.0.saturating_sub(shared).div_ceil(DEVICE) + open <= devices
}

impl Checker {
    /// Whether the devices of each node to which GPUs are added hold what is then on them. `gpus` names these nodes, with
    /// what is used of each in all.
    pub(super) fn devices_suffice(
        &self,
        snapshot: &Snapshot<'_>,
        amendment: &Amendment,
        gpus: impl Iterator<Item = (NodeId, Gpus)>,
    ) -> Result<(), Violation> {
        let specs = amendment.assignments.iter().map(|(id, change)| (id, &snapshot.jobs[*id].spec, change));
        let mut added = Shares::new();
        let mut removed = Shares::new();
        for (id, spec, change) in specs {
            if let Some((_, old)) = self.held.get(id) {
                add_shares(&mut removed, spec, old);
            }
            if let Some(new) = change {
                add_shares(&mut added, spec, new);
            }
        }
        // Where nobody shares a device, amounts alone decide.
        if added.is_empty() && self.shares.is_empty() {
            return Ok(());
        }
        for (node, gpus) in gpus {
            let mut after: BTreeMap<DeviceId, u64> = self.shares_on(node).collect();
            for ((_, device), share) in on(&removed, node) {
                after.entry(*device).and_modify(|used| *used = used.saturating_sub(*share));
            }
            for ((_, device), share) in on(&added, node) {
                *after.entry(*device).or_default() += share;
            }
            // A device that the world has filled too much is no fault of who goes to another.
            let overfull = on(&added, node).any(|((_, device), _)| after[device] > DEVICE);
            let used = after.into_values().filter(|used| *used > 0);
            if overfull || !suffice(snapshot.cluster, node, gpus, used) {
                return Err(Violation::Oversubscribed(node));
            }
        }
        Ok(())
    }

    /// Whether more is used of a node's devices than there is.
    pub(super) fn devices_are_over(&self, cluster: &Cluster, node: NodeId) -> bool {
        let shares = || self.shares_on(node).map(|(_, used)| used);
        shares().any(|used| used > DEVICE) || !suffice(cluster, node, self.nodes[node].gpus, shares())
    }

    /// Used shares of the shared devices of a node.
    pub(super) fn shares_on(&self, node: NodeId) -> impl Iterator<Item = (DeviceId, u64)> {
        on(&self.shares, node).map(|((_, device), used)| (*device, *used))
    }
}

fn on(shares: &Shares, node: NodeId) -> impl Iterator<Item = (&(NodeId, DeviceId), &u64)> {
    shares.range((node, DeviceId(0))..=(node, DeviceId(u32::MAX)))
}
