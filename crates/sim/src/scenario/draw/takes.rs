//! What drawn jobs run on: GPUs, or the cores of one process.

use std::sync::Arc;

use metronome_core::model::cluster::Cluster;
use metronome_core::model::job::{
    Capabilities, Gang, GangError, JobSpec, Role, RoleKind, Shape, Topology, Work,
};
use metronome_core::model::units::{Cpu, Duration, GpuTime, Gpus, Resources, Share};
use metronome_core::observe::progress::WorkPace;
use rand::RngExt;
use rand_pcg::Pcg64;

use super::Request;
use crate::scenario::cores::Cores;
use crate::scenario::members::MemberSize;

/// What a job runs on.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) enum Takes {
    Gpus(Sizes),
    Cpus(Processes),
}

/// One process each, of which one core does a part that is drawn.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct Processes {
    pub(in crate::scenario) cores: Cores,
    pub(in crate::scenario) serial: (Share, Share),
    pub(in crate::scenario) topology: Topology,
}

/// Whole numbers of GPUs.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct Sizes {
    pub(in crate::scenario) powers_of_two: Share,
    pub(in crate::scenario) from: u32,
    pub(in crate::scenario) to: u32,
    pub(in crate::scenario) member: MemberSize,
}

/// Parameter servers of a job: from so many to so many, but no more than it has workers.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct Servers {
    pub(in crate::scenario) from: u32,
    pub(in crate::scenario) to: u32,
    pub(in crate::scenario) each: Resources,
}

impl Takes {
    /// What jobs ask for, times how long they take with it, and what the cluster has of that.
    pub(super) fn offered(&self, jobs: &[Request], cluster: &Cluster) -> (f64, f64) {
        let capacity = cluster.capacity();
        match self {
            Self::Gpus(_) => {
                let work = jobs.iter().map(|job| GpuTime::of(job.spec.gpus(), job.as_asked));
                let total = work.fold(GpuTime::default(), |sum, work| sum + work);
                (total.0 as f64, capacity.gpus.0 as f64)
            }
            Self::Cpus(processes) => {
                let cores = f64::from(processes.cores.asks);
                let total: u128 = jobs.iter().map(|job| u128::from(job.as_asked.0)).sum();
                (total as f64 * cores, capacity.cpu.0 as f64 / Cpu::cores(1).0 as f64)
            }
        }
    }
}

impl Processes {
    /// A job that takes so long with the cores that are asked for.
    pub(super) fn request(&self, mut spec: JobSpec, as_asked: Duration, place: f64) -> Request {
        let (from, to) = (f64::from(self.serial.0.0), f64::from(self.serial.1.0));
        let serial = Share((from + place * (to - from)).round() as u32);
        let scaling = self.cores.curve(serial).scaling();
        let alone = WorkPace::at(scaling.speed(self.cores.asks)).work(as_asked);
        spec.work = Work { alone: Some(alone), ..Work::default() };
        spec.scaling = Some(Arc::new(scaling));
        spec.topology = self.topology;
        spec.capabilities = Capabilities { resize_in_place: true, ..spec.capabilities };
        Request { spec, training: None, asks: Some(self.cores.asks(serial)), as_asked }
    }
}

impl Sizes {
    pub(in crate::scenario) fn powers(&self) -> impl Iterator<Item = u32> + Clone {
        let range = self.from..=self.to;
        (0..u32::BITS).map(|bit| 1 << bit).filter(move |size| range.contains(size))
    }

    /// The members of a size that is drawn.
    pub(super) fn draw(&self, random: &mut Pcg64) -> Result<Vec<Role>, GangError> {
        self.member.roles(Gpus::whole(u64::from(self.size(random))))
    }

    fn size(&self, random: &mut Pcg64) -> u32 {
        let (coin, place) = (random.random::<f64>(), random.random::<f64>());
        if coin < self.powers_of_two.as_f64() {
            let powers: Vec<u32> = self.powers().collect();
            return powers[(place * powers.len() as f64) as usize];
        }
        self.from + (place * f64::from(self.to - self.from + 1)) as u32
    }
}

impl Servers {
    pub(super) fn draw(&self, workers: u32, random: &mut Pcg64) -> Role {
        let drawn = self.from + (random.random::<f64>() * f64::from(self.to - self.from + 1)) as u32;
        self.role(drawn.min(workers))
    }

    pub(in crate::scenario) fn role(&self, servers: u32) -> Role {
        let gang = Gang::rigid(u64::from(servers)).expect("a job has workers, and `from` is at least one");
        Role { kind: RoleKind::Ps, gang, shape: Shape::of(self.each) }
    }
}
