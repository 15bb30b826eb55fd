//! What is taken of a node and what it has, counted alike: the three resources the core knows by name, and
//! everything else as counters.

use std::collections::BTreeMap;
use std::fmt;

use metronome_core::model::units::{Cpu, Gpus, Memory, Resources};

use crate::rules::quantity::Amount;

/// Something that is counted per node beside CPU, memory and GPUs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    Pods,
    /// Ephemeral storage, huge pages, and what device plugins bring.
    Resource(String),
    /// A port on every address of the node; on one address it takes a share of this.
    Port {
        protocol: String,
        port: i32,
    },
    PortAt {
        protocol: String,
        port: i32,
        address: String,
    },
    /// Volumes of a driver, of which a node may have so many attached.
    Attached(String),
}

impl Counter {
    /// All of a port. More pods than this never share a node.
    pub const WHOLE_PORT: u64 = 1 << 20;

    /// As good as no limit, and sums of it still fit.
    pub const UNLIMITED: u64 = u64::MAX / 4;

    /// What a node has of it that does not say.
    pub const fn each(&self) -> u64 {
        match self {
            Self::Pods | Self::Resource(_) => 0,
            Self::Port { .. } => Self::WHOLE_PORT,
            Self::PortAt { .. } => 1,
            Self::Attached(_) => Self::UNLIMITED,
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods => f.write_str("pods"),
            Self::Resource(name) => f.write_str(name),
            Self::Port { protocol, port } => write!(f, "port/{protocol}/{port}"),
            Self::PortAt { protocol, port, address } => write!(f, "port/{protocol}/{port}/{address}"),
            Self::Attached(driver) => write!(f, "attached/{driver}"),
        }
    }
}

/// So much of each: what a pod takes, what a node has, or what is taken of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    pub resources: Resources,
    pub counters: BTreeMap<Counter, u64>,
}

/// The resource that the core counts as GPUs.
pub const GPU: &str = "nvidia.com/gpu";

impl Load {
    /// More of anything than a node has: such a request fits nowhere, and a thousand such pods still add up.
    const MOST: u64 = 1 << 53;
    const MOST_GPUS: u64 = 1 << 43;

    /// Amounts by resource name, in the units they are counted in. What Kubernetes itself does not count is left out.
    pub fn of(amounts: &BTreeMap<&str, Amount>) -> Self {
        let mut load = Self::default();
        for (name, amount) in amounts {
            load.set(name, *amount);
        }
        load
    }

    /// As `of`, but a little less than the most there can be.
    pub fn of_node(amounts: &BTreeMap<&str, Amount>) -> Self {
        let mut load = Self::of(amounts);
        let below = |amount: u64, most: u64| amount.min(most - 1);
        load.resources.cpu = Cpu(below(load.resources.cpu.0, Self::MOST));
        load.resources.memory = Memory(below(load.resources.memory.0, Self::MOST));
        load.resources.gpus = Gpus(below(load.resources.gpus.0, Self::MOST_GPUS * 1000));
        for amount in load.counters.values_mut() {
            *amount = below(*amount, Self::MOST);
        }
        load
    }

    fn set(&mut self, name: &str, amount: Amount) {
        let whole = amount.whole().min(Self::MOST);
        match name {
            "cpu" => self.resources.cpu = Cpu(amount.thousandths().min(Self::MOST)),
            "memory" => self.resources.memory = Memory(whole),
            GPU => self.resources.gpus = Gpus::whole(whole.min(Self::MOST_GPUS)),
            "pods" => self.count(Counter::Pods, whole),
            name if is_counted(name) => self.count(Counter::Resource(name.to_owned()), whole),
            _ => {}
        }
    }

    /// Asking for none of something is not asking.
    pub fn count(&mut self, counter: Counter, amount: u64) {
        if amount > 0 {
            self.counters.insert(counter, amount);
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.resources = self.resources + other.resources;
        for (counter, amount) in &other.counters {
            let sum = self.counters.entry(counter.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    pub fn subtract(&mut self, other: &Self) {
        self.resources = self.resources - other.resources;
        for (counter, amount) in &other.counters {
            let Some(left) = self.counters.get_mut(counter) else { continue };
            *left = left.saturating_sub(*amount);
            if *left == 0 {
                self.counters.remove(counter);
            }
        }
    }
}

/// Names without a prefix are Kubernetes' own, of which only these are counted per node.
fn is_counted(name: &str) -> bool {
    let extended = name.contains('/') && (!name.starts_with("requests.") || name.contains("kubernetes.io/"));
    extended
        || name == "ephemeral-storage"
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_does_not_count_is_left_out() {
        let one = Amount::ONE;
        let names = ["cpu", "storage", "requests.example.com/x", "example.com/x", "hugepages-2Mi", GPU];
        let load = Load::of(&names.into_iter().map(|name| (name, one)).collect());
        let counted: Vec<String> = load.counters.keys().map(ToString::to_string).collect();
        assert_eq!(counted, ["example.com/x", "hugepages-2Mi"]);
        assert_eq!(load.resources.gpus, Gpus::whole(1));
        assert_eq!(load.resources.cpu, Cpu(1000));
    }

    #[test]
    fn what_was_added_can_be_taken_away_again() {
        let mut held = Load::default();
        let mut pod = Load::default();
        pod.count(Counter::Pods, 1);
        held.add(&pod);
        held.add(&pod);
        held.subtract(&pod);
        assert_eq!(held, pod);
        held.subtract(&pod);
        assert_eq!(held, Load::default());
    }
}
