//! From a scenario to a world on this machine: the same jobs, as processes.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Args;
use metronome_core::model::cluster::Keeping;
use metronome_core::model::job::{JobSpec, RoleKind};
use metronome_core::model::policy::Policy;
use metronome_core::model::profile::{Bucket, Iteration, ring_load};
use metronome_core::model::units::{Bandwidth, Bytes, Cpu, Duration};
use metronome_local::links::Scale;
use metronome_local::names::WorldName;
use metronome_local::process::Launcher;
use metronome_local::state::WorldFolder;
use metronome_local::world::{Job, Mishap, Program, Programs, Setup};
use metronome_sim::model::Pattern;
use metronome_sim::noise::Noise;
use metronome_sim::scenario::{Arrival, Fault, Scenario};
use metronome_trainer::{Compute, Curve, Notes, Saves, Task};

use crate::failure::Failure;

/// The arguments of commands that run a scenario on this machine.
#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// Divide all rates and all bytes by N
    #[arg(long, value_name = "N", default_value_t = 500)]
    scale: u64,
    /// Seed of everything that is left to chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// What the world is called on this machine
    #[arg(long, value_name = "NAME", default_value = "local")]
    world: String,
    /// Where worlds have their folders
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl WorldArgs {
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            world: self.world.clone(),
            root: self.dir.clone().unwrap_or_else(WorldFolder::usual_root),
            scale: self.scale,
            seed: self.seed,
            notes: Notes::default(),
        }
    }
}

/// What is said of a world beside its scenario.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) world: String,
    pub(crate) root: PathBuf,
    pub(crate) scale: u64,
    pub(crate) seed: u64,
    /// What trainers write down.
    pub(crate) notes: Notes,
}

/// The work of a job of which nothing is known but how long it takes is cut into iterations of this length.
const USUAL_ITERATION: Duration = Duration::from_millis(100);

pub(crate) fn setup(scenario: &Scenario, policy: Policy, asked: &Asked) -> Result<Setup, Failure> {
    let cannot = |error: metronome_local::LocalError| Failure::input(error.to_string());
    let scale = NonZeroU64::new(asked.scale).ok_or_else(|| Failure::input("divide by a scale of nothing"))?;
    let scale = Scale(scale);
    let executable = executable()?;
    let arrivals = scenario.arrivals(asked.seed);
    let jobs = arrivals.iter().enumerate();
    let jobs = jobs.map(|(index, arrival)| {
        job(scenario, arrival, asked.seed + index as u64, scale, asked.notes, &executable)
    });
    Ok(Setup {
        world: WorldName::new(&asked.world).map_err(cannot)?,
        root: asked.root.clone(),
        cluster: kept_by_the_kernel(scenario).cluster,
        queues: scenario.queues.clone(),
        policy,
        scale,
        jobs: jobs.collect::<Result<_, _>>()?,
        mishaps: mishaps(scenario)?,
        programs: Programs {
            shim: Launcher { program: executable.clone(), arguments: vec!["shim".into()] },
            agent: Some(vec![executable.display().to_string(), "agent".into()]),
        },
    })
}

/// What is decided about links is kept as queues of hosts can.
pub(crate) fn kept_by_the_kernel(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.cluster.fabric.is_kept(Keeping::Roughly);
    scenario
}

fn executable() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::world("find this executable").because(&error))
}

fn job(
    scenario: &Scenario,
    arrival: &Arrival,
    seed: u64,
    scale: Scale,
    notes: Notes,
    executable: &Path,
) -> Result<Job, Failure> {
    let spec = &arrival.spec;
    let commands = scenario.commands.get(&spec.name);
    let trainer =
        Program { command: vec![executable.display().to_string(), "trainer".into()], keeps_turns: true };
    let program = |role: usize| match commands.and_then(|commands| commands.get(role)) {
        Some(words) if !words.is_empty() => Program { command: words.clone(), keeps_turns: false },
        _ => trainer.clone(),
    };
    let task = Task { notes, ..task(arrival, seed, scale) };
    let is_one_process = arrival.asks.is_some_and(|asks| asks.serial.is_some());
    Ok(Job {
        at: Duration(arrival.at.0),
        spec: spec.clone(),
        programs: (0..spec.roles.len()).map(program).collect(),
        task: Some(serde_json::to_value(task).expect("a task is plain data")),
        is_one_process,
        failures: spec.start_retries,
    })
}

/// What the trainer is to do in place of the job's own code.
fn task(arrival: &Arrival, seed: u64, scale: Scale) -> Task {
    let spec = &arrival.spec;
    let saves = spec.checkpointing.map(|costs| Saves { every: costs.every, takes: costs.takes });
    let quiet = Task {
        iteration: Iteration { compute: USUAL_ITERATION, buckets: Vec::new(), finish: Duration::ZERO },
        iterations: 1,
        stretches: Vec::new(),
        compute: Compute::Sleeps,
        learns: Curve::default(),
        saves: saves.unwrap_or_default(),
        notes: Notes::default(),
    };
    if let Some(training) = &arrival.training {
        let stretches = stretches(&training.noise, seed, training.iterations);
        let iteration = scaled(&iteration(&training.pattern, spec), scale);
        return Task { iteration, iterations: training.iterations, stretches, ..quiet };
    }
    if let Some(lesson) = &arrival.learning {
        let [a, b, c] = lesson.curve();
        let most_cores = spec.work.cpu.map_or(1.0, cores) / f64::from(spec.members().max(1));
        let iteration = Iteration { compute: lesson.iteration(), ..quiet.iteration };
        let compute = Compute::Burns { serial: 0.0, most_cores };
        let learns = Curve { a, b, c, target: None };
        return Task { iteration, iterations: lesson.iterations(), compute, learns, ..quiet };
    }
    let alone = spec.work.alone.unwrap_or(Duration::SECOND);
    match arrival.asks.and_then(|asks| asks.serial) {
        Some(serial) => on_cores(spec, alone, serial.as_f64(), quiet),
        None => {
            let count = spec.work.iterations.map_or(alone.0 / USUAL_ITERATION.0, |count| count.0).max(1);
            let iteration = Iteration { compute: Duration(alone.0 / count), ..quiet.iteration };
            Task { iteration, iterations: count, ..quiet }
        }
    }
}

/// More need not be told: after so many they come again.
const MOST_STRETCHES: u64 = 10_000;

/// The same that the simulator would draw for this job.
pub(crate) fn stretches(noise: &Noise, seed: u64, iterations: u64) -> Vec<f64> {
    let Some(mut stream) = noise.stream(seed) else { return Vec::new() };
    (0..iterations.min(MOST_STRETCHES)).map(|_| stream.draw()).collect()
}

/// One process on several cores: `alone` is with the fewest it may have, an iteration is told on one.
fn on_cores(spec: &JobSpec, alone: Duration, serial: f64, quiet: Task) -> Task {
    let gang = spec.roles[0].gang;
    let (fewest, most) = (f64::from(gang.min()), f64::from(gang.max()));
    let on_one = alone.0 as f64 / (serial + (1.0 - serial) / fewest);
    let count = spec.work.iterations.map_or((on_one / 5e8) as u64, |count| count.0).max(1);
    let iteration = Iteration { compute: Duration((on_one / count as f64) as u64), ..quiet.iteration };
    Task { iteration, iterations: count, compute: Compute::Burns { serial, most_cores: most }, ..quiet }
}

fn cores(cpu: Cpu) -> f64 {
    cpu.0 as f64 / Cpu::cores(1).0 as f64
}

fn iteration(pattern: &Pattern, spec: &JobSpec) -> Iteration {
    match pattern {
        Pattern::Gradients(model) => model.iteration.clone(),
        // A phase says what crosses a link; a ring puts more or less on it than it reduces.
        Pattern::Phases(traffic) => {
            let has_servers = spec.roles.iter().any(|role| role.kind == RoleKind::Ps);
            let load = if has_servers { 1.0 } else { ring_load(spec.members()).max(1.0) };
            let bucket = |phase: &metronome_core::model::profile::Phase| Bucket {
                ready: phase.offset,
                bytes: Bytes((phase.rate.0 as f64 / 8e9 * phase.length.0 as f64 / load) as u64),
            };
            let mut buckets: Vec<Bucket> = traffic.phases().iter().map(bucket).collect();
            buckets.sort_by_key(|bucket| bucket.ready);
            Iteration { compute: traffic.period(), buckets, finish: Duration::ZERO }
        }
    }
}

fn scaled(iteration: &Iteration, scale: Scale) -> Iteration {
    let scaled = |bucket: &Bucket| Bucket { bytes: scale.bytes(bucket.bytes), ..*bucket };
    Iteration { buckets: iteration.buckets.iter().map(scaled).collect(), ..*iteration }
}

fn mishaps(scenario: &Scenario) -> Result<Vec<(Duration, Mishap)>, Failure> {
    let mut all: BTreeMap<Duration, Vec<Mishap>> = BTreeMap::new();
    for fault in &scenario.faults {
        match fault {
            Fault::Node { node, at, lasts, .. } => {
                all.entry(Duration(at.0)).or_default().push(Mishap::Vanishes(*node));
                if let Some(lasts) = lasts {
                    all.entry(Duration(at.0) + *lasts).or_default().push(Mishap::IsBack(*node));
                }
            }
            Fault::Link { links, at, lasts, rate } => {
                let rate = rate.unwrap_or(Bandwidth(0));
                for link in links {
                    all.entry(Duration(at.0)).or_default().push(Mishap::Carries(*link, rate));
                    if let Some(lasts) = lasts {
                        let usual = scenario.cluster.fabric.links()[*link].rate;
                        all.entry(Duration(at.0) + *lasts).or_default().push(Mishap::Carries(*link, usual));
                    }
                }
            }
            Fault::Spoilt { .. }
            | Fault::Slow { .. }
            | Fault::Hang { .. }
            | Fault::Agent { .. }
            | Fault::Steps { .. } => {
                return Err(Failure::input("arrange such a fault on a real machine")
                    .hint("known here are faults of nodes, and of links"));
            }
        }
    }
    Ok(all.into_iter().flat_map(|(at, all)| all.into_iter().map(move |mishap| (at, mishap))).collect())
}
