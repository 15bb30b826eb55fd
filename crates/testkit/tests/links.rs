//! What decisions make of links: predictions against the simulator, waiting for better places, moving to them.

use std::sync::Arc;

use metronome_core::decide::decide;
use metronome_core::engine::{Ending, Engine, Event, Settings};
use metronome_core::model::cluster::{Cluster, NodeSpec, Vertex};
use metronome_core::model::id::{IdVec, JobId, LinkId, NodeId, QueueId};
use metronome_core::model::job::{Capabilities, Checkpointing, Gang, JobSpec, Life};
use metronome_core::model::plan::{Action, Step};
use metronome_core::model::policy::{Moving, Policy, Slowdowns};
use metronome_core::model::profile::{Bucket, Iteration, Profile};
use metronome_core::model::queue::Queue;
use metronome_core::model::report::{Failure, Reason};
use metronome_core::model::units::{Bandwidth, Bytes, Duration, Gpus, Instant, Iterations, Resources, Share};
use metronome_core::network::{Network, Pattern, Route, Sharing, Training, alone};
use metronome_core::observe::progress::Sample;
use metronome_core::traffic::TrafficPolicy;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::Care;
use metronome_sim::model;
use metronome_sim::noise::Noise;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const RATE: Bandwidth = Bandwidth(100_000_000_000);

fn minutes(count: u64) -> Duration {
    Duration::MINUTE.times(count)
}

/// Two racks of two nodes with four GPUs each, every link as fast as the other.
fn racks() -> Cluster {
    let mut cluster = Cluster::new(&["rack"]).unwrap();
    let name = |vertex: Vertex| format!("{vertex:?}");
    let gpus = Resources { gpus: Gpus::whole(4), ..Resources::NONE };
    for node in 0..4 {
        let domains = vec![format!("rack-{}", node / 2)];
        let spec = NodeSpec { name: format!("node-{node}"), capacity: gpus, domains, ..NodeSpec::default() };
        cluster.add_node(&spec).unwrap();
    }
    let top = cluster.fabric.add_switch("top");
    for rack in 0..2 {
        let above = cluster.fabric.add_switch(&format!("rack-{rack}"));
        cluster.fabric.connect(above, top, RATE, name).unwrap();
        for node in [2 * rack, 2 * rack + 1] {
            cluster.fabric.connect(Vertex::Node(NodeId(node)), above, RATE, name).unwrap();
        }
    }
    cluster
}

/// A job of so many GPUs that computes for a tenth of a second and then sends for about as long, again and again.
fn sending(name: &str, gpus: u64, alone: Duration) -> JobSpec {
    let each = Resources { gpus: Gpus::whole(1), ..Resources::NONE };
    let mut spec = JobSpec::workers(name, Gang::rigid(gpus).unwrap(), each);
    let buckets = vec![Bucket { ready: Duration::from_millis(100), bytes: Bytes(1_250_000_000) }];
    let iteration = Iteration { compute: Duration::from_millis(100), buckets, finish: Duration::ZERO };
    let once = iteration.alone(if gpus > 4 { 1.0 } else { 0.0 }, RATE);
    spec.profile = Some(Arc::new(Profile::new(Vec::new(), None).unwrap().reducing(iteration)));
    spec.work.alone = Some(alone);
    spec.work.iterations = Some(Iterations(alone.0 / once.0));
    spec
}

fn movable(spec: JobSpec) -> JobSpec {
    let costs =
        Checkpointing { every: None, takes: Duration::from_secs(5), restart: Duration::from_secs(25) };
    JobSpec { capabilities: Capabilities::CHECKPOINTED, checkpointing: Some(costs), ..spec }
}

/// A world that does at once what it is told.
struct World {
    engine: Engine,
    now: Instant,
}

impl World {
    fn new(policy: Policy) -> Self {
        let queues: IdVec<QueueId, Queue> = IdVec::from_iter([Queue::open("default")]);
        Self { engine: Engine::new(racks(), queues, policy, Settings::default()), now: Instant::START }
    }

    fn submit(&mut self, spec: JobSpec) -> JobId {
        let job = self.engine.submit(self.now, Arc::new(spec));
        self.settle();
        job
    }

    fn settle(&mut self) -> Vec<Step> {
        let mut all = Vec::new();
        loop {
            let steps = self.engine.poll(self.now).into_inner();
            if steps.is_empty() {
                return all;
            }
            for step in &steps {
                self.engine.observe(self.now, Event::StepDone { job: step.job, step: step.id });
            }
            all.extend(steps);
        }
    }

    fn ends(&mut self, job: JobId) -> Vec<Step> {
        self.engine.observe(self.now, Event::JobEnded { job, how: Ending::Completed });
        self.settle()
    }

    fn runs(&self, job: JobId) -> bool {
        matches!(self.engine.life(job), Some(Life::Running(_)))
    }
}

fn metronome() -> Policy {
    Policy::named("metronome").unwrap()
}

/// Four GPUs are free, two on a node of each rack, beside two jobs that use the links of those nodes.
fn crowded(policy: Policy) -> (World, [JobId; 2]) {
    let mut world = World::new(policy);
    let first = world.submit(sending("first", 6, minutes(10)));
    let second = world.submit(sending("second", 6, minutes(10)));
    (world, [first, second])
}

#[test]
fn a_job_waits_for_a_better_place_and_says_so() {
    let (mut world, [first, _]) = crowded(metronome());
    let third = world.submit(sending("third", 4, minutes(10)));
    assert_eq!(world.engine.verdict(third), Some(Reason::BandwidthContended { patience: Some(minutes(30)) }));
    world.now = world.now + minutes(5);
    world.ends(first);
    assert!(world.runs(third), "a rack is free: there it meets nobody");
}

#[test]
fn who_does_not_wait_starts_at_once() {
    let (mut world, _) = crowded(Policy { slowdowns: Slowdowns::Weighed, ..metronome() });
    let third = world.submit(sending("third", 4, minutes(10)));
    assert!(world.runs(third));
}

#[test]
fn nobody_waits_for_ever_for_a_better_place() {
    let (mut world, _) = crowded(metronome());
    let third = world.submit(sending("third", 4, minutes(10)));
    world.now = world.now + minutes(40);
    assert!(world.engine.next_wake().is_some_and(|wake| wake <= world.now), "it asks to be looked at then");
    world.settle();
    assert!(world.runs(third));
}

#[test]
fn a_job_that_runs_apart_is_moved_together_where_that_pays_and_only_then() {
    for (left, moves) in [(minutes(600), true), (Duration::from_secs(570), false)] {
        let (mut world, [first, second]) = crowded(Policy { slowdowns: Slowdowns::Weighed, ..metronome() });
        let apart = world.submit(movable(sending("apart", 4, left)));
        assert!(world.runs(apart));
        world.now = world.now + minutes(9);
        let steps: Vec<Step> = [world.ends(first), world.ends(second)].concat();
        let moved = steps.iter().any(|step| step.job == apart && matches!(step.action, Action::Move { .. }));
        assert_eq!(moved, moves, "{left}");
        assert!(world.settle().is_empty(), "moved once, it stays");
    }
}

#[test]
fn who_could_not_be_moved_is_asked_again_later_and_later() {
    let (mut world, [first, second]) = crowded(Policy { slowdowns: Slowdowns::Weighed, ..metronome() });
    world.submit(movable(sending("apart", 4, minutes(6000))));
    world.now = world.now + minutes(9);
    for job in [first, second] {
        world.engine.observe(world.now, Event::JobEnded { job, how: Ending::Completed });
    }
    let mut asked: Vec<Instant> = Vec::new();
    for _ in 0..240 {
        for Step { id: step, job, action, .. } in world.engine.poll(world.now).into_inner() {
            assert!(matches!(action, Action::Move { .. }), "{action:?}");
            asked.push(world.now);
            let failure = Failure::WouldNotStop;
            world.engine.observe(world.now, Event::StepFailed { job, step, failure });
        }
        world.now = world.now + Duration::from_secs(10);
    }
    let gaps: Vec<Duration> = asked.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    assert!(gaps.len() >= 4, "{asked:?}");
    assert!(gaps.windows(2).all(|pair| pair[1].0 > pair[0].0 * 3 / 2), "{gaps:?}");
}

#[test]
fn who_is_silent_while_it_is_moved_does_not_hang() {
    let (mut world, [first, second]) = crowded(Policy { slowdowns: Slowdowns::Weighed, ..metronome() });
    let apart = world.submit(movable(sending("apart", 4, minutes(6000))));
    for iterations in 1..=9 {
        world.now = world.now + minutes(1);
        let sample =
            Sample { at: world.now, iterations: Iterations(60 * iterations), loss: None, used: None };
        world.engine.observe(world.now, Event::Progress { job: apart, sample });
    }
    for job in [first, second] {
        world.engine.observe(world.now, Event::JobEnded { job, how: Ending::Completed });
    }
    let steps = world.engine.poll(world.now).into_inner();
    assert!(steps.iter().any(|step| step.job == apart), "{steps:?}");
    let is_silent = |world: &World, at: Instant| {
        world.engine.job(apart).is_some_and(|job| job.progress.silent_since(at).is_some())
    };
    assert!(!is_silent(&world, world.now + minutes(30)), "it is on its way");
    for step in steps {
        world.engine.observe(world.now, Event::StepDone { job: step.job, step: step.id });
    }
    assert!(!is_silent(&world, world.now + minutes(30)), "it has not reported from there yet");
}

#[test]
fn nobody_is_moved_who_cannot_be_or_where_moving_is_not_wanted() {
    let never = Policy { moving: Moving::Never, slowdowns: Slowdowns::Weighed, ..metronome() };
    let wanted = Policy { slowdowns: Slowdowns::Weighed, ..metronome() };
    let long = || sending("apart", 4, minutes(600));
    for (policy, spec) in [(never, movable(long())), (wanted, long())] {
        let (mut world, [first, second]) = crowded(policy);
        let apart = world.submit(spec);
        world.now = world.now + minutes(9);
        let steps: Vec<Step> = [world.ends(first), world.ends(second)].concat();
        let moves_it = |step: &Step| step.job == apart && !matches!(step.action, Action::Direct { .. });
        assert!(!steps.iter().any(moves_it), "{steps:?}");
    }
}

#[test]
fn whatever_comes_and_goes_decisions_come_to_rest() {
    let mut dice = Pcg64::seed_from_u64(3);
    let mut moves = 0;
    for history in 0..600 {
        let slowdowns = if history % 2 == 0 { Slowdowns::WaitedOut } else { Slowdowns::Weighed };
        let mut world = World::new(Policy { slowdowns, ..metronome() });
        let mut there: Vec<JobId> = Vec::new();
        for number in 0..40 {
            world.now = world.now + Duration::from_secs(dice.random_range(1..300));
            if there.is_empty() || dice.random_bool(0.6) {
                let length = Duration::from_secs(dice.random_range(60..20_000));
                let spec = sending(&format!("job-{number}"), dice.random_range(1..=10), length);
                let spec = if dice.random_bool(0.7) { movable(spec) } else { spec };
                there.push(world.submit(spec));
            } else {
                let job = there.swap_remove(dice.random_range(0..there.len()));
                let steps = world.ends(job);
                moves += steps.iter().filter(|step| matches!(step.action, Action::Move { .. })).count();
            }
            let again = decide(&world.engine.snapshot(), world.engine.policy());
            assert!(again.amendment.assignments.is_empty(), "{:?}", again.amendment.assignments);
            assert_eq!(world.engine.state().alarms, 0);
        }
    }
    assert!(moves > 10, "{moves} moves say little");
}

/// Measured models on random stretches of a few links, two to six that meet.
fn flows(dice: &mut Pcg64, rates: &IdVec<LinkId, Bandwidth>) -> Vec<Flow> {
    let known = model::all();
    let count = dice.random_range(2..=6);
    let one = |_| {
        let pattern = Pattern::buckets(&known[dice.random_range(0..known.len())].iteration).unwrap();
        let (from, hops) = (dice.random_range(0..3), dice.random_range(1..=3));
        let links: Vec<(LinkId, f64)> = (from..from + hops).map(|link| (LinkId(link), 1.75)).collect();
        let route = Route::over(&links);
        let alone = alone(&pattern, &route, rates);
        Flow { fingerprint: pattern.fingerprint(), pattern: Arc::new(pattern), route, alone }
    };
    (0..count).map(one).collect()
}

/// What becomes of the flows in five minutes with 1 % noise and random starts.
fn simulated(dice: &mut Pcg64, flows: &[Flow], rates: &IdVec<LinkId, Bandwidth>) -> Vec<f64> {
    let mut network = Network::new(rates, Sharing::default());
    let mut starts: Vec<(u64, usize)> =
        flows.iter().enumerate().map(|(key, flow)| (dice.random_range(0..flow.alone.0), key)).collect();
    starts.sort_unstable();
    for (start, key) in starts {
        let training = Training {
            pattern: flows[key].pattern.clone(),
            route: flows[key].route.clone(),
            iterations: u64::MAX,
            jitter: Noise::Gaussian(Share(10_000)).stream(dice.random()),
            traffic: TrafficPolicy::default(),
        };
        network.start(Instant(start), key, training);
    }
    network.run_until(Instant::START + minutes(5));
    let mut mean = |key: usize| network.result(key).mean.expect("five minutes are many iterations");
    (0..flows.len()).map(|key| mean(key).0 as f64 / flows[key].alone.0 as f64).collect()
}

#[test]
fn predicted_slowdowns_are_those_of_the_simulator() {
    let rates: IdVec<LinkId, Bandwidth> = IdVec::filled(RATE, 6);
    let mut dice = Pcg64::seed_from_u64(7);
    let mut foresight = metronome_core::traffic::slowdown_model::SlowdownModel::default();
    let mut errors: Vec<f64> = Vec::new();
    for _ in 0..200 {
        let flows = flows(&mut dice, &rates);
        let asked: Vec<(&Flow, TrafficPolicy)> =
            flows.iter().map(|flow| (flow, TrafficPolicy::default())).collect();
        let predicted = foresight.slowdowns(&asked, Care::Look, |link| rates[link]);
        let found = simulated(&mut dice, &flows, &rates);
        errors.extend(predicted.iter().zip(&found).map(|(predicted, found)| (predicted / found - 1.0).abs()));
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors[errors.len() * part / 100];
    println!("relative error: p50 {:.4}, p90 {:.4}, p99 {:.4}", at(50), at(90), at(99));
    assert!(at(50) < 0.02 && at(90) < 0.05 && at(99) < 0.15, "{} {} {}", at(50), at(90), at(99));
}

#[test]
fn a_prediction_does_not_depend_on_names_or_on_which_links_are_used() {
    let rates: IdVec<LinkId, Bandwidth> = IdVec::filled(RATE, 20);
    let mut dice = Pcg64::seed_from_u64(11);
    for _ in 0..20 {
        let here = flows(&mut dice, &rates);
        let elsewhere = |flow: &Flow| {
            let links = flow.route.links().iter();
            let links: Vec<(LinkId, f64)> = links.map(|(link, load)| (LinkId(link.0 + 9), *load)).collect();
            Flow { route: Route::over(&links), ..flow.clone() }
        };
        let there: Vec<Flow> = here.iter().map(elsewhere).collect();
        let predict = |flows: &[Flow]| {
            let asked: Vec<(&Flow, TrafficPolicy)> =
                flows.iter().map(|flow| (flow, TrafficPolicy::default())).collect();
            metronome_core::traffic::slowdown_model::SlowdownModel::default().slowdowns(
                &asked,
                Care::Look,
                |link| rates[link],
            )
        };
        assert_eq!(predict(&here), predict(&there));
    }
}
