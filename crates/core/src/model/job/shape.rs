//! Shape of a member: resources, eligible nodes and rules about other members.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::id::{CounterId, GpuTypeId, GroupId, NodeSetId};
use crate::model::units::Resources;

/// Nodes on which a member may run, regardless of free capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Eligibility {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GpuTypeId>,
    /// Node set; any node if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<NodeSetId>,
}

/// Members of the same shape are interchangeable.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub each: Resources,
    #[serde(default)]
    pub on: Eligibility,
    /// Integer resources other than CPU, memory and GPUs, in order of id.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub counters: Arc<[(CounterId, u64)]>,
    /// Groups in which the member is counted, in order of id.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub groups: Arc<[GroupId]>,
    /// Placement rules; all of them must hold.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub rules: Arc<[Rule]>,
}

fn is_empty<T>(items: &Arc<[T]>) -> bool {
    items.is_empty()
}

impl Shape {
    /// Shape of a member that may run on any node.
    pub fn of(each: Resources) -> Self {
        Self { each, ..Self::default() }
    }
}

/// Rule about other members in the node's domain. Rules apply when a member is placed; a running member is not
/// migrated because of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Rule {
    /// Only domains in which each of these groups has a member. If none of them has a member anywhere and `or_first`
    /// is set: any node that has a domain in each of their partitions.
    Together { groups: Vec<GroupId>, or_first: bool },
    /// Only nodes in whose domain the group has no member; nodes without a domain pass.
    Apart(GroupId),
    /// Only nodes with a domain whose count, plus one if `own`, exceeds the smallest count of all domains of the
    /// partition by at most `skew`. With fewer than `least_domains` domains, the smallest count is taken as zero.
    Spread { group: GroupId, skew: u32, own: bool, least_domains: u32 },
}

impl Rule {
    /// Groups whose counts the rule evaluates.
    pub fn groups(&self) -> &[GroupId] {
        match self {
            Self::Together { groups, .. } => groups,
            Self::Apart(group) | Self::Spread { group, .. } => std::slice::from_ref(group),
        }
    }
}
