//! Ports on the node itself. A port on all addresses conflicts with the same port on any one; on two addresses it
//! does not: the port is a counter of which all addresses take everything and one address takes a share, beside all
//! of a counter of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::objects::{ContainerPort, Pod};
use crate::rules::load::{Counter, Load};
use crate::rules::request::is_sidecar;

const EVERY_ADDRESS: &str = "0.0.0.0";

pub(super) fn count_ports(pod: &Pod, load: &mut Load) {
    for ((protocol, port), addresses) in wanted(pod) {
        let whole = Counter::Port { protocol: protocol.to_owned(), port };
        if addresses.contains(EVERY_ADDRESS) {
            load.count(whole, Counter::WHOLE_PORT);
            continue;
        }
        load.count(whole, addresses.len() as u64);
        for address in addresses {
            let (protocol, address) = (protocol.to_owned(), address.to_owned());
            load.count(Counter::PortAt { protocol, port, address }, 1);
        }
    }
}

/// The addresses on which each port is wanted, by whatever runs as long as the pod does.
fn wanted(pod: &Pod) -> BTreeMap<(&str, i32), BTreeSet<&str>> {
    let sidecars = pod.spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let containers = sidecars.chain(&pod.spec.containers);
    let mut wanted: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for port in containers.flat_map(|container| container.ports.iter().flatten()) {
        if let Some(number) = port.host_port.filter(|number| *number > 0) {
            wanted.entry((protocol(port), number)).or_default().insert(address(port));
        }
    }
    wanted
}

fn protocol(port: &ContainerPort) -> &str {
    port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP")
}

fn address(port: &ContainerPort) -> &str {
    port.host_ip.as_deref().filter(|address| !address.is_empty()).unwrap_or(EVERY_ADDRESS)
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests {
    use super::*;

    fn taken(ports: serde_json::Value) -> BTreeMap<Counter, u64> {
        let pod = serde_json::json!({"metadata": {}, "spec": {"containers": [{"ports": ports}]}});
        let mut load = Load::default();
        count_ports(&serde_json::from_value(pod).unwrap(), &mut load);
        load.counters
    }

    /// Whether two pods with these ports go on one node.
    fn conflict(one: serde_json::Value, other: serde_json::Value) -> bool {
        let other = taken(other);
        taken(one).iter().any(|(counter, amount)| {
            amount + other.get(counter).copied().unwrap_or_default() > counter.each()
        })
    }

    fn port(number: i32, protocol: &str, address: &str) -> serde_json::Value {
        serde_json::json!({"hostPort": number, "containerPort": 1, "protocol": protocol, "hostIP": address})
    }

    #[test]
    fn a_port_on_all_addresses_conflicts_with_it_on_any() {
        let one = |address: &str| serde_json::json!([port(80, "TCP", address)]);
        assert!(conflict(one(""), one("0.0.0.0")));
        assert!(conflict(one(""), one("10.0.0.1")));
        assert!(conflict(one("10.0.0.1"), one("10.0.0.1")));
        assert!(!conflict(one("10.0.0.1"), one("10.0.0.2")));
        assert!(!conflict(one(""), serde_json::json!([port(80, "UDP", "")])));
        assert!(!conflict(one(""), serde_json::json!([port(81, "TCP", "")])));
    }

    #[test]
    fn a_pod_does_not_conflict_with_itself() {
        let both = taken(serde_json::json!([port(80, "TCP", ""), port(80, "TCP", "10.0.0.1")]));
        assert!(both.iter().all(|(counter, amount)| *amount <= counter.each()));
    }

    #[test]
    fn a_port_that_stays_inside_the_pod_is_none() {
        assert_eq!(
            taken(serde_json::json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 0}])),
            [].into()
        );
    }
}
