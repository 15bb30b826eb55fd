//! From a size in GPUs to members.

use metronome_core::model::job::{Gang, GangError, Role, RoleKind, Shape};
use metronome_core::model::units::{Cpu, Gpus, Memory, Resources};

/// How a size in GPUs is divided, and what members take beside their GPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberSize {
    /// At most so many GPUs in one member.
    pub(crate) gpus: Gpus,
    pub(crate) cpu_per_gpu: Cpu,
    pub(crate) memory_per_gpu: Memory,
}

impl MemberSize {
    /// As many full members as there are, and one for the rest.
    pub(crate) fn roles(&self, gpus: Gpus) -> Result<Vec<Role>, GangError> {
        let (full, rest) = (gpus.0 / self.gpus.0, Gpus(gpus.0 % self.gpus.0));
        let mut roles = Vec::with_capacity(2);
        if full > 0 {
            roles.push(self.workers(Gang::rigid(full)?, self.gpus));
        }
        if !rest.is_zero() {
            roles.push(self.workers(Gang::rigid(1)?, rest));
        }
        Ok(roles)
    }

    pub(crate) fn workers(&self, gang: Gang, gpus: Gpus) -> Role {
        let part = |amount: u64| {
            let whole = u128::from(amount) * u128::from(gpus.0);
            u64::try_from(whole.div_ceil(u128::from(Gpus::whole(1).0))).unwrap_or(u64::MAX)
        };
        let each = Resources {
            cpu: Cpu(part(self.cpu_per_gpu.0)),
            memory: Memory(part(self.memory_per_gpu.0)),
            gpus,
        };
        Role { kind: RoleKind::Worker, gang, shape: Shape::of(each) }
    }
}
