//! The published ways to divide links, each as its authors describe it: peaks reserved (`exclusive`), cost by topology
//! (`diktyo`), compatible places and shifts by an affinity graph (`cassini`), shifts by priority with cushions
//! (`metronome-paper`).

use std::sync::Arc;

use metronome_core::decide::decide;
use metronome_core::engine::Engine;
use metronome_core::model::id::{Id, IdVec, JobId, LinkId, NodeId};
use metronome_core::model::job::{JobSpec, Life, Priority};
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_core::network::{Jitter, Network, Pattern, Route, Sharing, Training};
use metronome_core::traffic::{TrafficPolicy, Turn, Watch};
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_testkit::build::{gpus, known_job, linked_racks, policy, run, training_scenario};
use metronome_testkit::drive::{Driver, Op};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const RATE: Bandwidth = Bandwidth(100_000_000_000);
const ALL: [&str; 4] = ["exclusive", "diktyo", "cassini", "metronome-paper"];

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// So many racks of two nodes with four GPUs each.
fn driver(racks: u32, name: &str) -> Driver {
    Driver::new(linked_racks(racks, 2, 4, RATE, RATE), policy(name))
}

/// Whole nodes that train a model.
fn spec(name: &str, nodes: u64, model: &str) -> JobSpec {
    known_job(name, nodes, model, 100_000).0
}

/// Submits a job, and lets whatever follows from that happen.
fn submit(driver: &mut Driver, spec: JobSpec) -> JobId {
    let job = driver.submit(spec);
    driver.settle();
    job
}

fn racks_of(driver: &Driver, job: JobId) -> Vec<usize> {
    let Some(Life::Running(place)) = driver.engine.life(job) else { panic!("{job:?} does not run") };
    let mut racks: Vec<usize> = place.nodes().map(|node| node.index() / 2).collect();
    racks.dedup();
    racks
}

fn turn(driver: &Driver, job: JobId) -> Turn {
    driver.engine.state().plan.traffic()[&job].turn.expect("a turn")
}

/// The links that would not carry all at once if everybody sent at its peak.
fn overdrawn(engine: &Engine) -> Vec<LinkId> {
    let snapshot = engine.snapshot();
    let links = snapshot.cluster.fabric.links().ids();
    links.filter(|link| snapshot.contention.peaks_on(*link, &[]) > 1.0 + 1e-9).collect()
}

/// Jobs that come and go at random: gangs of whole nodes, and of parts of nodes.
fn history(name: &str, seed: u64, mut look: impl FnMut(&Driver)) {
    let models = ["vgg16/128", "resnet50/512", "gpt2-medium/32", "dlrm/2048"];
    let mut dice = Pcg64::seed_from_u64(seed);
    let mut driver = driver(4, name);
    for number in 0..40 {
        driver.now = driver.now + Duration::from_secs(dice.random_range(1..300));
        if dice.random_bool(0.6) {
            let model = models[dice.random_range(0..models.len())];
            let mut spec = spec(&format!("job-{number}"), dice.random_range(1..=4), model);
            spec.roles[0].shape.each = gpus(dice.random_range(1..=4));
            spec.priority = Priority(dice.random_range(0..3));
            driver.submit(spec);
        } else {
            driver.apply(&Op::End(dice.random_range(0..8)));
        }
        driver.settle();
        look(&driver);
    }
}

#[test]
fn whatever_comes_and_goes_decisions_come_to_rest() {
    for name in ALL {
        for seed in 0..40 {
            history(name, seed, |driver| {
                let again = decide(&driver.engine.snapshot(), driver.engine.policy());
                assert!(again.amendment.assignments.is_empty(), "{name}: {:?}", again.amendment.assignments);
                assert!(again.amendment.traffic.is_empty(), "{name}: {:?}", again.amendment.traffic);
                assert_eq!(driver.engine.state().alarms, 0, "{name}");
            });
        }
    }
}

#[test]
fn reserved_peaks_never_exceed_a_link() {
    let mut waited = 0;
    for seed in 0..40 {
        history("exclusive", seed, |driver| {
            assert_eq!(overdrawn(&driver.engine), []);
            let jobs = driver.engine.state().jobs.iter();
            let contended = |(job, _): &(JobId, _)| {
                driver.engine.verdict(*job) == Some(Reason::BandwidthContended { patience: None })
            };
            waited += jobs.filter(contended).count();
        });
    }
    assert!(waited > 100, "{waited} say little");
}

#[test]
fn without_reservations_links_are_overdrawn() {
    let mut overdrawn_links = 0;
    history("fair", 1, |driver| overdrawn_links += overdrawn(&driver.engine).len());
    assert!(overdrawn_links > 0);
}

#[test]
fn a_job_whose_peak_is_not_left_waits_until_somebody_leaves() {
    let mut driver = driver(3, "exclusive");
    let first = submit(&mut driver, spec("first", 3, "vgg16/128"));
    let second = submit(&mut driver, spec("second", 3, "resnet50/512"));
    assert_eq!(racks_of(&driver, first), [0, 1]);
    let contended = Some(Reason::BandwidthContended { patience: None });
    assert_eq!(driver.engine.verdict(second), contended, "the free node of rack 1 has no uplink left");
    driver.apply(&Op::End(0));
    driver.settle();
    assert_eq!(racks_of(&driver, second).len(), 2);
}

#[test]
fn members_go_where_the_network_costs_least() {
    let mut driver = driver(3, "diktyo");
    let small = submit(&mut driver, spec("small", 1, "vgg16/128"));
    let wide = submit(&mut driver, spec("wide", 2, "vgg16/128"));
    let last = submit(&mut driver, spec("last", 2, "vgg16/128"));
    assert_eq!(racks_of(&driver, small), [0]);
    assert_eq!(racks_of(&driver, wide), [0, 1], "the first goes where kube-scheduler would put it");
    assert_eq!(racks_of(&driver, last), [1, 2], "nor does anybody look at who is on the links");
    let mut driver = self::driver(3, "diktyo");
    let mut one_gpu = spec("one-gpu", 6, "vgg16/128");
    one_gpu.roles[0].shape.each = gpus(1);
    let together = submit(&mut driver, one_gpu);
    assert_eq!(racks_of(&driver, together), [0], "spread over the nodes, six would be in three racks");
}

#[test]
fn nodes_whose_bandwidth_is_used_up_on_average_are_left_out() {
    let mut driver = driver(1, "diktyo");
    let halves = |name: &str, model: &str| {
        let mut halves = spec(name, 2, model);
        halves.roles[0].shape.each = gpus(3);
        halves
    };
    submit(&mut driver, halves("busy", "gpt3-xl-1.3b/2"));
    let ones = |name: &str, model: &str| {
        let mut ones = spec(name, 2, model);
        ones.roles[0].shape.each = gpus(1);
        ones
    };
    let waits = submit(&mut driver, ones("waits", "vgg16/128"));
    assert_eq!(driver.engine.verdict(waits), Some(Reason::BandwidthContended { patience: None }));
    let light = submit(&mut driver, ones("light", "resnet50/512"));
    assert_eq!(racks_of(&driver, light), [0], "what is left is enough for one that sends little");
}

/// Three racks in each of which one node is free, beside jobs that cross two racks each.
fn crowded(name: &str) -> Driver {
    let mut driver = driver(6, name);
    for (first, model) in [(0, "gpt3-xl-1.3b/8"), (4, "resnet50/512"), (8, "resnet50/512")] {
        driver.apply(&Op::Found(Box::new(spec(&format!("from-{first}"), 3, model)), first));
    }
    driver.settle();
    driver
}

#[test]
fn of_places_equally_near_the_most_compatible_is_taken() {
    let chosen = |name: &str| {
        let mut driver = crowded(name);
        let newcomer = submit(&mut driver, spec("newcomer", 2, "gpt2-medium/8"));
        racks_of(&driver, newcomer)
    };
    assert_eq!(chosen("fair"), [1, 3]);
    assert_eq!(chosen("cassini"), [3, 5]);
    assert_eq!(chosen("metronome-paper"), [3, 5]);
}

/// Two gangs that meet on an uplink, alike in all.
fn two_alike(model: &str) -> Scenario {
    let jobs = [(0, known_job("a", 3, model, 1_000)), (1, known_job("b", 3, model, 1_000))];
    training_scenario(linked_racks(3, 2, 4, RATE, RATE), jobs)
}

fn worst(outcome: &Outcome) -> f64 {
    assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed));
    outcome.jobs.iter().filter_map(|job| job.slowdown).fold(1.0, f64::max)
}

#[test]
fn without_noise_those_that_are_alike_do_not_slow_each_other() {
    let fair = worst(&run(&two_alike("gpt2-medium/32"), policy("fair"), 1));
    assert!(fair > 1.02, "{fair}");
    for model in ["gpt2-medium/32", "vgg16/512", "xlm/128"] {
        for name in ["cassini", "metronome-paper"] {
            let shifted = worst(&run(&two_alike(model), policy(name), 1));
            assert!(shifted < 1.005, "{model} under {name}: {shifted}");
        }
    }
}

#[test]
fn nobody_is_shifted_for_a_lower_priority() {
    let of = |name: &str, priority: i32, model: &str| JobSpec {
        priority: Priority(priority),
        ..spec(name, 3, model)
    };
    let models = ["gpt2-medium/32", "vgg16/512", "bert-base/128", "dlrm/2048"];
    for (high_model, low_model) in models.iter().flat_map(|high| models.map(|low| (*high, low))) {
        let mut driver = driver(3, "metronome-paper");
        let high = submit(&mut driver, of("high", 10, high_model));
        let before = turn(&driver, high);
        let low = submit(&mut driver, of("low", 0, low_model));
        assert!(turn(&driver, high).is_with(before), "{high_model} beside {low_model}");
        assert!(turn(&driver, high).watch.is_some() && before.watch.is_none());
        assert!(driver.engine.state().plan.traffic().contains_key(&low));
    }
}

/// Compute that always takes by so much longer or shorter.
#[derive(Clone, Debug)]
struct Always(f64);

impl Jitter for Always {
    fn draw(&mut self) -> f64 {
        self.0
    }

    fn least(&self) -> f64 {
        self.0.min(1.0)
    }

    fn again(&self) -> Box<dyn Jitter> {
        Box::new(self.clone())
    }
}

/// How long an iteration of 100 ms takes on average that drifts, in milliseconds.
fn mean(factor: f64, watch: Option<Watch>) -> f64 {
    let mut network = Network::new(&IdVec::<LinkId, Bandwidth>::filled(RATE, 1), Sharing::default());
    let turn = Turn { period: ms(100), offset: ms(30), watch };
    let training = Training {
        pattern: Arc::new(Pattern::compute(ms(100)).expect("a loop that takes time")),
        route: Route::nothing(),
        iterations: 10_000,
        jitter: Some(Box::new(Always(factor))),
        traffic: TrafficPolicy { turn: Some(turn), ..TrafficPolicy::default() },
    };
    network.start(Instant::START, 0, training);
    let over = network.run_until(Instant::from_secs(100_000)).expect("it ends");
    over.mean.expect("it has done something").0 as f64 / 1e6
}

#[test]
fn whoever_has_drifted_is_held_again_and_not_too_often() {
    let watch = |pause: u64| Some(Watch { tolerance: ms(5), pause: Duration::from_secs(pause) });
    let close =
        |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.1, "{found} instead of {wanted}");
    close(mean(0.99, None), 99.0);
    close(mean(1.01, None), 101.0);
    // Early by a millisecond each time, it is held for six after six, and does not drift away.
    close(mean(0.99, watch(0)), 100.0);
    // Late by as much, it waits for its next turn after six.
    close(mean(1.01, watch(0)), 101.0 + 94.0 / 6.0);
    // In half a minute it gets ahead by three of its turns, and is held for less than one.
    assert!(mean(0.99, watch(30)) < 99.4, "{}", mean(0.99, watch(30)));
    assert!(mean(1.01, watch(30)) < 101.4, "{}", mean(1.01, watch(30)));
}

#[test]
fn a_place_on_one_node_needs_no_links() {
    for name in ALL {
        let mut driver = driver(1, name);
        let alone = submit(&mut driver, spec("alone", 1, "vgg16/128"));
        assert!(matches!(driver.engine.life(alone), Some(Life::Running(at)) if at.nodes().eq([NodeId(0)])));
        assert!(!driver.engine.state().plan.traffic().contains_key(&alone), "{name}");
    }
}
