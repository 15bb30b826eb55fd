//! Hosts: one network namespace for each node, joined by links in the shape of the cluster's.

mod layout;
mod plugs;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use metronome_core::model::cluster::{Cluster, Vertex};
use metronome_core::model::id::{LinkId, NodeId};
use metronome_core::model::units::Bandwidth;

use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::links::batch::Batch;
use crate::links::shaping::reshape;
use crate::links::ways::reverse;
use crate::links::{Port, Scale};
use crate::names::{MemberNumber, Namespace};
use crate::state::{Tie, WorldFolder};
use layout::Layout;

/// All hosts of a world and the links between them.
#[derive(Debug)]
pub struct Hosts {
    tie: Tie,
    layout: Layout,
    scale: Scale,
    plugged: BTreeMap<MemberNumber, NodeId>,
    vanished: BTreeSet<NodeId>,
    /// Links whose cable is cut.
    cut: BTreeSet<LinkId>,
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
    /// Makes all hosts, switches and links. What is left of an earlier world of this name has to be cleaned before, and
    /// what is half made has to be cleaned after an error.
    pub fn set_up(folder: &WorldFolder, cluster: &Cluster, scale: Scale) -> Result<Self> {
        let mut hosts = Self::new(folder, cluster, scale)?;
        let layout = &hosts.layout;
        layout.namespaces().run_here(&hosts.tie, "namespaces")?;
        fault::after(FaultPoint::NamespacesMade);
        layout.switches().run_in(&folder.world().fabric_namespace(), &hosts.tie, "switches")?;
        fault::after(FaultPoint::SwitchesMade);
        for (node, namespace) in layout.hosts.iter() {
            let what = format!("host `{}`", cluster.node(node).name);
            layout.host_devices(node).run_in(namespace, &hosts.tie, &what)?;
            fault::after(FaultPoint::HostMade);
        }
        hosts.cut_what_has_no_rate(cluster)?;
        Ok(hosts)
    }

    /// Takes over the hosts that an earlier scheduler has made, with those of `plugged` that still have a namespace.
    /// Rates are set as the cluster says.
    pub fn adopt(
        folder: &WorldFolder,
        cluster: &Cluster,
        scale: Scale,
        plugged: &[(MemberNumber, NodeId)],
    ) -> Result<Self> {
        let mut hosts = Self::new(folder, cluster, scale)?;
        let all = hosts.layout.hosts.values().cloned().chain([folder.world().fabric_namespace()]);
        if let Some(gone) = all.map(|namespace| namespace.path()).find(|path| !path.exists()) {
            return Err(LocalError::file(&gone, std::io::ErrorKind::NotFound.into()));
        }
        let has_namespace = |number| folder.world().member_namespace(number).path().exists();
        hosts.plugged = plugged.iter().copied().filter(|(number, _)| has_namespace(*number)).collect();
        for link in cluster.fabric.links().ids() {
            hosts.set_rate(link, cluster.fabric.links()[link].rate)?;
        }
        Ok(hosts)
    }

    fn new(folder: &WorldFolder, cluster: &Cluster, scale: Scale) -> Result<Self> {
        let (tie, layout) = (folder.tie()?, Layout::of(folder.world(), cluster, scale)?);
        let (plugged, vanished, cut) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Ok(Self { tie, layout, scale, plugged, vanished, cut })
    }

    fn cut_what_has_no_rate(&mut self, cluster: &Cluster) -> Result<()> {
        let links = cluster.fabric.links().iter().filter(|(_, link)| link.rate.is_zero());
        links.map(|(id, _)| id).try_for_each(|id| self.cut(id))
    }

    /// Removes all of it. Who is still plugged in loses its network.
    pub fn take_down(self) -> Result<()> {
        let world = &self.layout.world;
        let members = self.plugged.keys().map(|number| world.member_namespace(*number));
        let all = members.chain(self.layout.hosts.values().cloned()).chain([world.fabric_namespace()]);
        let ip = all.map(|namespace| format!("netns del {}", namespace.name())).collect();
        Batch { ip, ..Batch::default() }.run_here(&self.tie, "the end of all hosts")
    }

    /// The sending end of every link that has a rate, in the order of link ids.
    pub fn ports(&self) -> Vec<Port> {
        if self.layout.shaped { self.layout.ports.values().cloned().collect() } else { Vec::new() }
    }

    /// A link carries more or less from now on; what flows over it goes on. The rate is the cluster's, not scaled.
    /// None at all cuts the cable.
    pub fn set_rate(&mut self, link: LinkId, rate: Bandwidth) -> Result<()> {
        if rate.is_zero() {
            return self.cut(link);
        }
        let scaled = self.scale.rate(rate);
        let port = self.layout.ports.get_mut(link).ok_or(LocalError::NoLink(link.0))?;
        port.rate = scaled;
        if self.layout.shaped {
            let port = &self.layout.ports[link];
            let senders = self.plugged.iter().filter(|(_, node)| self.layout.may_send(**node, port));
            let tc = reshape(&port.device, scaled, senders.map(|(number, _)| number));
            let batch = Batch { tc, ..Batch::default() };
            batch.run_in(&port.namespace, &self.tie, "the rate of a link")?;
        }
        self.restore(link)
    }

    /// Cuts the cable of a link, in both directions: what is sent is lost.
    pub fn cut(&mut self, link: LinkId) -> Result<()> {
        self.set_state(&[link, reverse(link)], DISABLED)?;
        self.cut.extend([link, reverse(link)]);
        Ok(())
    }

    /// What was cut is whole again, at the rate it had; one end may still have vanished.
    pub fn restore(&mut self, link: LinkId) -> Result<()> {
        let both = [link, reverse(link)];
        let was_cut = both.iter().any(|link| self.cut.remove(link));
        if was_cut && !both.iter().any(|link| self.has_vanished_end(*link)) {
            self.set_state(&both, FORWARDING)?;
        }
        Ok(())
    }

    /// A host is gone all at once: its cables are cut. Returns who was plugged in there; they are the caller's to kill
    /// and unplug.
    pub fn vanish(&mut self, node: NodeId) -> Result<Vec<MemberNumber>> {
        self.layout.host(node)?;
        self.set_state(&self.layout.cables_of(node), DISABLED)?;
        self.vanished.insert(node);
        let there = self.plugged.iter().filter(|(_, place)| **place == node);
        Ok(there.map(|(number, _)| *number).collect())
    }

    pub fn come_back(&mut self, node: NodeId) -> Result<()> {
        self.layout.host(node)?;
        self.vanished.remove(&node);
        let whole = self.layout.cables_of(node).into_iter().filter(|link| !self.cut.contains(link));
        self.set_state(&whole.collect::<Vec<_>>(), FORWARDING)
    }

    fn has_vanished_end(&self, link: LinkId) -> bool {
        let ends = &self.layout.fabric.links()[link];
        [ends.from, ends.to]
            .iter()
            .any(|end| matches!(end, Vertex::Node(node) if self.vanished.contains(node)))
    }

    fn set_state(&self, links: &[LinkId], state: u8) -> Result<()> {
        for link in links {
            let port = self.layout.port(*link)?;
            let line = format!("link set dev {} state {state}", port.device);
            let batch = Batch { bridge: vec![line], ..Batch::default() };
            batch.run_in(&port.namespace, &self.tie, "the state of a link")?;
        }
        Ok(())
    }
}

/// What a port of a bridge may do: nothing, or all.
const DISABLED: u8 = 0;
const FORWARDING: u8 = 3;
