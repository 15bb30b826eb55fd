//! Where everything is: which device of which namespace sends on which link. All of it follows from the names of the
//! world and its nodes and from the fabric, so a scheduler that comes later finds it without being told.

use metronome_core::model::cluster::{Cluster, Fabric, Vertex};
use metronome_core::model::id::{IdVec, LinkId, NodeId};
use metronome_core::model::units::Bandwidth;

use crate::error::{LocalError, Result};
use crate::links::batch::Batch;
use crate::links::shaping::{MTU, packet_size, shape};
use crate::links::ways::{Ways, is_up, joined, reverse};
use crate::links::{Port, Scale};
use crate::names::{Namespace, WorldName};

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) world: WorldName,
    pub(super) hosts: IdVec<NodeId, Namespace>,
    pub(super) fabric: Fabric,
    pub(super) ways: Ways,
    pub(super) ports: IdVec<LinkId, Port>,
    /// Whether links have rates at all.
    pub(super) shaped: bool,
}

const PLENTY: Bandwidth = Bandwidth(1_000_000_000);

impl Layout {
    pub(super) fn of(world: &WorldName, cluster: &Cluster, scale: Scale) -> Result<Self> {
        let mut hosts = IdVec::default();
        for node in cluster.nodes().values() {
            hosts.push(world.host_namespace(&node.name)?);
        }
        let shaped = !cluster.fabric.is_empty();
        let fabric = if shaped { cluster.fabric.clone() } else { joined(cluster) };
        let ways = Ways::of(&fabric);
        let mut ports = IdVec::default();
        for (id, link) in fabric.links().iter() {
            let (namespace, device) = match link.from {
                Vertex::Switch(_) => (world.fabric_namespace(), format!("l{}", id.0)),
                Vertex::Node(node) => (hosts[node].clone(), uplink(&ways, link.from, id)),
            };
            ports.push(Port { link: id, namespace, device, rate: scale.rate(link.rate) });
        }
        Ok(Self { world: world.clone(), hosts, fabric, ways, ports, shaped })
    }

    pub(super) fn port(&self, link: LinkId) -> Result<&Port> {
        self.ports.get(link).ok_or(LocalError::NoLink(link.0))
    }

    pub(super) fn host(&self, node: NodeId) -> Result<&Namespace> {
        self.hosts.get(node).ok_or(LocalError::NoNode(node.0))
    }

    /// The sending ends of a node's cables, and of those that lead to it.
    pub(super) fn cables_of(&self, node: NodeId) -> Vec<LinkId> {
        self.ways.ups(Vertex::Node(node)).flat_map(|up| [up, reverse(up)]).collect()
    }

    /// Whether members on a node may send at a port: on their own host, and at every switch but down to themselves.
    pub(super) fn may_send(&self, node: NodeId, port: &Port) -> bool {
        let link = &self.fabric.links()[port.link];
        link.from == Vertex::Node(node)
            || matches!(link.from, Vertex::Switch(_)) && link.to != Vertex::Node(node)
    }

    /// What a node's cables carry, the best of them; for who has none, more than a machine can do.
    pub(super) fn rate_of(&self, node: NodeId) -> Bandwidth {
        let rates = self.ways.ups(Vertex::Node(node)).map(|up| self.ports[up].rate);
        rates.max().unwrap_or(PLENTY).min(PLENTY)
    }

    /// Makes all namespaces.
    pub(super) fn namespaces(&self) -> Batch {
        let all = self.hosts.values().cloned().chain([self.world.fabric_namespace()]);
        Batch {
            ip: all.map(|namespace| format!("netns add {}", namespace.name())).collect(),
            ..Batch::default()
        }
    }

    /// In the fabric's namespace: switches, all cables, and the ends of them that are here.
    pub(super) fn switches(&self) -> Batch {
        let mut batch = Batch { settings: quiet(), ..Batch::default() };
        for (switch, _) in self.fabric.switches().enumerate() {
            batch.ip.push(bridge(&format!("s{switch}")));
        }
        for up in self.ports.ids().filter(|link| is_up(*link)) {
            let (low, high) = (&self.ports[up], &self.ports[reverse(up)]);
            let elsewhere = if low.namespace == high.namespace {
                String::new()
            } else {
                format!(" netns {}", low.namespace.name())
            };
            let (low, high) = (&low.device, &high.device);
            batch.ip.push(format!("link add dev {high} type veth peer name {low}{elsewhere}"));
        }
        for port in self.ports.values().filter(|port| port.namespace == self.world.fabric_namespace()) {
            self.plug_port(port, &mut batch);
        }
        batch
    }

    /// In a host's namespace: its bridge and the ends of its cables.
    pub(super) fn host_devices(&self, node: NodeId) -> Batch {
        let mut batch = Batch { settings: quiet(), ..Batch::default() };
        batch.ip.push(bridge("br0"));
        for (at, up) in self.ways.ups(Vertex::Node(node)).enumerate() {
            self.plug_port(&self.ports[up], &mut batch);
            if at == 0 {
                // Whatever is for nobody here is for somebody beyond.
                batch.ip.push(format!("link set dev {} type bridge_slave flood on", self.ports[up].device));
            }
        }
        batch
    }

    fn plug_port(&self, port: &Port, batch: &mut Batch) {
        let master = match self.fabric.links()[port.link].from {
            Vertex::Node(_) => "br0".to_owned(),
            Vertex::Switch(index) => format!("s{index}"),
        };
        batch.ip.extend(plug_into(&port.device, &master, port.rate));
        if self.shaped {
            batch.tc.extend(shape(&port.device, port.rate));
        }
    }
}

/// No addresses of version 6, and nothing that is sent for them.
pub(super) fn quiet() -> Vec<(&'static str, String)> {
    ["ipv6/conf/all/disable_ipv6", "ipv6/conf/default/disable_ipv6"].map(|name| (name, "1".to_owned())).into()
}

/// A bridge that learns nothing and floods nothing goes by its table alone; circles do no harm.
fn bridge(name: &str) -> String {
    format!("link add dev {name} mtu {MTU} up type bridge stp_state 0 mcast_snooping 0 forward_delay 0")
}

pub(super) fn plug_into(device: &str, master: &str, rate: Bandwidth) -> [String; 2] {
    let packets = packet_size(rate);
    [
        format!("link set dev {device} {packets} master {master} up"),
        format!(
            "link set dev {device} type bridge_slave learning off flood off mcast_flood off bcast_flood off"
        ),
    ]
}

/// `up`, and `up1` and so on for a node that has several.
fn uplink(ways: &Ways, node: Vertex, link: LinkId) -> String {
    match ways.ups(node).position(|up| up == link) {
        None | Some(0) => "up".to_owned(),
        Some(at) => format!("up{at}"),
    }
}
