//! Jobs of one process each, or of several, that share the cores of their nodes: they ask for little, use much, and learn.
//!
//! What a job learns is a loss that falls as `1 / (a w + b) + c` with the work `w` that is done, so that fast gains come
//! first. Its work is core-time; how long it takes follows from the cores it has. The scheduler is told how many iterations
//! that is, or the loss at which it ends, and nothing of how long it takes.

use std::sync::Arc;

use metronome_core::model::cluster::Name;
use metronome_core::model::job::{
    Capabilities, Checkpointing, Gang, JobSpec, Role, RoleKind, Shape, Target, Topology, Work,
};
use metronome_core::model::units::{Cpu, Duration, Instant, Iterations, Resources, Share};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::draw::{Durations, gaussian};
use super::{Arrival, capabilities};

/// A workload of learners before a seed makes jobs of it.
#[derive(Clone, Debug)]
pub struct Learners {
    /// Jobs are called `<name>-0`, `<name>-1`, ….
    pub(super) name: String,
    pub(super) jobs: u32,
    /// They come at any time up to this.
    pub(super) within: Duration,
    /// How many processes each has: any of these.
    pub(super) members: Vec<u32>,
    /// What each process asks for: any of these.
    pub(super) asks: Vec<Cpu>,
    /// The most that each process uses: any of these.
    pub(super) uses: Vec<Cpu>,
    /// Core-time, of kinds of jobs with the share of each.
    pub(super) work: Vec<(Share, Durations)>,
    pub(super) reports: Duration,
    pub(super) noise: Share,
    pub(super) ends: Ends,
    pub(super) checkpointing: Option<Checkpointing>,
}

/// What the scheduler knows of when a job ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ends {
    /// After so many iterations.
    #[default]
    Iterations,
    /// When its loss is so low.
    Target,
}

/// What a job reports while it trains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Learns {
    pub(crate) every: Duration,
    pub(crate) iterations: u64,
    loss: Loss,
    noise: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Loss {
    a: f64,
    b: f64,
    c: f64,
}

impl Loss {
    /// After such a part of all the work.
    fn at(&self, part: f64) -> f64 {
        1.0 / (self.a * part + self.b) + self.c
    }
}

impl Learns {
    /// The loss that is reported after such a part of all the work.
    pub(crate) fn reported(&self, part: f64, random: &mut Pcg64) -> f64 {
        self.loss.at(part) * (1.0 + self.noise * gaussian(random))
    }
}

/// What random numbers are drawn for. Steps, drawn jobs and estimates have 1 to 21.
const ARRIVALS: u128 = 31;
const JOBS: u128 = 32;

/// One iteration of one core takes so long.
const ITERATION: Duration = Duration::from_millis(500);

impl Learners {
    pub(super) fn len(&self) -> usize {
        self.jobs as usize
    }

    pub(super) fn names(&self) -> impl Iterator<Item = Name> {
        (0..self.jobs).map(|index| Name::from(self.name_of(index)))
    }

    pub(super) fn name_of(&self, index: u32) -> String {
        format!("{}-{index}", self.name)
    }

    pub(super) fn arrivals(&self, seed: u64) -> Vec<Arrival> {
        let (mut times, mut jobs) =
            (Pcg64::new(u128::from(seed), ARRIVALS), Pcg64::new(u128::from(seed), JOBS));
        let mut at: Vec<Instant> = (0..self.jobs).map(|_| self.time(&mut times)).collect();
        at.sort_unstable();
        at.into_iter().enumerate().map(|(index, at)| self.arrival(index as u32, at, &mut jobs)).collect()
    }

    fn time(&self, random: &mut Pcg64) -> Instant {
        Instant((self.within.0 as f64 * random.random::<f64>()) as u64)
    }

    fn arrival(&self, index: u32, at: Instant, random: &mut Pcg64) -> Arrival {
        let (asks, most) = (pick(&self.asks, random), pick(&self.uses, random));
        let core_time = self.draw_work(random);
        let members = self.draw_members(random);
        let most = Cpu(most.0 * u64::from(members));
        let loss = draw_loss(random);
        let alone = Duration((core_time.0 as f64 * Cpu::cores(1).0 as f64 / most.0 as f64) as u64);
        let iterations = (core_time.0 / ITERATION.0).max(1);
        let mut spec = self.spec(index, members, asks);
        spec.work = match self.ends {
            Ends::Iterations => Work { iterations: Some(Iterations(iterations)), ..Work::default() },
            Ends::Target => Work { target: Some(Target::AtMost(loss.at(1.0))), ..Work::default() },
        };
        spec.work.cpu = Some(most);
        let learns = Learns { every: self.reports, iterations, loss, noise: self.noise.as_f64() };
        let learning = Some(Arc::new(Lesson { learns, alone }));
        Arrival { at, spec: Arc::new(spec), training: None, asks: None, learning, quality: None }
    }

    /// Where all have the same number, nothing is drawn.
    fn draw_members(&self, random: &mut Pcg64) -> u32 {
        match &self.members[..] {
            [members] => *members,
            members => pick(members, random),
        }
    }

    fn draw_work(&self, random: &mut Pcg64) -> Duration {
        let coin = random.random::<f64>();
        let mut sum = 0.0;
        let kind = self.work.iter().find(|(share, _)| {
            sum += share.as_f64();
            coin < sum
        });
        let (_, durations) = kind.or(self.work.last()).expect("there is a kind of jobs");
        durations.draw(random)
    }

    fn spec(&self, index: u32, members: u32, asks: Cpu) -> JobSpec {
        let each = Resources { cpu: asks, ..Resources::NONE };
        let gang = Gang::rigid(u64::from(members)).expect("who is drawn has a process");
        let mut spec = JobSpec::workers(&self.name_of(index), gang, each);
        spec.roles = vec![Role { kind: RoleKind::Worker, gang, shape: Shape::of(each) }];
        spec.topology = Topology::Anywhere;
        spec.checkpointing = self.checkpointing;
        spec.capabilities = Capabilities { throttle: true, ..capabilities(self.checkpointing) };
        spec
    }
}

/// What a job does in fact, of which the scheduler hears only by its reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lesson {
    pub(crate) learns: Learns,
    /// How long it takes with all the cores it can use.
    pub(crate) alone: Duration,
}

impl Lesson {
    /// The loss after `k` iterations, each of which is half a second of one core: 1/(ak + b) + c.
    pub fn curve(&self) -> [f64; 3] {
        let Loss { a, b, c } = self.learns.loss;
        [a / self.learns.iterations as f64, b, c]
    }

    pub fn iterations(&self) -> u64 {
        self.learns.iterations
    }

    /// What one iteration takes of one core.
    pub fn iteration(&self) -> Duration {
        ITERATION
    }
}

fn pick<T: Copy>(items: &[T], random: &mut Pcg64) -> T {
    items[(random.random::<f64>() * items.len() as f64) as usize]
}

/// A loss from anywhere between 0.8 and 3 above its asymptote down to a small rest at the end of all work.
fn draw_loss(random: &mut Pcg64) -> Loss {
    let mut between = |low: f64, high: f64| low + (high - low) * random.random::<f64>();
    let (c, b, rest) = (between(0.05, 0.3), 1.0 / between(0.8, 3.0), between(0.02, 0.08));
    Loss { a: 1.0 / rest - b, b, c }
}
