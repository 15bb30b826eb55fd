//! Jobs that are drawn: Poisson arrivals at a stated load.
//!
//! Each purpose has a random stream of its own, and each job takes as many numbers from it as every other, so that a
//! change to one part of a workload leaves the others as they were.

use std::sync::Arc;

use metronome_core::cluster::{Cluster, Name};
use metronome_core::job::{Checkpointing, Gang, JobSpec, Role, RoleKind, Shape, Topology, Work};
use metronome_core::units::{Bandwidth, Duration, GpuTime, Gpus, Instant, Resources, Share};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::members::MemberSize;
use super::priorities::Priorities;
use super::training::{Amount, Ground};
use super::users::{Owner, Owners};
use super::{Arrival, capabilities};
use crate::model::alone::Alone;
use crate::model::{Model, Pattern, TrainingModel};
use crate::noise::Noise;

/// A workload before a seed makes jobs of it.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Jobs are called `<name>-0`, `<name>-1`, ….
    pub(super) name: String,
    pub(super) jobs: u32,
    pub(super) load: f64,
    /// Jobs without a model work for their duration and send nothing.
    pub(super) models: Vec<Arc<Model>>,
    pub(super) sizes: Sizes,
    pub(super) durations: Durations,
    pub(super) priorities: Priorities,
    pub(super) checkpointing: Option<Checkpointing>,
    pub(super) noise: Noise,
    pub(super) owners: Owners,
    pub(super) servers: Option<Servers>,
}

/// Parameter servers of a job: from so many to so many, but no more than it has workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Servers {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) each: Resources,
}

/// Whole numbers of GPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) powers_of_two: Share,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) member: MemberSize,
}

/// Lognormal, and cut at the longest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Durations {
    pub(super) median: Duration,
    pub(super) sigma: f64,
    pub(super) at_most: Duration,
}

/// What random numbers are drawn for. Steps and reports of the world have 1 and 2.
const ARRIVALS: u128 = 11;
const SIZES: u128 = 12;
const MODELS: u128 = 13;
const DURATIONS: u128 = 14;
const PRIORITIES: u128 = 15;
const USERS: u128 = 16;
const SERVERS: u128 = 17;

impl Drawn {
    pub(super) fn len(&self) -> usize {
        self.jobs as usize
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Name> {
        (0..self.jobs).map(|index| Name::from(self.name_of(index)))
    }

    pub(super) fn name_of(&self, index: u32) -> String {
        format!("{}-{index}", self.name)
    }

    /// The jobs of a seed. Sizes and durations come first: the gaps between arrivals are exponential, and their mean
    /// is what makes the work of these very jobs the stated load of the cluster.
    pub(super) fn arrivals(
        &self,
        seed: u64,
        cluster: &Cluster,
        within_node: Option<Bandwidth>,
    ) -> Vec<Arrival> {
        let jobs = self
            .requests(seed, &Ground { alone: Alone::new(cluster, within_node), noise: self.noise.clone() });
        let work = |(spec, _): &(JobSpec, _)| GpuTime::of(spec.gpus(), spec.work.alone.unwrap_or_default());
        let total = jobs.iter().map(work).fold(GpuTime::default(), |sum, work| sum + work);
        let capacity = cluster.capacity().gpus.0 as f64 * self.load;
        let mean_gap = total.0 as f64 / jobs.len() as f64 / capacity;

        let mut random = stream(seed, ARRIVALS);
        let mut at = Instant::START;
        let mut arrive = |(spec, training)| {
            at = at + nanos(mean_gap * exponential(&mut random));
            Arrival { at, spec: Arc::new(spec), training }
        };
        jobs.into_iter().map(&mut arrive).collect()
    }

    fn requests(&self, seed: u64, ground: &Ground) -> Vec<(JobSpec, Option<Arc<TrainingModel>>)> {
        let (mut sizes, mut models) = (stream(seed, SIZES), stream(seed, MODELS));
        let (mut durations, mut priorities) = (stream(seed, DURATIONS), stream(seed, PRIORITIES));
        let (mut users, mut servers) = (stream(seed, USERS), stream(seed, SERVERS));
        let request = |index| {
            let mut spec = self.job(index, self.sizes.draw(&mut sizes), self.owners.draw(&mut users));
            spec.priority = self.priorities.draw(&mut priorities);
            let beside = self.servers.map(|range| range.draw(spec.members(), &mut servers));
            spec.roles.extend(beside);
            let duration = self.durations.draw(&mut durations);
            spec.work = Work { iterations: None, alone: Some(duration) };
            let training = pick(&self.models, &mut models).map(|model| {
                let pattern = Pattern::Gradients(model.clone());
                let training = ground.train(&mut spec, pattern, Amount::Lasting(duration));
                training.expect("a duration can be counted")
            });
            (spec, training)
        };
        (0..self.jobs).map(request).collect()
    }

    fn job(&self, index: u32, size: u32, owner: &Owner) -> JobSpec {
        let roles = self.sizes.member.roles(Gpus::whole(u64::from(size)));
        JobSpec {
            name: Name::from(self.name_of(index)),
            queue: owner.queue,
            priority: Default::default(),
            user: owner.standing,
            owner: owner.name.clone(),
            roles: roles.expect("sizes are checked against the cluster"),
            work: Work::default(),
            deadline: None,
            scaling: None,
            topology: Topology::Anywhere,
            teams: None,
            capabilities: capabilities(self.checkpointing),
            checkpointing: self.checkpointing,
            profile: None,
            start_retries: JobSpec::DEFAULT_START_RETRIES,
            suspended: false,
            budgets: Vec::new(),
            preempts: true,
            repairs: false,
        }
    }
}

impl Sizes {
    pub(super) fn powers(&self) -> impl Iterator<Item = u32> + Clone {
        let range = self.from..=self.to;
        (0..u32::BITS).map(|bit| 1 << bit).filter(move |size| range.contains(size))
    }

    fn draw(&self, random: &mut Pcg64) -> u32 {
        let (coin, place) = (random.random::<f64>(), random.random::<f64>());
        if coin < self.powers_of_two.as_f64() {
            let powers: Vec<u32> = self.powers().collect();
            return powers[(place * powers.len() as f64) as usize];
        }
        self.from + (place * f64::from(self.to - self.from + 1)) as u32
    }
}

impl Servers {
    fn draw(&self, workers: u32, random: &mut Pcg64) -> Role {
        let drawn = self.from + (random.random::<f64>() * f64::from(self.to - self.from + 1)) as u32;
        self.role(drawn.min(workers))
    }

    pub(super) fn role(&self, servers: u32) -> Role {
        let gang = Gang::rigid(u64::from(servers)).expect("a job has workers, and `from` is at least one");
        Role { kind: RoleKind::Ps, gang, shape: Shape::of(self.each) }
    }
}

impl Durations {
    fn draw(&self, random: &mut Pcg64) -> Duration {
        let drawn = nanos(self.median.0 as f64 * (self.sigma * gaussian(random)).exp());
        drawn.clamp(Duration(1), self.at_most)
    }
}

fn stream(seed: u64, purpose: u128) -> Pcg64 {
    Pcg64::new(u128::from(seed), purpose)
}

fn pick<'a, T>(items: &'a [T], random: &mut Pcg64) -> Option<&'a T> {
    items.get((random.random::<f64>() * items.len() as f64) as usize)
}

/// Of mean one.
fn exponential(random: &mut Pcg64) -> f64 {
    -(1.0 - random.random::<f64>()).ln()
}

/// Of mean zero and standard deviation one, by the method of Box and Muller.
pub(crate) fn gaussian(random: &mut Pcg64) -> f64 {
    let (radius, angle) = (1.0 - random.random::<f64>(), random.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

fn nanos(value: f64) -> Duration {
    Duration(value.round() as u64)
}
