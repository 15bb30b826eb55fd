//! Assignments: a whole gang on its nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::id::{CounterId, DeviceId, NodeId};
use crate::model::job::JobSpec;
use crate::model::units::{Gpus, Resources};

/// Members of one role on one node; on one device of it if each has a share of a GPU.
///
/// A device number is valid while a member uses the device: parts with the same number share it. Devices that a
/// member has for itself have no number, because they are interchangeable; enough of them remain beside the numbered
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Part {
    pub role: u8,
    pub node: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceId>,
    pub members: u32,
}

impl Part {
    /// Members that share no device.
    pub const fn of(role: u8, node: NodeId, members: u32) -> Self {
        Self { role, node, device: None, members }
    }

    /// Whether these members are in the same place as those of another part.
    pub(crate) fn is_with(&self, other: &Self) -> bool {
        (self.role, self.node, self.device) == (other.role, other.node, other.device)
    }
}

/// A whole gang on its nodes. No constructor makes a partial one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// By role, then node.
    parts: Vec<Part>,
    /// Resources per node, in order of node.
    takes: Vec<(NodeId, Resources)>,
    /// Counters by node and counter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counters: Vec<(NodeId, CounterId, u64)>,
    /// Shares of devices by node and device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shares: Vec<(NodeId, DeviceId, Gpus)>,
}

/// Why parts do not form an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWhole {
    /// Fewer or more members than the gang allows.
    #[error("role {role} would have {members} members")]
    Members { role: usize, members: u64 },
    /// A share of a GPU without a device, or whole GPUs with one.
    #[error("members of role {role} would not have their GPUs on devices")]
    Devices { role: usize },
}

impl Assignment {
    /// Combines the parts, if every role gets as many members as its gang allows, each on devices.
    pub fn whole(spec: &JobSpec, mut parts: Vec<Part>) -> Result<Self, NotWhole> {
        parts.retain(|part| part.members > 0);
        parts.sort_unstable();
        for (index, role) in spec.roles.iter().enumerate() {
            let of_role = parts.iter().filter(|part| usize::from(part.role) == index);
            let members: u64 = of_role.map(|part| u64::from(part.members)).sum();
            if members < u64::from(role.gang.min()) || members > u64::from(role.gang.max()) {
                return Err(NotWhole::Members { role: index, members });
            }
        }
        if let Some(last) = parts.last().filter(|last| usize::from(last.role) >= spec.roles.len()) {
            let (role, members) = (usize::from(last.role), u64::from(last.members));
            return Err(NotWhole::Members { role, members });
        }
        let each = |part: &Part| spec.roles[usize::from(part.role)].shape.each.gpus;
        let astray = |part: &&Part| match part.device {
            Some(_) => !each(part).is_share(),
            None => !each(part).is_whole(),
        };
        match parts.iter().find(astray) {
            Some(part) => Err(NotWhole::Devices { role: usize::from(part.role) }),
            None => Ok(Self::add_up(spec, parts)),
        }
    }

    fn add_up(spec: &JobSpec, parts: Vec<Part>) -> Self {
        let mut takes: BTreeMap<NodeId, Resources> = BTreeMap::new();
        let mut counters: BTreeMap<(NodeId, CounterId), u64> = BTreeMap::new();
        let mut shares: BTreeMap<(NodeId, DeviceId), Gpus> = BTreeMap::new();
        for part in &parts {
            let (shape, members) = (&spec.roles[usize::from(part.role)].shape, u64::from(part.members));
            let taken = takes.entry(part.node).or_default();
            *taken = *taken + shape.each.times(members);
            if let Some(device) = part.device {
                *shares.entry((part.node, device)).or_default() += shape.each.gpus.times(members);
            }
            for (counter, each) in &*shape.counters {
                let taken = counters.entry((part.node, *counter)).or_default();
                *taken = taken.saturating_add(each.saturating_mul(members));
            }
        }
        let counters = counters.into_iter().map(|((node, counter), taken)| (node, counter, taken));
        let shares = shares.into_iter().map(|((node, device), taken)| (node, device, taken));
        Self {
            parts,
            takes: takes.into_iter().collect(),
            counters: counters.collect(),
            shares: shares.collect(),
        }
    }

    /// The rest of the assignment after some members of a role on a node ended; `None` if they were not there. `spec`
    /// contains the reduced gang already.
    pub(crate) fn without(&self, spec: &JobSpec, left: Part) -> Option<Self> {
        let mut parts = self.parts.clone();
        let part = parts.iter_mut().find(|part| part.is_with(&left))?;
        part.members = part.members.checked_sub(left.members)?;
        Self::whole(spec, parts).ok()
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Resources per node, in order of node.
    pub fn takes(&self) -> &[(NodeId, Resources)] {
        &self.takes
    }

    /// Counters, in order of node, then counter.
    pub fn counters(&self) -> &[(NodeId, CounterId, u64)] {
        &self.counters
    }

    /// Shares of devices, in order of node, then device.
    pub fn shares(&self) -> &[(NodeId, DeviceId, Gpus)] {
        &self.shares
    }

    /// Shares of devices on one node.
    pub(crate) fn shares_on(&self, node: NodeId) -> &[(NodeId, DeviceId, Gpus)] {
        let from = self.shares.partition_point(|(other, ..)| *other < node);
        let to = self.shares.partition_point(|(other, ..)| *other <= node);
        &self.shares[from..to]
    }

    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.takes.iter().map(|(node, _)| *node)
    }

    /// Whether it contains every member of another assignment at the same place.
    pub fn covers(&self, other: &Self) -> bool {
        let has = |part: &Part| self.parts.iter().any(|own| own.is_with(part) && own.members >= part.members);
        other.parts.iter().all(has)
    }

    pub fn touches(&self, node: NodeId) -> bool {
        self.takes.binary_search_by_key(&node, |(node, _)| *node).is_ok()
    }

    pub fn total(&self) -> Resources {
        self.takes.iter().map(|(_, taken)| *taken).sum()
    }

    pub fn members(&self) -> u32 {
        self.parts.iter().map(|part| part.members).sum()
    }
}
