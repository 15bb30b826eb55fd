//! Queues: whose work it is, how much it counts, and how much it may hold.

use serde::{Deserialize, Serialize};

use crate::cluster::Name;
use crate::id::QueueId;
use crate::units::{Resources, Share};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<QueueId>,
    pub weight: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Resources>,
    pub lends: bool,
    /// Whether it may hold more than its quota while others leave room.
    pub borrows: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<QueueUser>,
}

/// How much a user counts in a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueUser {
    pub name: Name,
    pub priority: Share,
}

impl Queue {
    /// A queue that holds nobody back.
    pub fn open(name: &str) -> Self {
        Self {
            name: Name::from(name),
            parent: None,
            weight: 1,
            quota: None,
            lends: true,
            borrows: true,
            users: Vec::new(),
        }
    }

    /// What it may never exceed; nothing bounds a queue that borrows.
    pub fn bound(&self) -> Option<Resources> {
        self.quota.filter(|_| !self.borrows)
    }
}
