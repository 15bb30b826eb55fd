//! Hosts: one network namespace for each node, joined by links in the shape of the cluster's.

use std::net::Ipv4Addr;

use metronome_core::cluster::Cluster;
use metronome_core::id::{LinkId, NodeId};
use metronome_core::units::Bandwidth;

use crate::error::{LocalError, Result};
use crate::links::{Port, Scale};
use crate::names::{MemberNumber, Namespace, WorldName};

/// All hosts of a world and the links between them.
#[derive(Debug)]
pub struct Hosts {
    world: WorldName,
}

/// What a member has on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plug {
    pub number: MemberNumber,
    pub node: NodeId,
    /// Its own namespace, with the interface `eth0`.
    pub namespace: Namespace,
    pub address: Ipv4Addr,
    /// The namespace of its host, where the other end of its cable is called as the member is: `m3`.
    pub host: Namespace,
}

impl Hosts {
    /// Makes all hosts, switches and links. What is left of an earlier world of this name has to be cleaned before.
    pub fn set_up(world: &WorldName, _cluster: &Cluster, _scale: Scale) -> Result<Self> {
        let _ = Self { world: world.clone() };
        Err(LocalError::Missing("hosts are not made yet".into()))
    }

    /// Takes over the hosts that an earlier scheduler has made, with the members that were plugged in. Rates are set
    /// as the cluster says.
    pub fn adopt(
        _world: &WorldName,
        _cluster: &Cluster,
        _scale: Scale,
        _plugged: &[(MemberNumber, NodeId)],
    ) -> Result<Self> {
        Err(LocalError::Missing("hosts are not made yet".into()))
    }

    /// Removes all of it. Who is still plugged in loses its network.
    pub fn take_down(self) -> Result<()> {
        Ok(())
    }

    /// The sending end of every link, in the order of link ids.
    pub fn ports(&self) -> Vec<Port> {
        Vec::new()
    }

    /// A free number, the smallest.
    pub fn free_number(&self) -> Result<MemberNumber> {
        Ok(MemberNumber(0))
    }

    /// Gives a member a namespace, a cable to its host and an address.
    pub fn plug(&mut self, number: MemberNumber, node: NodeId) -> Result<Plug> {
        let _ = (node, number.hardware_address());
        Err(LocalError::Missing(format!("the hosts of `{}` are not made yet", self.world)))
    }

    /// Takes them away; nothing happens if it has none.
    pub fn unplug(&mut self, _number: MemberNumber) -> Result<()> {
        Ok(())
    }

    /// The links that traffic from one member to another crosses: none on one host.
    pub fn crossed(&self, _from: MemberNumber, _to: MemberNumber) -> Vec<LinkId> {
        Vec::new()
    }

    /// A link carries more or less from now on; what flows over it goes on. The rate is the cluster's, not scaled.
    /// None at all cuts the cable.
    pub fn set_rate(&mut self, _link: LinkId, _rate: Bandwidth) -> Result<()> {
        Ok(())
    }

    /// Cuts the cable of a link, in both directions: what is sent is lost.
    pub fn cut(&mut self, _link: LinkId) -> Result<()> {
        Ok(())
    }

    pub fn restore(&mut self, _link: LinkId) -> Result<()> {
        Ok(())
    }

    /// A host is gone all at once: its cables are cut. Returns who was plugged in there; they are the caller's to kill.
    pub fn vanish(&mut self, _node: NodeId) -> Result<Vec<MemberNumber>> {
        Ok(Vec::new())
    }

    pub fn come_back(&mut self, _node: NodeId) -> Result<()> {
        Ok(())
    }
}
