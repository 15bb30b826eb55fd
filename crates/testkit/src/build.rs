//! Clusters, jobs and scenarios in a line each.

use std::sync::Arc;

use metronome_core::engine::{Engine, Settings};
use metronome_core::model::cluster::{Cluster, NodeSpec, Vertex};
use metronome_core::model::id::{IdVec, NodeId};
use metronome_core::model::job::{Capabilities, Checkpointing, Gang, JobSpec};
use metronome_core::model::policy::Policy;
use metronome_core::model::profile::{Compute, Profile, ring_load};
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{
    Bandwidth, Cpu, Duration, Gpus, Instant, Iterations, Memory, Resources, Share,
};
use metronome_sim::model::{self, Pattern, TrainingModel};
use metronome_sim::noise::Noise;
use metronome_sim::outcome::Outcome;
use metronome_sim::scenario::{Arrival, Costs, Departures, Fault, Scenario, Source};
use metronome_sim::world::{self, Estimates, RunOptions};

pub fn gpus(count: u64) -> Resources {
    Resources { gpus: Gpus::whole(count), ..Resources::NONE }
}

/// So many thousandths of one GPU.
pub fn share(thousandths: u64) -> Resources {
    Resources { gpus: Gpus(thousandths), ..Resources::NONE }
}

/// A GPU member as it is asked for in practice: CPU and memory beside.
pub fn gpu_member(count: u64) -> Resources {
    Resources { cpu: Cpu::cores(4 * count), memory: Memory::gib(16 * count), gpus: Gpus::whole(count) }
}

/// What a node with so many GPUs has.
pub fn gpu_node(gpus: u64) -> Resources {
    Resources { cpu: Cpu::cores(16 * gpus), memory: Memory::gib(128 * gpus), gpus: Gpus::whole(gpus) }
}

/// `racks` racks of `per_rack` nodes with `gpus` GPUs each.
pub fn racks(racks: u32, per_rack: u32, gpus: u64) -> Cluster {
    let mut cluster = Cluster::new(&["rack"]).expect("one level");
    for node in 0..racks * per_rack {
        let spec = NodeSpec {
            name: format!("node-{node}"),
            capacity: gpu_node(gpus),
            domains: vec![format!("rack-{}", node / per_rack)],
            ..NodeSpec::default()
        };
        cluster.add_node(&spec).expect("names differ");
    }
    cluster
}

/// One node that stands for a pool of GPUs.
pub fn pool(gpus: u64) -> Cluster {
    racks(1, 1, gpus)
}

/// `members` workers of one GPU each that take `seconds`; stopped and started again for nothing.
pub fn job(name: &str, members: u64, seconds: u64) -> JobSpec {
    let gang = Gang::rigid(members).expect("a positive number of members");
    let mut spec = JobSpec::workers(name, gang, gpus(1));
    spec.work.alone = Some(Duration::from_secs(seconds));
    preemptible(spec)
}

pub fn preemptible(mut spec: JobSpec) -> JobSpec {
    spec.capabilities = Capabilities::CHECKPOINTED;
    spec.checkpointing = Some(Checkpointing::default());
    spec
}

pub fn policy(name: &str) -> Policy {
    Policy::named(name).expect("a policy of that name")
}

pub fn scenario(cluster: Cluster, jobs: impl IntoIterator<Item = (u64, JobSpec)>) -> Scenario {
    let arrival = |(at, spec)| Arrival {
        at: Instant::from_secs(at),
        spec: Arc::new(spec),
        training: None,
        asks: None,
        learning: None,
        quality: None,
    };
    with_arrivals(cluster, jobs.into_iter().map(arrival).collect())
}

/// Jobs that train known models: see `model_job`.
pub fn training_scenario(
    cluster: Cluster,
    jobs: impl IntoIterator<Item = (u64, (JobSpec, TrainingModel))>,
) -> Scenario {
    let arrival = |(at, (spec, model))| Arrival {
        at: Instant::from_secs(at),
        spec: Arc::new(spec),
        training: Some(Arc::new(model)),
        asks: None,
        learning: None,
        quality: None,
    };
    with_arrivals(cluster, jobs.into_iter().map(arrival).collect())
}

fn with_arrivals(cluster: Cluster, arrivals: Vec<Arrival>) -> Scenario {
    Scenario {
        name: "test".into(),
        cluster,
        queues: IdVec::from_iter([Queue::open("default")]),
        policies: Vec::new(),
        sources: vec![Source::Listed(arrivals)],
        within_node: None,
        round: Duration::ZERO,
        rounds: Default::default(),
        tick: Duration::SECOND,
        costs: Costs::default(),
        departures: Departures::default(),
        estimates: Estimates::Exact,
        faults: Vec::new(),
        commands: Default::default(),
    }
}

/// With steps that fail, come late or get lost, each so often in a thousand.
pub fn with_bad_steps(mut scenario: Scenario, fail: u32, late: u32, lost: u32, delay: Duration) -> Scenario {
    let share = |thousandths: u32| Share(thousandths * 1000);
    scenario.faults.push(Fault::Steps { fail: share(fail), late: share(late), lost: share(lost), delay });
    scenario
}

/// Runs a scenario with every check on.
pub fn run(scenario: &Scenario, policy: Policy, seed: u64) -> Outcome {
    let options = RunOptions { seed, full_check_every: 1, ..RunOptions::new(policy) };
    world::run(scenario, options, &|_| {})
}

/// An engine with one queue, every check on.
pub fn engine(cluster: Cluster, policy: Policy) -> Engine {
    let settings = Settings { full_check_every: 1, ..Settings::default() };
    Engine::new(cluster, IdVec::from_iter([Queue::open("default")]), policy, settings)
}

/// The same racks with links: nodes at one rate, racks at another.
pub fn linked_racks(count: u32, per_rack: u32, gpus: u64, node: Bandwidth, rack: Bandwidth) -> Cluster {
    racks_with_uplinks(per_rack, gpus, node, &vec![rack; count as usize])
}

/// Racks of `per_rack` nodes with a link of rate `node` each, one rack for each rate of an uplink.
pub fn racks_with_uplinks(per_rack: u32, gpus: u64, node: Bandwidth, uplinks: &[Bandwidth]) -> Cluster {
    let mut cluster = racks(uplinks.len() as u32, per_rack, gpus);
    let name = |vertex| format!("{vertex:?}");
    let root = cluster.fabric.add_switch("root");
    for (rack_number, uplink) in (0..).zip(uplinks) {
        let switch = cluster.fabric.add_switch(&format!("rack-{rack_number}"));
        cluster.fabric.connect(switch, root, *uplink, name).expect("a new cable");
        for node_number in rack_number * per_rack..(rack_number + 1) * per_rack {
            let below = Vertex::Node(NodeId(node_number));
            cluster.fabric.connect(below, switch, node, name).expect("a new cable");
        }
    }
    cluster
}

/// Members of whole nodes that train a known model for so many iterations, without noise.
pub fn model_job(
    name: &str,
    members: u64,
    gpus_each: u64,
    model: &str,
    iterations: u64,
) -> (JobSpec, TrainingModel) {
    let gang = Gang::rigid(members).expect("a positive number of members");
    let mut spec = preemptible(JobSpec::workers(name, gang, gpus(gpus_each)));
    let model = model::named(model).expect("a known model");
    let alone = model.iteration.alone(ring_load(members as u32), Bandwidth(100_000_000_000));
    spec.work.iterations = Some(Iterations(iterations));
    spec.work.alone = Some(alone.times(iterations));
    (spec, TrainingModel { pattern: Pattern::Gradients(model), iterations, noise: Noise::None })
}

/// The same on members of four GPUs, with its exchange known before it starts.
pub fn known_job(name: &str, members: u64, model: &str, iterations: u64) -> (JobSpec, TrainingModel) {
    let (mut spec, training) = model_job(name, members, 4, model, iterations);
    let gradients = model::named(model).expect("a known model").iteration.clone();
    let compute = Compute { gpu_type: None, members: members as u32, time: gradients.compute };
    let profile = Profile::new(vec![compute], None).expect("a model computes");
    spec.profile = Some(Arc::new(profile.reducing(gradients)));
    (spec, training)
}
