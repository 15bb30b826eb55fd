//! Members are plugged into their hosts, and unplugged.

use std::collections::BTreeMap;

use metronome_core::model::cluster::Vertex;
use metronome_core::model::id::{LinkId, NodeId};
use metronome_core::model::units::Bandwidth;

use super::layout::{plug_into, quiet};
use super::{Hosts, Plug};
use crate::cleanup::remove_namespace;
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::links::Port;
use crate::links::batch::Batch;
use crate::links::shaping::{member_leaf, no_member_leaf, packet_size, tcp, window};
use crate::links::ways::walk;
use crate::names::{MemberNumber, Namespace};

impl Hosts {
    /// A free number, the smallest.
    pub fn free_number(&self) -> Result<MemberNumber> {
        let mut numbers = (0..MemberNumber::MOST).map(MemberNumber);
        let free = numbers.find(|number| !self.plugged.contains_key(number));
        free.ok_or(LocalError::TooMany { most: MemberNumber::MOST })
    }

    /// Gives a member a namespace, a cable to its host and an address.
    pub fn plug(&mut self, number: MemberNumber, node: NodeId) -> Result<Plug> {
        let host = self.layout.host(node)?.clone();
        if self.vanished.contains(&node) {
            return Err(LocalError::Vanished(host.name().to_owned()));
        }
        self.remove_stray(number)?;
        // What is half made is taken away as well.
        self.plugged.insert(number, node);
        let namespace = self.layout.world.member_namespace(number);
        let what = format!("the plug of {number}");
        let make = Batch { ip: vec![format!("netns add {}", namespace.name())], ..Batch::default() };
        make.run_here(&self.tie, &what)?;
        fault::after(FaultPoint::MemberNamespaceMade);
        let rate = self.layout.rate_of(node);
        on_host(number, &namespace, rate).run_in(&host, &self.tie, &what)?;
        fault::after(FaultPoint::CablePlugged);
        inside(number, rate).run_in(&namespace, &self.tie, &what)?;
        fault::after(FaultPoint::AddressSet);
        self.tell_the_way(number, node, "replace")?;
        fault::after(FaultPoint::RouteSet);
        self.at_ports(node, &what, |port| member_leaf(&port.device, port.rate, number).into())?;
        fault::after(FaultPoint::QueueMade);
        Ok(Plug { number, node, namespace, address: number.address(), host })
    }

    /// What a member that is plugged in has.
    pub fn plugged(&self, number: MemberNumber) -> Option<Plug> {
        let node = *self.plugged.get(&number)?;
        let (namespace, host) = (self.layout.world.member_namespace(number), self.layout.hosts[node].clone());
        Some(Plug { number, node, namespace, address: number.address(), host })
    }

    /// Takes them away; nothing happens if it has none.
    pub fn unplug(&mut self, number: MemberNumber) -> Result<()> {
        let Some(node) = self.plugged.get(&number).copied() else { return Ok(()) };
        let what = format!("the end of the plug of {number}");
        // The cable first: a namespace goes when the kernel finds the time, and the number may be needed at once. One that
        // was half made has not all of it, and what stays on switches does no harm: the next of its number takes it.
        let cable = Batch { ip: vec![format!("link del dev {number}")], ..Batch::default() };
        let _ = cable.run_in(&self.layout.hosts[node], &self.tie, &what);
        fault::after(FaultPoint::CableRemoved);
        let _ = self.tell_the_way(number, node, "del");
        fault::after(FaultPoint::RouteRemoved);
        let _ = self.at_ports(node, &what, |port| no_member_leaf(&port.device, number).into());
        fault::after(FaultPoint::QueueRemoved);
        remove_namespace(&self.layout.world.member_namespace(number))?;
        fault::after(FaultPoint::MemberNamespaceRemoved);
        self.plugged.remove(&number);
        Ok(())
    }

    /// Takes away what members have that nobody knows any more: a scheduler before us had begun to plug them in. Their
    /// numbers are free at once.
    pub fn remove_strays(&self) -> Result<()> {
        let mut unknown =
            (0..MemberNumber::MOST).map(MemberNumber).filter(|number| !self.plugged.contains_key(number));
        unknown.try_for_each(|number| self.remove_stray(number))
    }

    /// Removes the cable and the namespace of a number that is not plugged in, if there are any.
    fn remove_stray(&self, number: MemberNumber) -> Result<()> {
        let namespace = self.layout.world.member_namespace(number);
        if self.plugged.contains_key(&number) || !namespace.path().exists() {
            return Ok(());
        }
        let cable = Batch { ip: vec!["link del dev eth0".to_owned()], ..Batch::default() };
        // A namespace that was half made has none.
        let _ = cable.run_in(&namespace, &self.tie, "the end of a cable");
        remove_namespace(&namespace)
    }

    /// The links that traffic from one member to another crosses, in that order: none on one host.
    pub fn crossed(&self, from: MemberNumber, to: MemberNumber) -> Vec<LinkId> {
        let (Some(start), Some(end)) = (self.plugged.get(&from), self.plugged.get(&to)) else {
            return Vec::new();
        };
        walk(&self.layout.fabric, *start, &self.layout.ways.towards(*end, to))
    }

    /// Does something at every port where members on a node may send.
    fn at_ports(&self, node: NodeId, what: &str, lines: impl Fn(&Port) -> Vec<String>) -> Result<()> {
        let mut told: BTreeMap<&Namespace, Vec<String>> = BTreeMap::new();
        let ports =
            self.layout.ports.values().filter(|port| self.layout.shaped && self.layout.may_send(node, port));
        for port in ports {
            told.entry(&port.namespace).or_default().extend(lines(port));
        }
        for (namespace, tc) in told {
            Batch { tc, ..Batch::default() }.run_in(namespace, &self.tie, what)?;
        }
        Ok(())
    }

    /// Every switch, and every host that has a choice, is told where to send what is for a member.
    fn tell_the_way(&self, number: MemberNumber, node: NodeId, word: &str) -> Result<()> {
        let mut told: BTreeMap<&Namespace, Vec<String>> = BTreeMap::new();
        for (vertex, link) in self.layout.ways.towards(node, number) {
            let has_choice = self.layout.ways.ups(vertex).nth(1).is_some();
            if matches!(vertex, Vertex::Switch(_)) || has_choice {
                let port = self.layout.port(link)?;
                let line =
                    format!("fdb {word} {} dev {} master static", number.hardware_address(), port.device);
                told.entry(&port.namespace).or_default().push(line);
            }
        }
        for (namespace, bridge) in told {
            Batch { bridge, ..Batch::default() }.run_in(
                namespace,
                &self.tie,
                &format!("the way to {number}"),
            )?;
        }
        Ok(())
    }
}

/// The cable, and the end of it that is on the host.
fn on_host(number: MemberNumber, namespace: &Namespace, rate: Bandwidth) -> Batch {
    let hardware = number.hardware_address();
    let mut ip = vec![format!(
        "link add dev {number} type veth peer name eth0 address {hardware} netns {}",
        namespace.name()
    )];
    ip.extend(plug_into(&number.to_string(), "br0", rate));
    let bridge = vec![format!("fdb replace {hardware} dev {number} master static")];
    Batch { ip, bridge, ..Batch::default() }
}

/// The end that the member sees. It knows the hardware addresses of all it could meet, so nobody has to ask, which
/// would mean to flood.
fn inside(number: MemberNumber, rate: Bandwidth) -> Batch {
    let packets = packet_size(rate);
    let mut ip = vec![
        "link set dev lo up".to_owned(),
        format!("link set dev eth0 {packets} up"),
        format!("address add {}/16 dev eth0", number.address()),
        format!(
            "route change 10.77.0.0/16 dev eth0 proto kernel scope link src {} window {}",
            number.address(),
            window(rate)
        ),
    ];
    for other in (0..MemberNumber::MOST).map(MemberNumber).filter(|other| *other != number) {
        let (address, hardware) = (other.address(), other.hardware_address());
        ip.push(format!("neighbour add {address} lladdr {hardware} nud permanent dev eth0"));
    }
    let settings = quiet().into_iter().chain(tcp(rate)).collect();
    Batch { ip, settings, ..Batch::default() }
}
