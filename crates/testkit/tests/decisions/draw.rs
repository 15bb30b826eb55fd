//! Random histories on clusters with links: racks whose uplinks differ, jobs that train with known periods and bursts,
//! links that change, loops that are measured, nodes that fail or are drained.

use std::sync::Arc;

use metronome_core::engine::{Engine, Settings};
use metronome_core::model::cluster::Keeping;
use metronome_core::model::id::IdVec;
use metronome_core::model::job::{Binding, Checkpointing, Deadline, Gang, JobSpec, OnMiss, Priority};
use metronome_core::model::policy::{Policy, Slowdowns};
use metronome_core::model::profile::{Bucket, Iteration, Phase, Profile, Traffic};
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Bandwidth, Bytes, Duration, Instant, Iterations, Share};
use metronome_testkit::build::{gpu_member, policy, preemptible, racks_with_uplinks};
use metronome_testkit::drive::{Driver, Op};
use proptest::prelude::*;

const NODES_PER_RACK: u32 = 2;
const GPUS_PER_NODE: u64 = 4;
const NODE_RATE: Bandwidth = Bandwidth(100_000_000_000);

const fn gbps(rate: u64) -> Bandwidth {
    Bandwidth(rate * 1_000_000_000)
}

/// The policies that decide about links, or place by them, and three that do not.
const POLICIES: [&str; 13] = [
    "metronome",
    "fair",
    "shift",
    "classes",
    "weighted",
    "cassini",
    "metronome-paper",
    "exclusive",
    "diktyo",
    "volcano",
    "srtf",
    "kubernetes",
    "elasticflow",
];

/// Whether jobs may wait for bandwidth where the policy says so (`Slowdowns::WaitedOut`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BandwidthWaits {
    Allowed,
    /// For comparisons with an engine that is restored from its state. A job that waits for bandwidth can be reported to lack
    /// room. Its class then stays closed until capacity is released, also when the job would no longer wait or others could
    /// make room for it, while a restored engine considers it again and serves it.
    Excluded,
}

/// One policy of the table, `metronome` as often as four others.
fn policies(waits: BandwidthWaits) -> impl Strategy<Value = Policy> {
    let named = prop_oneof![
        1 => Just("metronome"),
        3 => prop::sample::select(&POLICIES[..]),
    ];
    (named, any::<bool>()).prop_map(move |(name, starts_at_once)| {
        let policy = policy(name);
        let would_wait = policy.slowdowns == Slowdowns::WaitedOut;
        if would_wait && (starts_at_once || waits == BandwidthWaits::Excluded) {
            return Policy { slowdowns: Slowdowns::Weighed, ..policy };
        }
        policy
    })
}

/// A cluster, an engine's settings and policy, and what happens.
#[derive(Clone, Debug)]
pub(crate) struct History {
    uplinks: Vec<Bandwidth>,
    keeping: Keeping,
    min_run: Duration,
    policy: Policy,
    pub(crate) ops: Vec<Op>,
}

impl History {
    /// A world in which nothing has happened yet.
    pub(crate) fn driver(&self) -> Driver {
        let mut cluster = racks_with_uplinks(NODES_PER_RACK, GPUS_PER_NODE, NODE_RATE, &self.uplinks);
        cluster.fabric.is_kept(self.keeping);
        // A state record after every poll, so that a journal may begin at each of them.
        let settings = Settings {
            full_check_every: 1,
            state_record_every: 1,
            min_run: self.min_run,
            ..Settings::default()
        };
        let queues = IdVec::from_iter([Queue::open("default")]);
        let policy = self.policy.clone();
        Driver {
            engine: Engine::new(cluster.clone(), queues, policy.clone(), settings),
            ..Driver::new(cluster, policy)
        }
    }
}

/// Some jobs that are submitted and started together, and up to 39 operations after that.
pub(crate) fn histories(waits: BandwidthWaits) -> impl Strategy<Value = History> {
    let rates = prop::sample::select(vec![gbps(25), gbps(50), gbps(100), gbps(400)]);
    let uplinks = prop::collection::vec(rates, 3..5);
    let keeping = prop_oneof![3 => Just(Keeping::Exactly), 1 => Just(Keeping::Roughly)];
    let min_run = prop_oneof![2 => Just(Duration::ZERO), 1 => Just(Duration::MINUTE)];
    let first = prop::collection::vec(jobs(), 3..8);
    let ops = prop::collection::vec(ops(waits), 1..40);
    (uplinks, keeping, min_run, policies(waits), first, ops).prop_map(
        |(uplinks, keeping, min_run, policy, first, ops)| {
            let submit = first.into_iter().map(|spec| Op::Submit(Box::new(spec)));
            let ops = submit.chain([Op::AllStepsSucceed]).chain(ops).collect();
            History { uplinks, keeping, min_run, policy, ops }
        },
    )
}

/// A loop of one of some lengths, some of them multiples of others, that sends in buckets or in phases.
fn profiles() -> impl Strategy<Value = Profile> {
    let compute = prop::sample::select(vec![100u64, 120, 200, 250, 400]);
    let finish = prop::sample::select(vec![0u64, 10]);
    let bursts = prop::collection::vec((0u64..100, 1u64..40), 1..4);
    (compute, finish, bursts, any::<bool>()).prop_map(|(compute, finish, mut bursts, in_phases)| {
        bursts.sort_unstable();
        bursts.dedup_by_key(|(start, _)| *start);
        if in_phases {
            return in_phases_of(compute, &bursts);
        }
        // So many hundredths of the compute time, at the full rate of a node's link.
        let bytes = |hundredths: u64| Bytes(NODE_RATE.0 / 8 / 1000 * compute * hundredths / 100);
        let buckets = bursts.iter().map(|(start, hundredths)| Bucket {
            ready: Duration::from_millis(compute * start / 100),
            bytes: bytes(*hundredths),
        });
        let iteration = Iteration {
            compute: Duration::from_millis(compute),
            buckets: buckets.collect(),
            finish: Duration::from_millis(finish),
        };
        Profile::new(Vec::new(), None).expect("no compute times").reducing(iteration)
    })
}

/// A period with phases that begin at these hundredths of it and end before the next one.
fn in_phases_of(period: u64, bursts: &[(u64, u64)]) -> Profile {
    let starts = bursts.iter().map(|(start, _)| *start);
    let ends = starts.clone().skip(1).chain([100]);
    let phases = starts.zip(ends).zip(bursts).map(|((start, end), (_, hundredths))| Phase {
        offset: Duration(period * 10_000 * start),
        length: Duration(period * 10_000 * (end - start).min(*hundredths)),
        rate: gbps(20 + hundredths),
    });
    let traffic =
        Traffic::new(Duration::from_millis(period), phases.collect()).expect("phases follow each other");
    Profile::new(Vec::new(), Some(traffic)).expect("no compute times")
}

/// Gangs of two to six members of one to four GPUs, most of them with a known loop; some are elastic, have a deadline, can
/// be moved.
fn jobs() -> impl Strategy<Value = JobSpec> {
    let gang = prop_oneof![
        4 => (2u64..7).prop_map(|members| Gang::rigid(members).unwrap()),
        1 => (2u64..5, 1u64..4).prop_map(|(min, more)| Gang::elastic(min, min + more).unwrap()),
    ];
    let gpus = prop::sample::select(vec![1u64, 2, 2, 3, 4]);
    let profile = prop::option::weighted(0.9, profiles());
    let deadline = prop::option::weighted(0.1, (60u64..6000, any::<bool>()));
    (gang, gpus, profile, 200u64..20_000, -1i32..2, 0u8..4, deadline).prop_map(
        |(gang, gpus, profile, iterations, urgency, stays, deadline)| {
            let mut spec = JobSpec::workers("job", gang, gpu_member(gpus));
            spec.work.iterations = Some(Iterations(iterations));
            spec.work.alone = Some(Duration::from_millis(200 * iterations));
            spec.priority = Priority(100 * urgency);
            spec.profile = profile.map(Arc::new);
            spec.deadline = deadline.map(|(at, strict)| {
                let binding = if strict { Binding::Strict } else { Binding::Soft };
                Deadline { at: Instant::from_secs(at), binding, value: 1, on_miss: OnMiss::Run }
            });
            if stays == 0 {
                return spec;
            }
            let (takes, restart) = (Duration::from_secs(5), Duration::from_secs(25));
            JobSpec {
                checkpointing: Some(Checkpointing { every: None, takes, restart }),
                ..preemptible(spec)
            }
        },
    )
}

/// The rates that links change to: often one of those that others have, now and then none.
fn rates() -> impl Strategy<Value = Bandwidth> {
    prop_oneof![
        1 => Just(Bandwidth(0)),
        6 => prop::sample::select(vec![gbps(10), gbps(25), gbps(50), gbps(100), gbps(400)]),
        1 => (1u64..400).prop_map(gbps),
    ]
}

fn ops(waits: BandwidthWaits) -> impl Strategy<Value = Op> {
    let which = || 0usize..16;
    let time = (0u64..120).prop_map(Duration::from_secs);
    let reports = (which(), 0u64..1000, 0.0f64..3.0, 0u64..1000);
    prop_oneof![
        6 => jobs().prop_map(|spec| Op::Submit(Box::new(spec))),
        1 => which().prop_map(Op::Cancel),
        1 => which().prop_map(Op::Suspend),
        1 => which().prop_map(Op::Resume),
        2 => which().prop_map(Op::End),
        6 => which().prop_map(Op::StepSucceeds),
        8 => Just(Op::AllStepsSucceed),
        2 => which().prop_map(Op::StepFails),
        1 => which().prop_map(Op::NodeGoes),
        2 => which().prop_map(Op::NodeComes),
        1 => (which(), prop::option::of(0u64..600)).prop_map(|(node, after)| Op::NodeIsDrained(node, after)),
        1 => (which(), 0u32..4).prop_map(|(node, of)| Op::MemberFails(node, of)),
        6 => time.prop_map(Op::Pass),
        5 => (which(), rates()).prop_map(|(link, rate)| Op::LinkChanges(link, rate)),
        3 => (which(), profiles()).prop_map(|(job, profile)| Op::LoopIsMeasured(job, Box::new(profile))),
        1 => (which(), 0u32..100_000).prop_map(|(job, by)| Op::SlowerThanFair(job, Share(by))),
        1 => (which(), 0usize..4, 0u64..400, 0u64..300)
            .prop_map(|(which, part, millis, over)| Op::MembersTake { which, part, millis, over }),
        2 => reports.prop_map(|(which, iterations, metric, used)| {
            Op::Reports { which, iterations, metric, used, ahead: 0 }
        }),
        1 => policies(waits).prop_map(|policy| Op::PolicyChanges(Box::new(policy))),
    ]
}

/// What happens at one instant, to links, nodes and jobs that are each named at most once.
#[derive(Clone, Debug)]
pub(crate) enum AtOnce {
    LinkChanges(usize, Bandwidth),
    NodeGoes(usize),
    NodeComes(usize),
    LoopIsMeasured(usize, Profile),
    JobEnds(usize),
}

impl AtOnce {
    /// Events about the same link, node or job have equal keys.
    fn key(&self) -> (u8, usize) {
        match self {
            Self::LinkChanges(link, _) => (0, *link),
            Self::NodeGoes(node) | Self::NodeComes(node) => (1, *node),
            Self::LoopIsMeasured(job, _) | Self::JobEnds(job) => (2, *job),
        }
    }
}

/// Two to seven events in one order and in another.
pub(crate) fn two_orders() -> impl Strategy<Value = (Vec<AtOnce>, Vec<AtOnce>)> {
    let event = prop_oneof![
        3 => (0usize..12, rates()).prop_map(|(link, rate)| AtOnce::LinkChanges(link, rate)),
        1 => (0usize..4).prop_map(AtOnce::NodeGoes),
        1 => (0usize..4).prop_map(AtOnce::NodeComes),
        1 => (0usize..6, profiles()).prop_map(|(job, profile)| AtOnce::LoopIsMeasured(job, profile)),
        1 => (0usize..6).prop_map(AtOnce::JobEnds),
    ];
    let distinct = prop::collection::vec(event, 2..8).prop_map(|mut events| {
        events.sort_by_key(AtOnce::key);
        events.dedup_by_key(|event| event.key());
        events
    });
    distinct.prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle()))
}
