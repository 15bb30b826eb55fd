//! Jobs that are drawn: Poisson arrivals at a stated load.
//!
//! Each purpose has a random stream of its own, and each job takes as many numbers from it as every other, so that a
//! change to one part of a workload leaves the others as they were.

mod durations;
mod takes;

use std::sync::Arc;

use metronome_core::model::cluster::{Cluster, Name};
use metronome_core::model::job::{Checkpointing, JobSpec, Role, Topology, Work};
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::priorities::Priorities;
use super::training::{Amount, Ground};
use super::users::{Owner, Owners};
use super::{Arrival, Asks, capabilities};
use crate::model::alone::Alone;
use crate::model::{Model, Pattern, TrainingModel};
use crate::noise::Noise;

pub(super) use durations::{DrawnDeadlines, Durations};
pub(super) use takes::{Processes, Servers, Sizes, Takes};

/// A workload before a seed makes jobs of it.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Jobs are called `<name>-0`, `<name>-1`, ….
    pub(super) name: String,
    pub(super) jobs: u32,
    pub(super) load: f64,
    /// Jobs without a model work for their duration and send nothing.
    pub(super) models: Vec<Arc<Model>>,
    pub(super) takes: Takes,
    pub(super) durations: Durations,
    pub(super) deadlines: Option<DrawnDeadlines>,
    pub(super) priorities: Priorities,
    pub(super) checkpointing: Option<Checkpointing>,
    pub(super) noise: Noise,
    pub(super) owners: Owners,
    pub(super) servers: Option<Servers>,
}

/// A job before it is known when it comes.
#[derive(Debug)]
struct Request {
    spec: JobSpec,
    training: Option<Arc<TrainingModel>>,
    asks: Option<Asks>,
    /// How long it takes as it is asked for.
    as_asked: Duration,
}

/// What random numbers are drawn for. Steps and reports of the world have 1 and 2.
const ARRIVALS: u128 = 11;
const SIZES: u128 = 12;
const MODELS: u128 = 13;
const DURATIONS: u128 = 14;
const PRIORITIES: u128 = 15;
const USERS: u128 = 16;
const SERVERS: u128 = 17;
const SERIAL: u128 = 18;
const DEADLINES: u128 = 19;

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
        let ground = Ground { alone: Alone::new(cluster, within_node), noise: self.noise.clone() };
        let jobs = self.requests(seed, &ground);
        let (offered, capacity) = self.takes.offered(&jobs, cluster);
        let mean_gap = offered / jobs.len() as f64 / (capacity * self.load);

        let (mut gaps, mut factors) = (stream(seed, ARRIVALS), stream(seed, DEADLINES));
        let mut at = Instant::START;
        let mut arrive = |mut job: Request| {
            at = at + nanos(mean_gap * exponential(&mut gaps));
            let within = self.deadlines.map(|range| (range, factors.random::<f64>()));
            job.spec.deadline = within.map(|(range, place)| range.deadline(at, job.as_asked, place));
            let (training, asks) = (job.training, job.asks);
            Arrival { at, spec: Arc::new(job.spec), training, asks, learning: None, quality: None }
        };
        jobs.into_iter().map(&mut arrive).collect()
    }

    fn requests(&self, seed: u64, ground: &Ground) -> Vec<Request> {
        let (mut sizes, mut models) = (stream(seed, SIZES), stream(seed, MODELS));
        let (mut durations, mut priorities) = (stream(seed, DURATIONS), stream(seed, PRIORITIES));
        let (mut users, mut servers) = (stream(seed, USERS), stream(seed, SERVERS));
        let mut serial = stream(seed, SERIAL);
        let request = |index| {
            let owner = self.owners.draw(&mut users);
            let duration = self.durations.draw(&mut durations);
            let priority = self.priorities.draw(&mut priorities);
            match self.takes {
                Takes::Gpus(range) => {
                    let size = range.draw(&mut sizes).expect("sizes are checked against the cluster");
                    let mut spec = self.job(index, size, owner);
                    spec.priority = priority;
                    let beside = self.servers.map(|range| range.draw(spec.members(), &mut servers));
                    spec.roles.extend(beside);
                    self.trained(spec, duration, pick(&self.models, &mut models), ground)
                }
                Takes::Cpus(processes) => {
                    let mut spec = self.job(index, vec![processes.cores.role()], owner);
                    spec.priority = priority;
                    processes.request(spec, duration, serial.random::<f64>())
                }
            }
        };
        (0..self.jobs).map(request).collect()
    }

    fn trained(
        &self,
        mut spec: JobSpec,
        duration: Duration,
        model: Option<&Arc<Model>>,
        ground: &Ground,
    ) -> Request {
        spec.work = Work { alone: Some(duration), ..Work::default() };
        let training = model.map(|model| {
            let pattern = Pattern::Gradients(model.clone());
            let training = ground.train(&mut spec, pattern, Amount::Lasting(duration));
            training.expect("a duration can be counted")
        });
        let as_asked = spec.work.alone.unwrap_or_default();
        Request { spec, training, asks: None, as_asked }
    }

    fn job(&self, index: u32, roles: Vec<Role>, owner: &Owner) -> JobSpec {
        JobSpec {
            name: Name::from(self.name_of(index)),
            queue: owner.queue,
            priority: Default::default(),
            user: owner.standing,
            owner: owner.name.clone(),
            roles,
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
