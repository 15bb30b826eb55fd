//! Gangs above their least: they take what is to spare, and give it back before anybody is stopped.

use std::sync::Arc;

use metronome_core::decide::decide;
use metronome_core::model::cluster::Level;
use metronome_core::model::id::{IdVec, JobId, QueueId};
use metronome_core::model::job::{
    Binding, Checkpointing, Deadline, Gang, JobSpec, Life, OnMiss, Priority, Teams, Work,
};
use metronome_core::model::plan::{Action, Assignment};
use metronome_core::model::policy::{Policy, Sizing, Slowdowns};
use metronome_core::model::profile::{Bucket, Iteration, Profile};
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Bandwidth, Bytes, Duration, GpuTime, Instant, Iterations, Share};
use metronome_core::observe::scaling::{Scaling, Speed};
use metronome_sim::model::{Model, Pattern, TrainingModel};
use metronome_sim::noise::Noise;
use metronome_sim::outcome::{Fate, Outcome};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::Estimates;
use metronome_testkit::build::{
    gpus, job, linked_racks, model_job, policy, pool, preemptible, racks, run, scenario, training_scenario,
};
use metronome_testkit::drive::{Driver, Op};
use proptest::prelude::*;
use rand::RngExt;
use rand_pcg::Pcg64;

/// Workers of one GPU that may be stopped, moved and rescaled for nothing.
fn elastic(name: &str, min: u64, max: u64, seconds: u64) -> JobSpec {
    let mut spec = JobSpec::workers(name, Gang::elastic(min, max).unwrap(), gpus(1));
    spec.work.alone = Some(Duration::from_secs(seconds));
    preemptible(spec)
}

/// Started and left alone.
fn stays(spec: JobSpec) -> JobSpec {
    JobSpec {
        capabilities: metronome_core::model::job::Capabilities::START_ONLY,
        checkpointing: None,
        ..spec
    }
}

fn costing(spec: JobSpec, takes: u64, restart: u64) -> JobSpec {
    let (takes, restart) = (Duration::from_secs(takes), Duration::from_secs(restart));
    JobSpec { checkpointing: Some(Checkpointing { every: None, takes, restart }), ..spec }
}

fn sized(sizing: Sizing) -> Policy {
    Policy { sizing, ..policy("metronome") }
}

fn members(driver: &Driver, job: JobId) -> u32 {
    driver.engine.plan().get(job).map_or(0, |held| held.members())
}

fn runs(driver: &Driver, job: JobId) -> bool {
    matches!(driver.engine.life(job), Some(Life::Running(_)))
}

fn pass(driver: &mut Driver, seconds: u64) {
    driver.apply(&Op::Pass(Duration::from_secs(seconds)));
    driver.settle();
}

fn end(driver: &mut Driver, job: JobId) {
    use metronome_core::engine::{Ending, Event};
    driver.engine.observe(driver.now, Event::JobEnded { job, how: Ending::Completed });
    driver.settle();
}

#[test]
fn an_elastic_gang_takes_what_is_to_spare_and_gives_it_back_before_anybody_is_stopped() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("metronome"));
    let large = driver.submit(elastic("large", 2, 8, 10_000));
    driver.settle();
    assert_eq!(members(&driver, large), 8, "nobody else is there");
    let newcomer = driver.submit(JobSpec { priority: Priority::LOW, ..stays(job("newcomer", 3, 100)) });
    driver.settle();
    assert!(runs(&driver, newcomer), "an extra does not outrank anybody's least");
    assert_eq!(members(&driver, large), 5, "no more is given back than is needed");
    let stopped = driver.steps.iter().any(|step| matches!(step.action, Action::Preempt { .. }));
    assert!(!stopped, "{:?}", driver.steps);
    end(&mut driver, newcomer);
    assert_eq!(members(&driver, large), 5, "it was changed just before");
    pass(&mut driver, 120);
    assert_eq!(members(&driver, large), 8);
}

#[test]
fn who_loses_least_gives_back_first() {
    let mut driver = Driver::new(racks(1, 4, 4), policy("metronome"));
    let dear = driver.submit(costing(elastic("dear", 2, 8, 10_000), 10, 60));
    let cheap = driver.submit(costing(elastic("cheap", 2, 8, 10_000), 1, 1));
    driver.settle();
    assert_eq!((members(&driver, dear), members(&driver, cheap)), (8, 8));
    let newcomer = driver.submit(stays(job("newcomer", 4, 100)));
    driver.settle();
    assert!(runs(&driver, newcomer));
    assert_eq!((members(&driver, dear), members(&driver, cheap)), (8, 4));
    let another = driver.submit(stays(job("another", 7, 100)));
    driver.settle();
    assert!(runs(&driver, another), "both give back where one is not enough");
    assert_eq!((members(&driver, dear), members(&driver, cheap)), (3, 2));
}

#[test]
fn who_gains_most_grows_most() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("metronome"));
    let short = driver.submit(elastic("short", 2, 8, 100));
    let long = driver.submit(elastic("long", 2, 8, 100_000));
    driver.settle();
    assert_eq!((members(&driver, short), members(&driver, long)), (2, 6));
}

#[test]
fn who_says_how_it_scales_shares_by_what_more_is_worth() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("metronome"));
    let stiff = driver.submit(scaling(elastic("stiff", 1, 8, 10_000), 0.5));
    let supple = driver.submit(scaling(elastic("supple", 1, 8, 10_000), 0.0));
    driver.settle();
    let sizes = (members(&driver, stiff), members(&driver, supple));
    assert_eq!(sizes, (1, 7), "half of the first is done by one");
    let brief = driver.submit(scaling(elastic("brief", 1, 8, 500), 0.0));
    driver.settle();
    assert_eq!(members(&driver, brief), 1, "the others have to rest first");
    pass(&mut driver, 120);
    assert!(members(&driver, brief) >= 4, "it is soon done with it: {}", members(&driver, brief));
    end(&mut driver, brief);
    pass(&mut driver, 240);
    assert_eq!(members(&driver, stiff) + members(&driver, supple), 8, "and then others have it back");
}

#[test]
fn where_nobody_knows_how_long_it_takes_those_grow_that_have_grown_least() {
    let mut driver = Driver::new(racks(1, 3, 4), policy("metronome"));
    let unknown = |spec: JobSpec| JobSpec { work: Default::default(), ..spec };
    let small = driver.submit(unknown(elastic("small", 1, 8, 1)));
    let large = driver.submit(unknown(elastic("large", 3, 12, 1)));
    driver.settle();
    assert_eq!((members(&driver, small), members(&driver, large)), (3, 9));
}

#[test]
fn a_gang_that_runs_grows_only_where_the_time_it_saves_pays_for_the_restart() {
    let grown = |seconds: u64, restart: u64| {
        let mut driver = Driver::new(racks(1, 2, 4), policy("metronome"));
        let filler = driver.submit(stays(job("filler", 4, 1000)));
        driver.settle();
        let gang = driver.submit(costing(elastic("gang", 4, 8, seconds), 0, restart));
        driver.settle();
        pass(&mut driver, 200);
        end(&mut driver, filler);
        members(&driver, gang)
    };
    assert_eq!(grown(1000, 199), 8, "800 s at four are 400 s at eight");
    assert_eq!(grown(1000, 200), 4);
}

#[test]
fn who_cannot_give_back_has_more_only_while_nobody_waits() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("metronome"));
    let first = driver.submit(stays(elastic("first", 2, 5, 100)));
    driver.settle();
    assert_eq!(members(&driver, first), 5);
    let wide = driver.submit(stays(job("wide", 8, 100)));
    let second = driver.submit(stays(elastic("second", 1, 3, 100)));
    driver.settle();
    assert_eq!((members(&driver, wide), members(&driver, second)), (0, 1));
    assert_eq!(members(&driver, first), 5, "it keeps what it has");
}

#[test]
fn nothing_is_to_spare_while_somebody_waits_who_may_use_it() {
    let mut driver = Driver::new(racks(1, 2, 4), policy("metronome"));
    let filler = driver.submit(stays(job("filler", 4, 1000)));
    driver.settle();
    let wide = driver.submit(stays(job("wide", 8, 100)));
    let gang = driver.submit(elastic("gang", 2, 8, 10_000));
    driver.settle();
    assert_eq!((members(&driver, wide), members(&driver, gang)), (0, 2));
    end(&mut driver, wide);
    pass(&mut driver, 120);
    assert_eq!(members(&driver, gang), 4);
    end(&mut driver, filler);
    pass(&mut driver, 120);
    assert_eq!(members(&driver, gang), 8);
}

#[test]
fn members_in_groups_come_and_go_by_whole_groups() {
    let mut driver = Driver::new(racks(1, 3, 4), policy("metronome"));
    let mut spec = elastic("gang", 2, 12, 10_000);
    let size = std::num::NonZeroU32::new(2).unwrap();
    spec.teams = Some(Teams { size, within: Level(1) });
    let gang = driver.submit(spec);
    driver.settle();
    assert_eq!(members(&driver, gang), 12);
    let newcomer = driver.submit(stays(job("newcomer", 3, 100)));
    driver.settle();
    assert!(runs(&driver, newcomer));
    assert_eq!(members(&driver, gang), 8, "one more than needed goes with its group");
    assert_eq!(driver.engine.state().alarms, 0);
}

/// `default`, and `bounded`, which may hold eight GPUs.
fn queues() -> IdVec<QueueId, Queue> {
    let bounded = Queue { quota: Some(gpus(8)), borrows: false, ..Queue::open("bounded") };
    IdVec::from_iter([Queue::open("default"), bounded])
}

#[test]
fn extras_count_against_the_quota_and_are_given_back_for_it() {
    let mut driver = Driver::sharing(racks(1, 4, 4), policy("metronome"), queues());
    let bounded = |spec: JobSpec| JobSpec { queue: QueueId(1), ..spec };
    let gang = driver.submit(bounded(elastic("gang", 2, 16, 10_000)));
    driver.settle();
    assert_eq!(members(&driver, gang), 8, "its queue may hold no more");
    let newcomer = driver.submit(bounded(stays(job("newcomer", 5, 100))));
    driver.settle();
    assert!(runs(&driver, newcomer), "there is room enough, but no quota beside the extras");
    assert_eq!(members(&driver, gang), 3);
    let hopeful = driver.submit(bounded(stays(job("hopeful", 2, 100))));
    driver.settle();
    assert!(!runs(&driver, hopeful), "with one given back its queue would hold nine");
    assert_eq!(members(&driver, gang), 3, "nothing is given back in vain");
}

#[test]
fn a_queue_beyond_its_own_gives_back_first() {
    let own = |name: &str, count: u64| Queue { quota: Some(gpus(count)), ..Queue::open(name) };
    let queues = IdVec::from_iter([Queue::open("default"), own("rich", 12), own("poor", 2)]);
    let mut driver = Driver::sharing(racks(1, 4, 4), policy("metronome"), queues);
    let of = |queue: u32, spec: JobSpec| JobSpec { queue: QueueId(queue), ..spec };
    let rich = driver.submit(of(1, costing(elastic("rich", 2, 8, 10_000), 1, 1)));
    let poor = driver.submit(of(2, costing(elastic("poor", 2, 8, 10_000), 10, 60)));
    driver.settle();
    assert_eq!((members(&driver, rich), members(&driver, poor)), (8, 8));
    let newcomer = driver.submit(of(1, stays(job("newcomer", 2, 100))));
    driver.settle();
    assert!(runs(&driver, newcomer));
    assert_eq!((members(&driver, rich), members(&driver, poor)), (8, 6), "though it loses more");
}

#[test]
fn policies_that_give_the_least_give_no_more() {
    for name in Policy::names().filter(|name| policy(name).sizing == Sizing::Least) {
        let outcome = run(&scenario(pool(8), [(0, elastic("gang", 2, 8, 100))]), policy(name), 1);
        assert_eq!(outcome.jobs[0].end, Some(Instant::from_secs(100)), "{name}");
    }
}

#[test]
fn alone_on_the_cluster_an_elastic_job_ends_as_much_earlier_as_it_is_larger() {
    let outcome = run(&scenario(pool(8), [(0, elastic("gang", 2, 8, 1000))]), policy("metronome"), 1);
    assert_eq!(outcome.jobs[0].end, Some(Instant::from_secs(250)));
    assert_eq!(outcome.gpu_busy, GpuTime::gpu_seconds(2000));
    assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0));
}

#[test]
fn a_job_that_grows_on_its_way_pays_for_one_restart() {
    let jobs = [(0, stays(job("filler", 4, 300))), (0, costing(elastic("gang", 2, 8, 1000), 5, 5))];
    let outcome = run(&scenario(pool(8), jobs), policy("metronome"), 1);
    // 600 of its 1000 s are done when the filler ends; saving and restarting takes 10 s, and the rest 100 s at eight.
    assert_eq!(outcome.jobs[1].end, Some(Instant::from_secs(410)), "{:?}", outcome.jobs[1]);
    assert_eq!(outcome.jobs[1].resizes, 1);
    assert_eq!(outcome.gpu_busy, GpuTime::gpu_seconds(1200 + 1200 + 800));
    assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0));
}

#[test]
fn a_loop_of_more_members_needs_fewer_iterations() {
    let ends = |sizing: Sizing| {
        let (mut spec, model) = model_job("gang", 2, 1, "resnet50/512", 400);
        spec.roles[0].gang = Gang::elastic(2, 8).unwrap();
        let outcome = run(&training_scenario(pool(8), [(0, (spec, model))]), sized(sizing), 1);
        outcome.jobs[0].end.expect("it ends").since(Instant::START)
    };
    assert_eq!(ends(Sizing::Spare).times(4), ends(Sizing::Least));
}

/// What every link carries where jobs send.
const LINK: Bandwidth = Bandwidth(10_000_000_000);

/// Jobs that compute for a tenth of a second and then send to each other for so many milliseconds if they are on two nodes;
/// for so many seconds, alone and at their least.
fn sending(name: &str, gang: Gang, each: u64, sends: u64, seconds: u64) -> (JobSpec, TrainingModel) {
    let compute = Duration::from_millis(100);
    let bytes = Bytes(LINK.0 / 8 / 1000 * sends);
    let iteration =
        Iteration { compute, buckets: vec![Bucket { ready: compute, bytes }], finish: Duration::ZERO };
    let once = if gang.is_elastic() { compute } else { compute + Duration::from_millis(sends) };
    let iterations = Duration::from_secs(seconds).0 / once.0;
    let mut spec = preemptible(JobSpec::workers(name, gang, gpus(each)));
    spec.work =
        Work { alone: Some(once.times(iterations)), iterations: Some(Iterations(iterations)), ..spec.work };
    spec.profile = Some(Arc::new(Profile::new(Vec::new(), None).unwrap().reducing(iteration.clone())));
    let pattern = Pattern::Gradients(Arc::new(Model { name: name.into(), iteration }));
    (spec, TrainingModel { pattern, iterations, noise: Noise::None })
}

/// A gang that has a node to itself could have two GPUs more, one on each of two nodes between which another job sends. For
/// how many milliseconds each of them sends after a tenth of a second, the gang if it is not on one node.
fn beside_a_sender(gang: u64, sender: u64, change: impl Fn(JobSpec) -> JobSpec) -> Scenario {
    let cluster = linked_racks(1, 3, 4, LINK, LINK);
    let sender = sending("sender", Gang::rigid(2).unwrap(), 3, sender, 2000);
    let (gang, model) = sending("gang", Gang::elastic(4, 6).unwrap(), 1, gang, 600);
    training_scenario(cluster, [(0, sender), (1, (change(gang), model))])
}

/// The nodes that the gang was on at last, and how long both took, over their time alone at their least.
fn nodes_and_time(scenario: &Scenario, policy: Policy) -> (u32, f64) {
    let outcome = run(scenario, policy, 1);
    assert_eq!((outcome.alarms, &outcome.violations), (0, &Vec::new()), "{:?}", outcome.last_alarm);
    let gang = outcome.jobs.iter().find(|job| &*job.name == "gang").unwrap();
    let took = outcome.jobs.iter().map(|job| job.end.expect("it ends").since(job.submit).as_secs_f64());
    let alone = outcome.jobs.iter().map(|job| job.alone.as_secs_f64());
    (gang.nodes, took.sum::<f64>() / alone.sum::<f64>())
}

#[test]
fn a_gang_grows_over_links_only_where_all_lose_less_than_it_gains() {
    let scaling = Arc::new(Scaling::with_serial_part(4..=6, Share::NONE));
    let due = |spec: JobSpec| {
        let at = Instant::from_secs(3600);
        let deadline = Deadline { at, binding: Binding::Soft, value: 1, on_miss: OnMiss::Run };
        JobSpec { deadline: Some(deadline), ..spec }
    };
    let ways: [(&str, &dyn Fn(JobSpec) -> JobSpec); 3] = [
        ("in proportion", &|spec| spec),
        ("by a table", &|spec| JobSpec { scaling: Some(scaling.clone()), ..spec }),
        ("by a deadline", &due),
    ];
    let blind = Policy { slowdowns: Slowdowns::Unseen, ..sized(Sizing::Spare) };
    for (way, change) in ways {
        let (quiet, busy) = (beside_a_sender(20, 2, change), beside_a_sender(30, 200, change));
        let (nodes, time) = nodes_and_time(&quiet, sized(Sizing::Spare));
        assert_eq!(nodes, 3, "{way}");
        assert!(time < 0.98, "{way}: {time}");
        let (nodes, time) = nodes_and_time(&busy, sized(Sizing::Spare));
        assert_eq!(nodes, 1, "{way}");
        let (spread, longer) = nodes_and_time(&busy, blind.clone());
        assert_eq!(spread, 3, "{way}");
        assert!(time < longer, "{way}: {time} instead of {longer}");
    }
}

/// Jobs that come one after the other, half of them elastic.
fn workload(seed: u64) -> Vec<(u64, JobSpec)> {
    let mut chance = Pcg64::new(u128::from(seed), 7);
    let mut at = 0;
    (0..80)
        .map(|index| {
            at += chance.random_range(0..100);
            let (name, seconds) = (format!("job-{index}"), chance.random_range(60..1200));
            let size = chance.random_range(1..5);
            let spec = match index % 2 {
                0 => elastic(&name, size, size * chance.random_range(2..5), seconds),
                _ => job(&name, size, seconds),
            };
            (at, costing(spec, 5, 15))
        })
        .collect()
}

fn mean_jct(outcome: &Outcome) -> f64 {
    assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed));
    assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0), "{:?}", outcome.violations);
    let jcts = outcome.jobs.iter().filter_map(|job| Some(job.end?.since(job.submit).as_secs_f64()));
    jcts.sum::<f64>() / outcome.jobs.len() as f64
}

#[test]
fn jobs_are_done_earlier_where_what_is_to_spare_is_given_away() {
    for seed in 0..8 {
        let history = scenario(racks(2, 4, 4), workload(seed));
        let [least, spare] =
            [Sizing::Least, Sizing::Spare].map(|sizing| mean_jct(&run(&history, sized(sizing), seed)));
        println!("seed {seed}: {least:.0} s at the least, {spare:.0} s with what is to spare");
        assert!(spare < least, "seed {seed}: {spare} against {least}");
    }
}

/// Every size from the least on, each worth less than the one before: a part of the work that one member does alone.
fn scaling(spec: JobSpec, serial: f64) -> JobSpec {
    let (min, max) = (spec.roles[0].gang.min(), spec.roles[0].gang.max());
    let time = |members: u32| serial + (1.0 - serial) / f64::from(members);
    let speed = |members: u32| (members, Speed((time(min) / time(members) * 1e6).round() as u64));
    let scaling = Scaling::new((min..=max).map(speed).collect()).expect("more members are faster");
    JobSpec { scaling: Some(Arc::new(scaling)), ..spec }
}

/// Long jobs of which it is misjudged by up to a half what more members are worth; they may tell how many iterations they
/// have done.
fn misjudged(seed: u64, iterations: Option<Iterations>) -> Scenario {
    let mut chance = Pcg64::new(u128::from(seed), 8);
    let mut at = 0;
    let jobs = (0..16).map(|index| {
        at += chance.random_range(0..1500);
        let spec = elastic(&format!("job-{index}"), 1, 16, chance.random_range(5_000..40_000));
        let mut spec = costing(scaling(spec, chance.random_range(1..40) as f64 / 100.0), 5, 15);
        spec.work.iterations = iterations;
        (at, spec)
    });
    let mut scenario = scenario(racks(2, 2, 8), jobs.collect::<Vec<_>>());
    scenario.estimates = Estimates::Scaling { error: Share(500_000) };
    scenario
}

#[test]
fn who_does_not_scale_as_was_said_is_sized_by_what_is_measured() {
    let mean = |iterations| -> f64 {
        let one = |seed| mean_jct(&run(&misjudged(seed, iterations), sized(Sizing::Spare), seed));
        (0..20).map(one).sum::<f64>() / 20.0
    };
    let (blind, measured) = (mean(None), mean(Some(Iterations(1_000_000))));
    println!("mean completion: {blind:.0} s as said, {measured:.0} s as measured");
    assert!(measured < blind, "{measured} instead of {blind}");
}

/// Whether elastic ones say how they scale.
#[derive(Clone, Copy, Debug)]
enum Curves {
    Unsaid,
    SomeSaid,
}

fn jobs(curves: Curves) -> impl Strategy<Value = JobSpec> {
    let serial = match curves {
        Curves::Unsaid => Just(None).boxed(),
        Curves::SomeSaid => prop::option::of(0.0..0.3f64).boxed(),
    };
    let gang = prop_oneof![
        2 => (1u64..7).prop_map(|members| Gang::rigid(members).unwrap()),
        3 => (1u64..5, 1u64..9).prop_map(|(min, more)| Gang::elastic(min, min + more).unwrap()),
    ];
    let costs = (0u64..10, 0u64..30);
    (gang, 1u64..2000, -1i32..2, costs, any::<bool>(), any::<bool>(), serial).prop_map(
        |(gang, seconds, urgency, (takes, restart), only_starts, is_known, serial)| {
            let mut spec = JobSpec::workers("job", gang, gpus(1));
            spec.work.alone = is_known.then(|| Duration::from_secs(seconds));
            spec.priority = Priority(urgency * 100);
            let spec = costing(preemptible(spec), takes, restart);
            let spec = if only_starts { stays(spec) } else { spec };
            match serial.filter(|_| gang.is_elastic()) {
                Some(serial) => scaling(spec, serial),
                None => spec,
            }
        },
    )
}

/// Half an hour after all this, in which nobody came or went, with the steps that were taken in it.
fn left_alone_after(ops: &[Op]) -> Driver {
    let mut driver = Driver::new(racks(2, 2, 4), policy("metronome"));
    for op in ops {
        driver.apply(op);
        driver.settle();
    }
    driver.steps.clear();
    (0..60).for_each(|_| pass(&mut driver, 30));
    driver
}

/// Nothing goes wrong: jobs come and end, and time passes.
fn fair_weather(curves: Curves) -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => jobs(curves).prop_map(|spec| Op::Submit(Box::new(spec))),
        2 => (0usize..8).prop_map(Op::End),
        3 => (0u64..150).prop_map(|seconds| Op::Pass(Duration::from_secs(seconds))),
    ]
}

fn weather() -> impl Strategy<Value = Op> {
    let which = 0usize..8;
    prop_oneof![
        8 => fair_weather(Curves::SomeSaid),
        4 => which.clone().prop_map(Op::StepSucceeds),
        1 => which.clone().prop_map(Op::StepFails),
        1 => which.clone().prop_map(Op::NodeGoes),
        1 => which.prop_map(Op::NodeComes),
    ]
}

fn is_within_its_bounds(spec: &JobSpec, held: &Assignment) -> bool {
    (spec.roles[0].gang.min()..=spec.roles[0].gang.max()).contains(&held.members())
}

/// GPUs that nobody is planned on, and such as could be given back; members have one each.
fn free_and_to_be_had(driver: &Driver) -> (u64, u64) {
    let state = driver.engine.state();
    let all: u64 = state.cluster.nodes().values().map(|node| node.capacity.gpus.0 / 1000).sum();
    let planned: u64 = state.plan.iter().map(|(_, held)| u64::from(held.members())).sum();
    let extra = |(id, held): (JobId, &std::sync::Arc<Assignment>)| {
        let job = &state.jobs[id];
        let gives = job.spec.capabilities.rescale && job.life == Life::Running(held.clone());
        if gives { u64::from(held.members() - job.spec.members()) } else { 0 }
    };
    (all - planned, state.plan.iter().map(extra).sum())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits_while_extras_that_can_be_given_back_would_make_room(
        ops in prop::collection::vec(fair_weather(Curves::SomeSaid), 1..40)
    ) {
        let mut driver = Driver::new(racks(2, 2, 4), policy("metronome"));
        for op in &ops {
            driver.apply(op);
            driver.settle();
            let (free, extras) = free_and_to_be_had(&driver);
            let state = driver.engine.state();
            if !state.plan.reservations().is_empty() {
                continue;
            }
            for (_, job) in state.jobs.iter().filter(|(_, job)| job.life.is_waiting()) {
                prop_assert!(u64::from(job.spec.members()) > free + extras, "{:?} beside {}", job, extras);
            }
        }
    }

    #[test]
    fn no_gang_is_ever_below_its_least_or_above_its_most_and_deciding_again_changes_nothing(
        ops in prop::collection::vec(weather(), 1..60)
    ) {
        let mut driver = Driver::new(racks(2, 2, 4), policy("metronome"));
        for op in &ops {
            driver.apply(op);
            driver.poll();
            let state = driver.engine.state();
            prop_assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
            for (_, job) in state.jobs.iter() {
                prop_assert!(job.life.holds().iter().all(|held| is_within_its_bounds(&job.spec, held)));
            }
            let again = decide(&driver.engine.snapshot(), driver.engine.policy());
            prop_assert_eq!(again.amendment.assignments.len(), 0, "{:?}", again.amendment);
        }
    }

    #[test]
    fn while_nobody_comes_or_goes_gangs_come_to_rest(
        ops in prop::collection::vec(fair_weather(Curves::Unsaid), 1..40)
    ) {
        let driver = left_alone_after(&ops);
        let mut resized: Vec<JobId> = Vec::new();
        for step in &driver.steps {
            if let Action::Rescale { from, to } = &step.action {
                prop_assert!(to.covers(from), "nobody came for whom it should give back: {:?}", step);
                resized.push(step.job);
            }
        }
        let times = resized.len();
        resized.sort_unstable();
        resized.dedup();
        prop_assert_eq!(times, resized.len(), "nobody grows twice into the same room");
    }

    #[test]
    fn those_who_share_by_what_it_is_worth_come_to_rest_too(
        ops in prop::collection::vec(fair_weather(Curves::SomeSaid), 1..40)
    ) {
        let driver = left_alone_after(&ops);
        let resized = driver.steps.iter().filter(|step| matches!(step.action, Action::Rescale { .. })).count();
        let running = driver.engine.state().plan.len();
        prop_assert!(resized <= 4 * running, "{resized} changes of {running} in half an hour");
    }
}
