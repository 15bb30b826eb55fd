//! Truths about every decision, over random sequences of events.

use std::num::NonZeroU32;

use metronome_core::check::{occupied, occupied_shares};
use metronome_core::decide::decide;
use metronome_core::engine::{Engine, State};
use metronome_core::model::cluster::Level;
use metronome_core::model::id::{IdVec, QueueId};
use metronome_core::model::job::{
    Binding, Deadline, Gang, JobSpec, Life, OnMiss, Priority, Role, RoleKind, Target, Teams, Topology,
};
use metronome_core::model::policy::{Order, Parts, Policy, Weights};
use metronome_core::model::queue::{Queue, QueueUser};
use metronome_core::model::units::{Cpu, Duration, Gpus, Instant, Iterations, Resources, Share};
use metronome_testkit::build::{gpu_member, gpus, policy, preemptible, racks, share};
use metronome_testkit::drive::{Driver, Op};
use proptest::prelude::*;

/// All that there are. Where waiting counts, it does so within minutes for some, so that room comes to be kept.
fn policies() -> impl Strategy<Value = Policy> {
    let named = prop::sample::select(Policy::names().collect::<Vec<_>>()).prop_map(policy);
    (named, any::<bool>()).prop_map(|(mut policy, hurried)| {
        if let (Order::Weighted(weights), true) = (&mut policy.order, hurried) {
            let fifth = Share(200_000);
            let parts = Parts { user: fifth, task: fifth, wait: fifth, width: fifth, brevity: fifth };
            *weights = Weights::new(parts, Duration::MINUTE).unwrap();
        }
        policy
    })
}

/// `default`; `lab` with a quota that it lends; `closed` with one that it keeps; `wide` with two inside.
fn queues() -> IdVec<QueueId, Queue> {
    let inside = |name: &str, weight: u32| Queue { parent: Some(QueueId(3)), weight, ..Queue::open(name) };
    let users = vec![QueueUser { name: "ann".into(), priority: Share::WHOLE, limit: Some(gpu_member(6)) }];
    let lab = Queue { quota: Some(gpu_member(8)), users, ..Queue::open("lab") };
    let closed = Queue { quota: Some(gpu_member(4)), lends: false, borrows: false, ..Queue::open("closed") };
    let wide = Queue { weight: 2, limit: Some(gpu_member(20)), ..Queue::open("wide") };
    [Queue::open("default"), lab, closed, wide, inside("wide-1", 1), inside("wide-2", 3)]
        .into_iter()
        .collect()
}

const FOR_JOBS: [u32; 5] = [0, 1, 2, 4, 5];

fn jobs() -> impl Strategy<Value = JobSpec> {
    let shape = prop_oneof![
        (1u64..5).prop_map(gpus),
        (1u64..5).prop_map(gpu_member),
        (1u64..20).prop_map(|twentieths| share(50 * twentieths)),
        (1u64..25).prop_map(|cores| Resources { cpu: Cpu::cores(cores), ..Resources::NONE }),
    ];
    let gang = prop_oneof![
        (1u64..6).prop_map(|members| Gang::rigid(members).unwrap()),
        (1u64..4, 0u64..4).prop_map(|(min, more)| Gang::elastic(min, min + more).unwrap()),
    ];
    let topology = prop_oneof![
        4 => Just(Topology::Anywhere),
        1 => Just(Topology::Preferred(Level(0))),
        1 => (0u8..2).prop_map(|level| Topology::Required(Level(level))),
    ];
    let place = (prop::sample::select(&FOR_JOBS[..]), any::<bool>());
    (shape, gang, topology, 1u64..500, -1i32..2, 0u32..3, any::<bool>(), any::<bool>(), place).prop_map(
        |(each, gang, topology, seconds, urgency, user, servers, stays, (queue, named))| {
            let mut spec = JobSpec::workers("job", gang, each);
            spec.queue = QueueId(queue);
            spec.owner = named.then(|| "ann".into());
            spec.work.alone = Some(Duration::from_secs(seconds));
            spec.topology = topology;
            spec.priority = Priority(urgency * 100);
            spec.user = Share(user * 500_000);
            // Some stand in pairs: on a node, or in a rack where those with servers do.
            if spec.roles[0].gang.min().is_multiple_of(2) && stays {
                let within = Level(u8::from(!servers));
                spec.teams = Some(Teams { size: NonZeroU32::new(2).unwrap(), within });
            }
            if servers {
                let mut server: Role = spec.roles[0].clone();
                server.kind = RoleKind::Ps;
                server.gang = Gang::rigid(1).unwrap();
                server.shape.each = gpu_member(0);
                server.shape.each.cpu = metronome_core::model::units::Cpu::cores(2);
                spec.roles.insert(0, server);
            }
            // Some are to be done by then: a while after the beginning, when others have come.
            if seconds.is_multiple_of(3) {
                let binding = if seconds.is_multiple_of(2) { Binding::Strict } else { Binding::Soft };
                let at = Instant::from_secs(seconds * 4);
                let on_miss = [OnMiss::Run, OnMiss::Suspend, OnMiss::Fail][seconds as usize / 3 % 3];
                spec.deadline = Some(Deadline { at, binding, value: 1, on_miss });
            }
            // Some say how many iterations they have, and what their metric is to be.
            if seconds.is_multiple_of(5) {
                spec.work.cpu = Some(Cpu::cores(1 + seconds / 40));
                spec.work.iterations = (seconds % 2 == 0).then_some(Iterations(seconds * 2));
                spec.work.target = (seconds % 3 > 0).then_some(Target::AtMost(0.1));
            }
            if stays { spec } else { preemptible(spec) }
        },
    )
}

/// Also inside itself, or in one that there is not: then nothing happens.
fn changed_queues() -> impl Strategy<Value = Op> {
    let amount = || prop::option::of((0u64..20).prop_map(gpu_member));
    let amounts = (amount(), amount(), amount(), amount());
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    (0u32..9, prop::option::of(0u32..9), 0u32..4, amounts, flags).prop_map(
        |(queue, parent, weight, (quota, limit, kept, of_ann), (lends, borrows, gives_back))| {
            let users = of_ann.map(|limit| QueueUser {
                name: "ann".into(),
                priority: Share::NONE,
                limit: Some(limit),
            });
            let described = Queue {
                parent: parent.map(QueueId),
                weight,
                quota,
                limit,
                kept,
                lends,
                borrows,
                gives_back,
                users: users.into_iter().collect(),
                ..Queue::open("changed")
            };
            Op::QueueChanges(queue, Box::new(described))
        },
    )
}

/// Processes that ask for a core and use several; some can be moved.
fn learners() -> impl Strategy<Value = JobSpec> {
    (1u64..9, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(uses, counted, aimed, stays)| {
        let each = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
        let mut spec = JobSpec::workers("learner", Gang::rigid(1).unwrap(), each);
        spec.work.cpu = Some(Cpu::cores(uses));
        spec.work.iterations = counted.then_some(Iterations(900));
        spec.work.target = aimed.then_some(Target::AtMost(0.1));
        if stays { spec } else { preemptible(spec) }
    })
}

fn lessons() -> impl Strategy<Value = Op> {
    let which = 0usize..8;
    prop_oneof![
        4 => learners().prop_map(|spec| Op::Submit(Box::new(spec))),
        1 => which.clone().prop_map(Op::End),
        6 => which.clone().prop_map(Op::StepSucceeds),
        1 => which.clone().prop_map(Op::StepFails),
        1 => which.clone().prop_map(Op::NodeGoes),
        1 => which.prop_map(Op::NodeComes),
        4 => (0u64..30).prop_map(|seconds| Op::Pass(Duration::from_secs(seconds))),
        12 => reports(),
    ]
}

/// What makes sense, and what does not: numbers that are none, iterations that go back, clocks that run ahead.
fn reports() -> impl Strategy<Value = Op> {
    let metric = prop_oneof![
        8 => 0.0f64..3.0,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => -1e300f64..1e300,
    ];
    (0usize..8, 0u64..1000, metric, 0u64..1000, prop_oneof![9 => Just(0u64), 1 => 0u64..1_000_000]).prop_map(
        |(which, iterations, metric, used, ahead)| Op::Reports { which, iterations, metric, used, ahead },
    )
}

/// Nodes and members that are not well.
fn troubles() -> impl Strategy<Value = Op> {
    let which = 0usize..8;
    prop_oneof![
        2 => (which.clone(), 0u32..4).prop_map(|(node, of)| Op::MemberFails(node, of)),
        1 => (which.clone(), prop::option::of(0u64..600)).prop_map(|(node, after)| Op::NodeIsDrained(node, after)),
        3 => (which, 0usize..4, 0u64..400, 0u64..300)
            .prop_map(|(which, part, millis, over)| Op::MembersTake { which, part, millis, over }),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let which = 0usize..8;
    prop_oneof![
        6 => jobs().prop_map(|spec| Op::Submit(Box::new(spec))),
        1 => which.clone().prop_map(Op::Cancel),
        1 => which.clone().prop_map(Op::Suspend),
        1 => which.clone().prop_map(Op::Resume),
        4 => which.clone().prop_map(Op::End),
        8 => which.clone().prop_map(Op::StepSucceeds),
        2 => which.clone().prop_map(Op::StepFails),
        1 => which.clone().prop_map(Op::NodeGoes),
        2 => which.prop_map(Op::NodeComes),
        4 => (0u64..120).prop_map(|seconds| Op::Pass(Duration::from_secs(seconds))),
        1 => changed_queues(),
        6 => reports(),
        3 => troubles(),
    ]
}

fn driver(policy: Policy) -> Driver {
    Driver::sharing(racks(2, 3, 4), policy, queues())
}

/// An engine that knows the same and has everything still to find out.
fn restored(engine: &Engine) -> Engine {
    let text = serde_json::to_string(engine.state()).unwrap();
    Engine::restore(serde_json::from_str::<State>(&text).unwrap())
}

/// `METRONOME_CASES` asks for a longer search.
fn cases() -> u32 {
    std::env::var("METRONOME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_plan_passes_the_check_and_the_books_are_right(
        policy in policies(), ops in prop::collection::vec(ops(), 1..80)
    ) {
        let mut driver = driver(policy);
        for op in &ops {
            driver.apply(op);
            driver.poll();
            let state = driver.engine.state();
            prop_assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
            let used = occupied(state.cluster.nodes().len(), state.jobs.iter().map(|(_, job)| job));
            for (node, used) in used.iter() {
                prop_assert!(used.fits_in(state.cluster.node(node).capacity));
            }
            for (node, device, taken) in occupied_shares(state.jobs.iter().map(|(_, job)| job)) {
                prop_assert!(taken <= Gpus::ONE, "{:?} of {:?} on {:?}", taken, device, node);
            }
        }
    }

    #[test]
    fn deciding_again_on_what_was_decided_changes_nothing(
        policy in policies(), ops in prop::collection::vec(ops(), 1..60)
    ) {
        let mut driver = driver(policy);
        for op in &ops {
            driver.apply(op);
            let cycles = driver.engine.state().cycles;
            driver.poll();
            let again = decide(&driver.engine.snapshot(), driver.engine.policy());
            prop_assert_eq!(again.amendment.assignments.len(), 0, "{:?}", again.amendment);
            prop_assert!(again.amendment.traffic.is_empty(), "{:?}", again.amendment.traffic);
            // Weights follow reports, which are looked at when the next decision is due.
            if driver.engine.state().cycles > cycles {
                prop_assert!(again.amendment.weights.is_empty(), "{:?}", again.amendment.weights);
            }
        }
    }

    #[test]
    fn deciding_again_about_those_who_share_cores_changes_nothing(
        policy in policies(), ops in prop::collection::vec(lessons(), 1..100)
    ) {
        let mut driver = driver(policy);
        for op in &ops {
            driver.apply(op);
            let cycles = driver.engine.state().cycles;
            driver.poll();
            let state = driver.engine.state();
            prop_assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
            let again = decide(&driver.engine.snapshot(), driver.engine.policy());
            prop_assert_eq!(again.amendment.assignments.len(), 0, "{:?}", again.amendment);
            if state.cycles > cycles {
                prop_assert!(again.amendment.weights.is_empty(), "{:?}", again.amendment.weights);
            }
        }
    }

    #[test]
    fn looking_only_at_what_changed_decides_as_looking_at_everything(
        policy in policies(), ops in prop::collection::vec(ops(), 1..60)
    ) {
        let mut driver = driver(policy);
        for op in &ops {
            driver.apply(op);
            let warm = decide(&driver.engine.snapshot(), driver.engine.policy());
            let cold_engine = restored(&driver.engine);
            let cold = decide(&cold_engine.snapshot(), cold_engine.policy());
            prop_assert_eq!(warm.amendment, cold.amendment);
            prop_assert_eq!(warm.report.standings, cold.report.standings);
            driver.poll();
        }
    }

    #[test]
    fn the_order_in_which_one_instant_is_heard_does_not_matter(
        policy in policies(),
        before in prop::collection::vec(ops(), 1..60),
        nodes in Just(vec![0usize, 1, 2, 3, 4, 5]).prop_shuffle(),
        gone in prop::collection::vec(any::<bool>(), 6),
    ) {
        let decided = |order: &[usize]| {
            let mut driver = driver(policy.clone());
            for op in &before {
                driver.apply(op);
                driver.poll();
            }
            for node in order {
                driver.apply(&if gone[*node] { Op::NodeGoes(*node) } else { Op::NodeComes(*node) });
            }
            decide(&driver.engine.snapshot(), driver.engine.policy()).amendment
        };
        prop_assert_eq!(decided(&[0, 1, 2, 3, 4, 5]), decided(&nodes));
    }

    #[test]
    fn in_order_of_submission_nobody_starts_before_those_ahead(
        specs in prop::collection::vec(jobs(), 2..20), ends in prop::collection::vec(0usize..8, 40)
    ) {
        let mut driver = driver(policy("fifo"));
        prop_assert_eq!(&driver.engine.policy().order, &Order::Fifo);
        let ids: Vec<_> = specs.into_iter().map(|spec| driver.submit(spec)).collect();
        let mut started = Vec::new();
        for end in ends {
            driver.settle();
            for id in &ids {
                if matches!(driver.engine.life(*id), Some(Life::Running(_))) && !started.contains(id) {
                    started.push(*id);
                }
            }
            driver.apply(&Op::End(end));
        }
        let mut in_order = started.clone();
        in_order.sort();
        prop_assert_eq!(&started, &in_order);
        prop_assert!(driver.engine.state().jobs.is_empty(), "everybody was served in the end");
    }
}
