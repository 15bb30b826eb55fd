//! No event, amendment or step list panics the engine, whatever ids and amounts it names.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Ending, Engine, Event, Settings};
use crate::deadlines::{Booking, BookingSegment, DeadlineEntry, DeadlineVerdict};
use crate::model::cluster::{Cluster, Level, NodeSpec};

use crate::model::id::{
    BudgetId, CounterId, DeviceId, GroupId, IdVec, JobId, LinkId, NodeId, NodeSetId, PartitionId, QueueId,
};
use crate::model::job::{Gang, JobSpec, Priority, Teams, Topology};
use crate::model::plan::{Amendment, Assignment, Generation, Part, Reservation, StepId};
use crate::model::policy::Policy;
use crate::model::queue::Queue;
use crate::model::report::Failure;
use crate::model::units::{Bandwidth, Duration, Gpus, Instant, Iterations, Resources, Share};
use crate::observe::progress::Sample;
use crate::traffic::TrafficPolicy;

const NONE: u32 = 1_000_000;

fn each() -> Resources {
    Resources { gpus: Gpus::whole(1), ..Resources::NONE }
}

fn workers(members: u64) -> JobSpec {
    JobSpec::workers("job", Gang::rigid(members).unwrap(), each())
}

/// Two nodes of four GPUs with a job that runs on the first and one that waits.
fn engine() -> (Engine, JobId, JobId) {
    let capacity = Resources { gpus: Gpus::whole(4), ..Resources::NONE };
    let mut cluster = Cluster::new(&[]).unwrap();
    for name in ["one", "other"] {
        cluster.add_node(&NodeSpec { name: name.into(), capacity, ..NodeSpec::default() }).unwrap();
    }
    let policy = Policy::named("metronome").unwrap();
    let mut engine =
        Engine::new(cluster, IdVec::filled(Queue::open("default"), 1), policy, Settings::default());
    let runs = engine.submit(Instant::START, Arc::new(workers(4)));
    for step in engine.poll(Instant::START).into_inner() {
        engine.observe(Instant::START, Event::StepDone { job: step.job, step: step.id });
    }
    let waits = engine.submit(Instant::START, Arc::new(workers(8)));
    (engine, runs, waits)
}

fn on(members: u32, node: NodeId, role: u8) -> Option<Arc<Assignment>> {
    let mut spec = workers(u64::from(members));
    let roles = usize::from(role) + 1;
    spec.roles = vec![spec.roles[0].clone(); roles];
    let parts = (0..=role).map(|role| Part::of(role, node, members)).collect();
    Some(Arc::new(Assignment::whole(&spec, parts).unwrap()))
}

/// Specifications that name what there is not.
fn strange_specs() -> Vec<JobSpec> {
    let with = |change: &dyn Fn(&mut JobSpec)| {
        let mut spec = workers(2);
        change(&mut spec);
        spec
    };
    vec![
        with(&|spec| spec.queue = QueueId(NONE)),
        with(&|spec| spec.roles[0].shape.on.set = Some(NodeSetId(NONE))),
        with(&|spec| spec.roles[0].shape.counters = Arc::from([(CounterId(NONE), 1)])),
        with(&|spec| spec.roles[0].shape.groups = Arc::from([GroupId(NONE)])),
        with(&|spec| spec.budgets = vec![BudgetId(NONE)]),
        with(&|spec| spec.topology = Topology::Required(Level(200))),
        with(&|spec| spec.teams = Some(Teams { size: 2.try_into().unwrap(), within: Level(200) })),
        with(&|spec| spec.roles.clear()),
        with(&|spec| spec.work.alone = Some(Duration(u64::MAX))),
        with(&|spec| spec.priority = Priority(i32::MIN)),
        with(&|spec| spec.roles[0].shape.each.gpus = Gpus(u64::MAX)),
    ]
}

fn strange_events(runs: JobId, waits: JobId) -> Vec<Event> {
    let (nowhere, nobody, node) = (NodeId(NONE), JobId(NONE), NodeId(0));
    let sample =
        Sample { at: Instant(u64::MAX), iterations: Iterations(u64::MAX), loss: Some(f64::NAN), used: None };
    let mut events = Vec::new();
    for spec in strange_specs().into_iter().map(Arc::new) {
        events.push(Event::JobSubmitted(spec.clone()));
        events.push(Event::JobChanged { job: waits, spec: spec.clone() });
        events.push(Event::JobChanged { job: runs, spec: spec.clone() });
        let parts = vec![Part::of(0, NodeId(1), 2)];
        events.push(Event::JobFound { spec, parts, since: Instant(u64::MAX) });
    }
    for job in [runs, waits, nobody] {
        events.extend([
            Event::MembersLeft {
                job,
                role: 200,
                node: nowhere,
                device: Some(DeviceId(NONE)),
                members: u32::MAX,
            },
            Event::StepDone { job, step: StepId(u64::MAX) },
            Event::StepFailed { job, step: StepId(0), failure: Failure::Other },
            Event::Worked { job, executed: Duration(u64::MAX) },
            Event::Progress { job, sample },
            Event::MemberTook { job, role: 200, node: nowhere, iteration: Duration::ZERO },
            Event::MemberTook { job, role: 0, node, iteration: Duration::ZERO },
            Event::SlowerThanFair { job, by: Share(u32::MAX) },
            Event::Group {
                group: GroupId(0),
                partition: PartitionId(0),
                others: vec![(nowhere, u32::MAX)],
                members: vec![(job, 200)],
            },
            Event::JobSuspended(job),
            Event::JobResumed(job),
            Event::JobEnded { job, how: Ending::Failed },
            Event::JobCancelled(job),
        ]);
    }
    let strange_node =
        NodeSpec { name: "strange".into(), domains: vec!["a".into(); 9], ..NodeSpec::default() };
    events.extend([
        Event::JobFound {
            spec: Arc::new(workers(2)),
            parts: vec![Part::of(9, nowhere, 2)],
            since: Instant::START,
        },
        Event::NodeAdded(strange_node.clone()),
        Event::NodeChanged { node: nowhere, spec: strange_node.clone() },
        Event::NodeChanged { node, spec: strange_node },
        Event::NodeLost(nowhere),
        Event::NodeBack(nowhere),
        Event::NodeCordoned(nowhere),
        Event::NodeDrained { node: nowhere, until: Some(Instant(u64::MAX)) },
        Event::MemberFailed { node: nowhere, of: "job".into() },
        Event::LinkChanged { link: LinkId(NONE), rate: Bandwidth(0) },
        Event::CounterAdded { name: "counter".into(), each: u64::MAX },
        Event::NodeSet { set: NodeSetId(NONE), nodes: vec![nowhere] },
        Event::NodeSet { set: NodeSetId(0), nodes: vec![nowhere] },
        Event::NodeSetChanged { set: NodeSetId(NONE), node, allowed: true },
        Event::NodeSetChanged { set: NodeSetId(0), node: nowhere, allowed: true },
        Event::Partition { partition: PartitionId(0), domains: vec![(nowhere, NONE)] },
        Event::PartitionChanged { partition: PartitionId(NONE), node, domain: None },
        Event::PartitionChanged { partition: PartitionId(0), node: nowhere, domain: Some(0) },
        Event::Group { group: GroupId(0), partition: PartitionId(NONE), others: vec![], members: vec![] },
        Event::OthersChanged { group: GroupId(NONE), node, count: 1 },
        Event::OthersChanged { group: GroupId(0), node: nowhere, count: 1 },
        Event::Queue { queue: QueueId(NONE), described: Queue::open("far") },
        Event::Queue {
            queue: QueueId(0),
            described: Queue { parent: Some(QueueId(0)), ..Queue::open("loop") },
        },
        Event::Budget { budget: BudgetId(NONE), allowed: 1 },
    ]);
    events
}

#[test]
fn no_event_panics_the_engine_and_other_jobs_go_on() {
    let mut panicked = Vec::new();
    let (_, runs, waits) = engine();
    for event in strange_events(runs, waits) {
        let what = format!("{event:?}");
        let took = catch_unwind(AssertUnwindSafe(|| {
            let (mut engine, ..) = engine();
            engine.observe(Instant::from_secs(1), event);
            let other = engine.submit(Instant::from_secs(2), Arc::new(workers(1)));
            (2..40).for_each(|second| drop(engine.poll(Instant::from_secs(second))));
            engine.job(other).is_some_and(|job| !job.life.is_waiting())
        }));
        if took.is_err() {
            panicked.push(what);
        }
    }
    assert!(panicked.is_empty(), "{panicked:#?}");
}

fn strange_amendments(runs: JobId, waits: JobId) -> Vec<Amendment> {
    let (nowhere, nobody) = (NodeId(NONE), JobId(NONE));
    let of = |job, to| Amendment { assignments: BTreeMap::from([(job, to)]), ..Amendment::default() };
    let segment = BookingSegment { from: Instant(u64::MAX - 1), to: Instant(u64::MAX), members: u32::MAX };
    let entry = |node| DeadlineEntry {
        verdict: DeadlineVerdict::Promised,
        booking: Some(Booking { segments: vec![segment, segment], ends: Instant::START }),
        node,
        since: Instant(u64::MAX),
        handover: Duration(u64::MAX),
    };
    let reservation =
        |job| Reservation { job, from: Instant::START, spare: BTreeMap::from([(nowhere, each())]) };
    let class = TrafficPolicy { class: u8::MAX, ..TrafficPolicy::default() };
    vec![
        of(nobody, on(4, NodeId(1), 0)),
        of(waits, on(8, nowhere, 0)),
        of(waits, on(8, NodeId(1), 3)),
        of(runs, on(4, nowhere, 9)),
        Amendment { traffic: BTreeMap::from([(nobody, class), (runs, class)]), ..Amendment::default() },
        Amendment { slowdowns: BTreeMap::from([(nobody, Some(Share(0)))]), ..Amendment::default() },
        Amendment { reservations: Some(vec![reservation(waits)]), ..Amendment::default() },
        Amendment { reservations: Some(vec![reservation(nobody)]), ..Amendment::default() },
        Amendment { bookings: BTreeMap::from([(waits, Some(entry(Some(nowhere))))]), ..Amendment::default() },
        Amendment { bookings: BTreeMap::from([(nobody, Some(entry(None)))]), ..Amendment::default() },
    ]
}

#[test]
fn the_checker_refuses_amendments_that_name_what_does_not_exist() {
    let (engine, runs, waits) = engine();
    let generation = Generation(engine.plan().generation().0 + 1);
    for amendment in strange_amendments(runs, waits) {
        let what = format!("{amendment:?}");
        assert!(engine.check(Amendment { generation, ..amendment }).is_err(), "{what}");
    }
}

/// A plan that no checker has passed, as a damaged record would have it.
#[test]
fn a_damaged_plan_raises_alarms_and_the_engine_goes_on_with_other_jobs() {
    let (engine, _, waits) = engine();
    for damaged in [on(4, NodeId(1), 0), on(2, NodeId(1), 1)] {
        let mut state = engine.state().clone();
        state.plan.set(waits, damaged);
        let mut engine = Engine::restore(state);
        let other = engine.submit(Instant::from_secs(1), Arc::new(workers(1)));
        let started = (1..200)
            .any(|second| engine.poll(Instant::from_secs(second)).iter().any(|step| step.job == other));
        assert!(started, "{:?}", engine.state().last_alarm);
        assert!(engine.state().alarms > 0);
    }
}
