//! Links: each direction of each cable is shaped at its sending end.
//!
//! What an agent finds at a [`Port`]: HTB with the handle `1:`, the class [`LINK_CLASS`](shaping::LINK_CLASS) with the
//! link's rate and below it a leaf for every member that may send there, from
//! [`FIRST_MEMBER`](shaping::FIRST_MEMBER) on, and [`USUAL_LEAF`](shaping::USUAL_LEAF) for all else. Leaves below
//! `FIRST_MEMBER` are the agent's, and its filters come first if their `pref` is below 49152. They should have next to
//! nothing of their own and borrow up to the link's rate, as these do, with a `cburst` of a millisecond, and a `quantum`
//! of a packet ([`largest_packet`](metronome_core::network::packet::largest_packet)) times their weight: HTB serves parts of a packet as a whole.

pub(crate) mod batch;
pub mod shaping;
pub(crate) mod ways;

use std::num::NonZeroU64;

use metronome_core::model::id::LinkId;
use metronome_core::model::units::{Bandwidth, Bytes};
use serde::{Deserialize, Serialize};

use crate::names::Namespace;

/// One factor divides all rates and all bytes; times stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scale(pub NonZeroU64);

impl Scale {
    /// 100 Gbit/s become 200 Mbit/s.
    pub const USUAL: Self = Self(NonZeroU64::new(500).unwrap());

    pub fn rate(self, rate: Bandwidth) -> Bandwidth {
        Bandwidth(rate.0 / self.0)
    }

    pub fn bytes(self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0 / self.0)
    }

    /// What a rate that was measured here means in the cluster.
    pub fn measured(self, rate: Bandwidth) -> Bandwidth {
        Bandwidth(rate.0.saturating_mul(self.0.get()))
    }
}

/// The sending end of a link: where its traffic queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub link: LinkId,
    pub namespace: Namespace,
    pub device: String,
    /// As shaped here, divided by the scale.
    pub rate: Bandwidth,
}
