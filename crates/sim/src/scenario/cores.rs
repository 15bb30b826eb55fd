//! A job of one process on one node, whose cores may be changed while it runs.

use metronome_core::model::cluster::Cluster;
use metronome_core::model::job::{Gang, Role, RoleKind, Shape, Topology};
use metronome_core::model::units::{Cpu, Resources, Share};

use super::Asks;
use super::curve::Curve;

/// How many cores it may have, and how many its owner would ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) asks: u32,
}

impl Cores {
    /// More cores than any node has; above it a count is a mistake.
    pub(crate) const MOST: u64 = 4096;

    /// To the scheduler its cores are members: it may have from so many to so many.
    pub(crate) fn role(&self) -> Role {
        let (min, max) = (u64::from(self.min), u64::from(self.max));
        let gang = if min == max { Gang::rigid(min) } else { Gang::elastic(min, max) };
        let core = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
        let gang = gang.expect("bounds are checked when a scenario is read");
        Role { kind: RoleKind::Worker, gang, shape: Shape::of(core) }
    }

    /// A process is on one node.
    pub(crate) fn topology(cluster: &Cluster) -> Topology {
        Topology::Required(cluster.depth())
    }

    pub(crate) fn asks(&self, serial: Share) -> Asks {
        Asks { members: self.asks, serial: Some(serial) }
    }

    /// 1, 2, 3, 4, 6, 8, 12, 16, 24, …: between two sizes there is a third at most; and its own.
    pub(crate) fn curve(&self, serial: Share) -> Curve {
        let powers = (0..32).map(|power| 1_u32 << power);
        let sizes = powers.flat_map(|power| [power, power.saturating_mul(3) / 2]);
        let mut sizes: Vec<u32> = sizes.filter(|size| (self.min..=self.max).contains(size)).collect();
        sizes.extend([self.min, self.max, self.asks]);
        sizes.sort_unstable();
        sizes.dedup();
        Curve::of_cores(sizes, serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_and_half_way_between_them() {
        let sizes = |min, max, asks| -> Vec<u32> {
            let scaling = Cores { min, max, asks }.curve(Share::NONE).scaling();
            scaling.sizes().iter().map(|(cores, _)| *cores).collect()
        };
        assert_eq!(sizes(1, 32, 4), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]);
        assert_eq!(sizes(5, 20, 7), [5, 6, 7, 8, 12, 16, 20]);
        assert_eq!(sizes(4, 4, 4), [4]);
    }
}
