//! The checker says no: one wrong plan for each rule, made by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::check::{TrafficFault, Violation};
use metronome_core::deadlines::{Booking, BookingSegment, DeadlineEntry, DeadlineVerdict};
use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::model::cluster::Level;
use metronome_core::model::cpu_weight::CpuWeight;
use metronome_core::model::id::{DeviceId, IdVec, JobId, NodeId, NodeSetId, QueueId};
use metronome_core::model::job::{Capabilities, Deadline, Gang, JobSpec, Topology};
use metronome_core::model::plan::{Amendment, Assignment, Generation, Part, Reservation};
use metronome_core::model::queue::Queue;
use metronome_core::model::report::Failure;
use metronome_core::model::units::{Duration, Instant, Share};
use metronome_core::traffic::{Pace, Rotation, Slot, TrafficPolicy, Turn, Watch};
use metronome_testkit::build::{engine, gpus, job, policy, racks, share};
use metronome_testkit::drive::Driver;

const NOW: Instant = Instant::START;

/// So many members on each of these nodes.
fn on(spec: &JobSpec, nodes: &[(u32, u32)]) -> Arc<Assignment> {
    let part = |(node, members): &(u32, u32)| Part::of(0, NodeId(*node), *members);
    Arc::new(Assignment::whole(spec, nodes.iter().map(part).collect()).expect("a whole gang"))
}

fn change(job: JobId, to: Option<Arc<Assignment>>) -> Amendment {
    Amendment::of_assignments(Generation(9), BTreeMap::from([(job, to)]))
}

/// Two racks of two nodes of four GPUs, with one job waiting.
fn waiting(spec: &JobSpec) -> (Engine, JobId) {
    let mut engine = engine(racks(2, 2, 4), policy("volcano"));
    let job = engine.submit(NOW, Arc::new(spec.clone()));
    (engine, job)
}

#[test]
fn a_right_plan_passes() {
    let spec = job("a", 6, 10);
    let (engine, id) = waiting(&spec);
    assert!(engine.check(change(id, Some(on(&spec, &[(0, 4), (1, 2)])))).is_ok());
}

#[test]
fn a_gang_is_never_split() {
    let spec = job("a", 6, 10);
    assert!(Assignment::whole(&spec, vec![Part::of(0, NodeId(0), 4)]).is_err());
    // An assignment that was whole for another job is not for this one.
    let (engine, id) = waiting(&spec);
    let half = on(&job("b", 4, 10), &[(0, 4)]);
    assert_eq!(engine.check(change(id, Some(half))), Err(Violation::SplitGang(id, 0)));
}

#[test]
fn a_node_never_holds_more_than_it_has() {
    let spec = job("a", 6, 10);
    let (engine, id) = waiting(&spec);
    let crowded = on(&spec, &[(0, 5), (1, 1)]);
    assert_eq!(engine.check(change(id, Some(crowded))), Err(Violation::Oversubscribed(NodeId(0))));
}

/// Members with so many thousandths of a GPU each, on these devices of the first node.
fn on_devices(spec: &JobSpec, devices: &[(u32, u32)]) -> Arc<Assignment> {
    let part = |(device, members): &(u32, u32)| Part {
        device: Some(DeviceId(*device)),
        ..Part::of(0, NodeId(0), *members)
    };
    Arc::new(Assignment::whole(spec, devices.iter().map(part).collect()).expect("a whole gang"))
}

fn sharing(members: u64, thousandths: u64) -> JobSpec {
    JobSpec::workers("shares", Gang::rigid(members).unwrap(), share(thousandths))
}

#[test]
fn a_device_never_holds_more_than_it_has() {
    let spec = sharing(3, 400);
    let (engine, id) = waiting(&spec);
    assert!(engine.check(change(id, Some(on_devices(&spec, &[(0, 2), (3, 1)])))).is_ok());
    let crowded = Err(Violation::Oversubscribed(NodeId(0)));
    assert_eq!(engine.check(change(id, Some(on_devices(&spec, &[(0, 3)])))), crowded);
    let apart = sharing(5, 400);
    let (engine, id) = waiting(&apart);
    let each = on_devices(&apart, &[(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(engine.check(change(id, Some(each))), crowded, "there is no fifth device");
}

#[test]
fn whole_gpus_are_devices_that_nobody_shares() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("volcano"));
    driver.submit(sharing(1, 100));
    driver.settle();
    let (three, four) = (job("three", 3, 10), job("four", 4, 10));
    let id = driver.submit(three.clone());
    assert!(driver.engine.check(change(id, Some(on(&three, &[(0, 3)])))).is_ok());
    let id = driver.submit(four.clone());
    let all = driver.engine.check(change(id, Some(on(&four, &[(0, 4)]))));
    assert_eq!(all, Err(Violation::Oversubscribed(NodeId(0))));
    // Shares that fit by their sum, but not beside three devices that are taken whole.
    driver.settle();
    let spec = sharing(2, 450);
    let id = driver.submit(spec.clone());
    assert!(driver.engine.check(change(id, Some(on_devices(&spec, &[(0, 2)])))).is_ok());
    let apart = driver.engine.check(change(id, Some(on_devices(&spec, &[(0, 1), (1, 1)]))));
    assert_eq!(apart, Err(Violation::Oversubscribed(NodeId(0))));
}

#[test]
fn a_share_names_its_device_and_nobody_else_does() {
    let (whole, half) = (job("a", 2, 10), sharing(2, 500));
    assert!(Assignment::whole(&half, vec![Part::of(0, NodeId(0), 2)]).is_err());
    let named = Part { device: Some(DeviceId(0)), ..Part::of(0, NodeId(0), 2) };
    assert!(Assignment::whole(&whole, vec![named]).is_err());
    assert!(Assignment::whole(&sharing(1, 1500), vec![Part::of(0, NodeId(0), 1)]).is_err());
    // An assignment that lay on devices for another job does not for this one.
    let (engine, id) = waiting(&half);
    let astray = Err(Violation::NotOnDevices(id, NodeId(0)));
    assert_eq!(engine.check(change(id, Some(on(&whole, &[(0, 2)])))), astray);
    let (engine, id) = waiting(&whole);
    let astray = Err(Violation::NotOnDevices(id, NodeId(0)));
    assert_eq!(engine.check(change(id, Some(on_devices(&half, &[(0, 2)])))), astray);
}

#[test]
fn what_others_hold_counts() {
    let mut driver = Driver::new(racks(2, 2, 4), policy("volcano"));
    driver.submit(job("first", 3, 10));
    driver.settle();
    let held = driver.engine.plan().get(JobId(0)).unwrap().nodes().next().unwrap();
    let spec = job("second", 2, 10);
    let id = driver.submit(spec.clone());
    let beside = on(&spec, &[(held.0, 2)]);
    assert_eq!(driver.engine.check(change(id, Some(beside))), Err(Violation::Oversubscribed(held)));
}

#[test]
fn nobody_is_placed_on_a_node_that_is_gone() {
    let spec = job("a", 2, 10);
    let (mut engine, id) = waiting(&spec);
    engine.observe(NOW, Event::NodeLost(NodeId(1)));
    let lost = on(&spec, &[(1, 2)]);
    assert_eq!(engine.check(change(id, Some(lost))), Err(Violation::NotEligible(id, NodeId(1))));
}

#[test]
fn a_member_runs_only_where_it_may() {
    let mut spec = job("a", 2, 10);
    spec.roles[0].shape.on.set = Some(NodeSetId(0));
    let mut engine = engine(racks(2, 2, 4), policy("volcano"));
    engine.add_node_set(NOW, vec![NodeId(2)]);
    let id = engine.submit(NOW, Arc::new(spec.clone()));
    assert!(engine.check(change(id, Some(on(&spec, &[(2, 2)])))).is_ok());
    let elsewhere = on(&spec, &[(0, 2)]);
    assert_eq!(engine.check(change(id, Some(elsewhere))), Err(Violation::NotEligible(id, NodeId(0))));
}

#[test]
fn a_suspended_job_gets_nothing() {
    let spec = job("a", 2, 10);
    let (mut engine, id) = waiting(&spec);
    engine.observe(NOW, Event::JobSuspended(id));
    assert_eq!(engine.check(change(id, Some(on(&spec, &[(0, 2)])))), Err(Violation::NotToRun(id)));
}

#[test]
fn a_job_that_cannot_be_stopped_is_left_alone() {
    let mut driver = Driver::new(racks(2, 2, 4), policy("volcano"));
    let mut spec = job("a", 2, 10);
    spec.capabilities = Capabilities::START_ONLY;
    let id = driver.submit(spec);
    driver.settle();
    assert_eq!(driver.engine.check(change(id, None)), Err(Violation::NotToBeDisturbed(id)));
}

#[test]
fn a_required_level_is_kept() {
    let mut spec = job("a", 6, 10);
    spec.topology = Topology::Required(Level(0));
    let (engine, id) = waiting(&spec);
    assert!(engine.check(change(id, Some(on(&spec, &[(0, 3), (1, 3)])))).is_ok());
    let apart = on(&spec, &[(0, 3), (2, 3)]);
    assert_eq!(engine.check(change(id, Some(apart))), Err(Violation::TopologyBroken(id)));
}

#[test]
fn a_queue_that_does_not_borrow_keeps_to_its_quota() {
    let mut queue = Queue::open("small");
    queue.quota = Some(gpus(4));
    queue.borrows = false;
    let mut engine =
        Engine::new(racks(2, 2, 4), IdVec::from_iter([queue]), policy("volcano"), Settings::default());
    let spec = JobSpec::workers("a", Gang::elastic(1, 8).unwrap(), gpus(1));
    let id = engine.submit(NOW, Arc::new(spec.clone()));
    assert!(engine.check(change(id, Some(on(&spec, &[(0, 4)])))).is_ok());
    let beyond = on(&spec, &[(0, 4), (1, 1)]);
    assert_eq!(engine.check(change(id, Some(beyond))), Err(Violation::QuotaExceeded(QueueId(0))));
}

/// Two racks of two nodes of four GPUs with a job that runs, and a second one that waits.
fn one_runs_and_one_waits() -> (Engine, JobId, JobId) {
    let mut driver = Driver::new(racks(2, 2, 4), policy("volcano"));
    let runs = driver.submit(job("runs", 4, 10));
    driver.settle();
    let waits = driver.submit(job("waits", 16, 10));
    (driver.engine, runs, waits)
}

/// The checker's verdict on an amendment of a later generation.
fn checked(engine: &Engine, amendment: Amendment) -> Result<(), Violation> {
    let generation = Generation(engine.plan().generation().0 + 1);
    engine.check(Amendment { generation, ..amendment }).map(drop)
}

fn traffic(of: JobId, policy: TrafficPolicy) -> Amendment {
    Amendment { traffic: BTreeMap::from([(of, policy)]), ..Amendment::default() }
}

#[test]
fn a_traffic_policy_is_of_a_job_that_runs() {
    let (engine, runs, waits) = one_runs_and_one_waits();
    let behind = TrafficPolicy { class: 1, ..TrafficPolicy::default() };
    let of = |job, policy| checked(&engine, traffic(job, policy));
    assert_eq!(of(runs, behind), Ok(()));
    assert_eq!(of(waits, behind), Err(Violation::DirectiveWithoutRunningJob(waits)));
    assert_eq!(of(JobId(99), behind), Err(Violation::DirectiveWithoutRunningJob(JobId(99))));
    assert_eq!(of(waits, TrafficPolicy::default()), Ok(()), "to withdraw one is always right");
    let stopped = Amendment { assignments: BTreeMap::from([(runs, None)]), ..traffic(runs, behind) };
    assert_eq!(checked(&engine, stopped), Err(Violation::DirectiveWithoutRunningJob(runs)));
}

#[test]
fn a_traffic_policy_has_classes_weights_offsets_and_windows_that_exist() {
    let (engine, runs, _) = one_runs_and_one_waits();
    let turn = |offset| Turn { period: Duration(100), offset: Duration(offset), watch: None };
    let watch = Some(Watch { tolerance: Duration(1), pause: Duration(1) });
    let without_period = Turn { period: Duration(0), offset: Duration(0), watch };
    let rotation = |window, class| {
        let mut slots = [Slot::FAIR; Rotation::WINDOWS];
        slots[7] = Slot::in_class(class);
        Some(Rotation { window: Duration(window), slots })
    };
    let fair = TrafficPolicy::default();
    let pace = |offset| Some(Pace { turn: turn(offset), holds_by_itself: None });
    let cases = [
        (TrafficPolicy { class: 8, ..fair }, TrafficFault::Class(8)),
        (TrafficPolicy { rotation: rotation(10, 8), ..fair }, TrafficFault::Class(8)),
        (TrafficPolicy { weight: 0, ..fair }, TrafficFault::Weight(0)),
        (TrafficPolicy { weight: 65_537, ..fair }, TrafficFault::Weight(65_537)),
        (TrafficPolicy { turn: Some(turn(100)), ..fair }, TrafficFault::Offset),
        (TrafficPolicy { pace: pace(100), ..fair }, TrafficFault::Offset),
        (TrafficPolicy { turn: Some(without_period), ..fair }, TrafficFault::Offset),
        (TrafficPolicy { rotation: rotation(0, 7), ..fair }, TrafficFault::Window),
    ];
    let of = |policy| checked(&engine, traffic(runs, policy));
    for (policy, fault) in cases {
        assert_eq!(of(policy), Err(Violation::Traffic(runs, fault)));
    }
    let last = TrafficPolicy {
        class: 7,
        weight: 65_536,
        turn: Some(turn(99)),
        pace: pace(99),
        rotation: rotation(1, 7),
        ..fair
    };
    assert_eq!(of(last), Ok(()));
}

#[test]
fn a_cpu_weight_is_of_a_job_that_runs_and_in_the_range_of_the_kernel() {
    let (engine, runs, waits) = one_runs_and_one_waits();
    let weight = |number: u32| serde_json::from_value::<CpuWeight>(number.into()).unwrap();
    let of = |job, number| {
        let weights = BTreeMap::from([(job, weight(number))]);
        checked(&engine, Amendment { weights, ..Amendment::default() })
    };
    assert_eq!((of(runs, 1), of(runs, 10_000)), (Ok(()), Ok(())));
    assert_eq!(of(runs, 0), Err(Violation::CpuWeight(runs)));
    assert_eq!(of(runs, 10_001), Err(Violation::CpuWeight(runs)));
    assert_eq!(of(waits, 200), Err(Violation::DirectiveWithoutRunningJob(waits)));
}

#[test]
fn a_reservation_is_of_a_job_that_waits_on_nodes_that_there_are() {
    let (engine, runs, waits) = one_runs_and_one_waits();
    let of = |job, node, spare| {
        let reservation = Reservation {
            job,
            from: Instant::from_secs(60),
            spare: BTreeMap::from([(NodeId(node), gpus(spare))]),
        };
        checked(&engine, Amendment { reservations: Some(vec![reservation]), ..Amendment::default() })
    };
    assert_eq!(of(waits, 3, 4), Ok(()));
    assert_eq!(of(runs, 3, 4), Err(Violation::ReservationWithoutWaitingJob(runs)));
    assert_eq!(of(JobId(99), 3, 4), Err(Violation::ReservationWithoutWaitingJob(JobId(99))));
    assert_eq!(of(waits, 4, 0), Err(Violation::ReservedBeyond(waits, NodeId(4))), "there is no fifth node");
    assert_eq!(of(waits, 3, 5), Err(Violation::ReservedBeyond(waits, NodeId(3))));
}

#[test]
fn generations_never_fall_and_rise_with_every_change_for_worlds() {
    let (engine, runs, _) = one_runs_and_one_waits();
    let older = Amendment { generation: Generation(0), ..Amendment::default() };
    assert!(engine.plan().generation() > older.generation);
    assert_eq!(engine.check(older), Err(Violation::GenerationFalls));
    let behind = TrafficPolicy { class: 1, ..TrafficPolicy::default() };
    let same = Amendment { generation: engine.plan().generation(), ..traffic(runs, behind) };
    assert_eq!(engine.check(same), Err(Violation::GenerationStays));
    let nothing = Amendment { generation: engine.plan().generation(), ..Amendment::default() };
    assert!(engine.check(nothing).is_ok());
}

#[test]
fn a_job_of_the_highest_priority_is_predicted_to_be_no_slower_than_under_fair_sharing() {
    let (engine, runs, waits) = one_runs_and_one_waits();
    let of = |job, millionths| {
        let slowdowns = BTreeMap::from([(job, Some(Share(millionths)))]);
        checked(&engine, Amendment { slowdowns, ..Amendment::default() })
    };
    assert_eq!((of(runs, 800_000), of(runs, 1_010_000)), (Ok(()), Ok(())));
    assert_eq!(of(runs, 1_010_001), Err(Violation::SlowerThanFair(runs)));
    assert_eq!(of(waits, 1_000_000), Err(Violation::DirectiveWithoutRunningJob(waits)));
}

/// Two nodes of four GPUs, a set of the first of them, and jobs with deadlines that wait: of six GPUs anywhere, of three in the
/// set, and of three in the set.
fn with_deadlines() -> (Engine, [JobId; 3]) {
    let mut engine = engine(racks(1, 2, 4), policy("metronome"));
    let set = engine.add_node_set(NOW, vec![NodeId(0)]);
    let deadline = Some(Deadline::soft(Instant::from_secs(3_600)));
    let ids = [(6, None), (3, Some(set)), (3, Some(set))].map(|(members, set)| {
        let mut spec = JobSpec { deadline, ..job("due", members, 600) };
        spec.roles[0].shape.on.set = set;
        engine.submit(NOW, Arc::new(spec))
    });
    (engine, ids)
}

fn bookings(of: &[(JobId, Option<DeadlineEntry>)]) -> Amendment {
    Amendment { bookings: of.iter().cloned().collect(), ..Amendment::default() }
}

fn booked(from: u64, to: u64, members: u32) -> Option<DeadlineEntry> {
    let segment = BookingSegment { from: Instant::from_secs(from), to: Instant::from_secs(to), members };
    let booking = Booking { segments: vec![segment], ends: Instant::from_secs(to) };
    Some(DeadlineEntry {
        verdict: DeadlineVerdict::Planned,
        booking: Some(booking),
        node: None,
        since: NOW,
        handover: Duration::ZERO,
    })
}

#[test]
fn no_pool_is_booked_beyond_its_capacity_at_any_time() {
    let (mut engine, [wide, one, other]) = with_deadlines();
    let of = |engine: &Engine, all: &[(JobId, Option<DeadlineEntry>)]| checked(engine, bookings(all));
    let at_once = [(wide, booked(0, 600, 6)), (one, booked(599, 1_200, 3))];
    let in_turn = [(wide, booked(0, 600, 6)), (one, booked(600, 1_200, 3))];
    assert_eq!(of(&engine, &in_turn), Ok(()));
    let more_than_the_cluster = Err(Violation::Overbooked(one, Instant::from_secs(599)));
    assert_eq!(of(&engine, &at_once), more_than_the_cluster, "nine of eight GPUs");
    let in_the_set = [(one, booked(0, 600, 3)), (other, booked(300, 900, 3))];
    let more_than_the_set = Err(Violation::Overbooked(other, Instant::from_secs(300)));
    assert_eq!(
        of(&engine, &in_the_set),
        more_than_the_set,
        "six of four GPUs of the set, and of eight in all"
    );
    // A booking outlives a node that is lost for a while, within what that node has.
    engine.observe(NOW, Event::NodeLost(NodeId(0)));
    assert_eq!(of(&engine, &[(one, booked(0, 600, 3))]), Ok(()));
    assert_eq!(of(&engine, &in_the_set), more_than_the_set);
}

#[test]
fn a_booking_is_of_a_job_with_a_deadline_and_its_segments_follow_each_other() {
    let (mut engine, [wide, ..]) = with_deadlines();
    let without = engine.submit(NOW, Arc::new(job("without", 1, 10)));
    let of = |job, entry| checked(&engine, bookings(&[(job, entry)]));
    assert_eq!(of(JobId(99), booked(0, 1, 1)), Err(Violation::BookingWithoutJob(JobId(99))));
    assert_eq!(of(JobId(99), None), Ok(()), "to cancel one is always right");
    assert_eq!(of(without, booked(0, 1, 1)), Err(Violation::BookingBroken(without)));
    assert_eq!(of(wide, booked(5, 5, 6)), Err(Violation::BookingBroken(wide)));
    let mut twice = booked(0, 600, 6).unwrap();
    twice.booking.as_mut().unwrap().segments.extend(booked(500, 700, 6).unwrap().booking.unwrap().segments);
    assert_eq!(of(wide, Some(twice)), Err(Violation::BookingBroken(wide)));
    let elsewhere = DeadlineEntry { node: Some(NodeId(2)), ..booked(0, 600, 6).unwrap() };
    assert_eq!(of(wide, Some(elsewhere)), Err(Violation::BookingBroken(wide)));
}

#[test]
fn a_job_with_a_booking_has_no_reservation() {
    let (engine, [wide, ..]) = with_deadlines();
    let reservation = Reservation { job: wide, from: Instant::from_secs(60), spare: BTreeMap::new() };
    let reserved = |entry| {
        let reservations = Some(vec![reservation.clone()]);
        checked(&engine, Amendment { reservations, ..bookings(&[(wide, entry)]) })
    };
    assert_eq!(reserved(booked(0, 600, 6)), Err(Violation::ReservedAndBooked(wide)));
    let pending =
        DeadlineEntry { verdict: DeadlineVerdict::Pending, booking: None, ..booked(0, 600, 6).unwrap() };
    assert_eq!((reserved(Some(pending)), reserved(None)), (Ok(()), Ok(())));
}

/// A plan that no checker has passed, as a damaged record would have it, makes a step that breaks a rule.
#[test]
fn a_step_that_breaks_a_rule_is_withdrawn_and_the_other_jobs_go_on() {
    let spec = job("broken", 6, 10);
    let (engine, broken) = waiting(&spec);
    let half = on(&job("half", 4, 10), &[(0, 4)]);
    let mut state = serde_json::to_value(engine.state()).unwrap();
    state["plan"]["assignments"][broken.0.to_string()] = serde_json::to_value(&half).unwrap();
    let mut engine = Engine::restore(serde_json::from_value(state).unwrap());
    let other = engine.submit(NOW, Arc::new(job("other", 2, 10)));
    let steps = engine.poll(NOW);
    assert_eq!(steps.iter().map(|step| step.job).collect::<Vec<_>>(), [other]);
    let alarm = engine.state().last_alarm.clone().unwrap_or_default();
    let alarms = engine.state().alarms;
    assert!(alarm.contains("split") && alarms > 0, "{alarm}");
    assert_eq!(engine.job(broken).unwrap().last_failure, Some(Failure::Rejected));
    assert!(engine.plan().get(broken).is_none(), "it waits again");
    // It is tried again after its back-off, by a plan that was checked.
    let mut started = false;
    for second in 1..600 {
        started |= engine.poll(Instant::from_secs(second)).iter().any(|step| step.job == broken);
    }
    assert!(started && engine.state().alarms == alarms, "{alarms} and {}", engine.state().alarms);
}
