//! A member's needs: what it takes, where it may run, and beside whom.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::id::{CounterId, GpuTypeId, GroupId, NodeSetId};
use crate::model::units::Resources;

/// Where a member may run, before any question of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Eligibility {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<GpuTypeId>,
    /// Only on the nodes of this set; anywhere if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<NodeSetId>,
}

/// Two members of one shape can stand in for each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shape {
    pub each: Resources,
    #[serde(default)]
    pub on: Eligibility,
    /// What it takes beside CPU, memory and GPUs, in order of id.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub counters: Arc<[(CounterId, u64)]>,
    /// The groups it is counted in, in order of id.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub groups: Arc<[GroupId]>,
    /// Where it may run depending on who is there. All of them hold.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub rules: Arc<[Rule]>,
}

fn is_empty<T>(items: &Arc<[T]>) -> bool {
    items.is_empty()
}

impl Shape {
    /// A member that takes this and may run anywhere.
    pub fn of(each: Resources) -> Self {
        Self { each, ..Self::default() }
    }
}

/// What a member asks of the domains in which others are. Rules are kept when a member is placed; whoever runs is not
/// moved because of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Rule {
    /// Only in domains where each of these groups has somebody; where none of them has anybody anywhere and
    /// `or_first`, any node that has a domain in each of their partitions.
    Together { groups: Vec<GroupId>, or_first: bool },
    /// Only where the group has nobody in the node's domain; nodes without a domain pass.
    Apart(GroupId),
    /// Only nodes with a domain; the domain's count, plus one if `own`, exceeds the least count over all domains of
    /// the partition by at most `skew`. With fewer than `least_domains` domains the least count is taken as zero.
    Spread { group: GroupId, skew: u32, own: bool, least_domains: u32 },
}

impl Rule {
    /// The groups whose counts it looks at.
    pub fn groups(&self) -> &[GroupId] {
        match self {
            Self::Together { groups, .. } => groups,
            Self::Apart(group) | Self::Spread { group, .. } => std::slice::from_ref(group),
        }
    }
}
