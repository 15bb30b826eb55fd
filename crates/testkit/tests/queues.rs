//! Queues: shares by weight, and what was lent is given back.

use std::sync::Arc;

use metronome_core::decide::decide;
use metronome_core::engine::{Ending, Engine, Event, Settings};
use metronome_core::journal::{Record, Replay};
use metronome_core::model::id::{IdVec, JobId, QueueId};
use metronome_core::model::job::{JobSpec, Life};
use metronome_core::model::queue::{Queue, QueueUser};
use metronome_core::model::units::{Duration, Gpus, Instant, Resources, Share};
use metronome_testkit::build::{gpu_member, gpu_node, job, policy, preemptible, racks};
use metronome_testkit::drive::{Driver, Op};
use metronome_testkit::lines::Lines;

/// An engine whose steps succeed at once.
struct World {
    engine: Engine,
    now: Instant,
}

impl World {
    fn new(gpus: u32, queues: Vec<Queue>) -> Self {
        let queues: IdVec<QueueId, Queue> = queues.into_iter().collect();
        let settings = Settings { full_check_every: 100, ..Settings::default() };
        let engine = Engine::new(racks(1, gpus / 8, 8), queues, policy("metronome"), settings);
        Self { engine, now: Instant::START }
    }

    fn submit_many(&mut self, count: u32, (queue, members, seconds): (u32, u64, u64)) {
        for _ in 0..count {
            let spec = JobSpec { queue: QueueId(queue), ..job("job", members, seconds) };
            self.engine.submit(self.now, Arc::new(spec));
        }
    }

    fn settle(&mut self) {
        loop {
            let steps = self.engine.poll(self.now).into_inner();
            if steps.is_empty() {
                return;
            }
            for step in steps {
                self.engine.observe(self.now, Event::StepDone { job: step.job, step: step.id });
            }
        }
    }

    fn running(&self) -> Vec<(JobId, QueueId, Gpus)> {
        let jobs = self.engine.state().jobs.iter().filter(|(_, job)| matches!(job.life, Life::Running(_)));
        jobs.map(|(id, job)| (id, job.spec.queue, job.spec.gpus())).collect()
    }

    fn held(&self, queue: u32) -> u64 {
        let of_queue = self.running().into_iter().filter(|(_, other, _)| *other == QueueId(queue));
        of_queue.map(|(_, _, gpus)| gpus.0 / 1000).sum()
    }

    /// One of the running jobs ends.
    fn end_one(&mut self, at: usize) {
        self.now = self.now + Duration::from_secs(1);
        let running = self.running();
        let (id, _, _) = running[at % running.len()];
        self.engine.observe(self.now, Event::JobEnded { job: id, how: Ending::Completed });
        self.settle();
    }
}

fn weighted(name: &str, weight: u32) -> Queue {
    Queue { weight, ..Queue::open(name) }
}

#[test]
fn under_saturation_queues_hold_by_weight() {
    const GPUS: u32 = 800;
    let weights = [1u64, 2, 5];
    let mut world = World::new(GPUS, vec![weighted("a", 1), weighted("b", 2), weighted("c", 5)]);
    for queue in 0..3 {
        world.submit_many(3000, (queue, 1, 1000));
    }
    world.settle();
    for at in 0..1500 {
        world.end_one(at * 7);
        let (all, total): (u64, u64) = (u64::from(GPUS), weights.iter().sum());
        for (queue, weight) in (0..).zip(weights) {
            let (held, due) = (world.held(queue), all * weight / total);
            assert!(held.abs_diff(due) * 100 <= all, "queue {queue} holds {held} of {due}");
        }
    }
}

#[test]
fn shares_are_handed_down_the_tree() {
    let inside = |name: &str, weight: u32| Queue { parent: Some(QueueId(1)), ..weighted(name, weight) };
    let queues = vec![weighted("alone", 1), weighted("many", 1), inside("one", 1), inside("three", 3)];
    let mut world = World::new(160, queues);
    for queue in [0, 2, 3] {
        world.submit_many(400, (queue, 1, 1000));
    }
    world.settle();
    assert_eq!([0, 2, 3].map(|queue| world.held(queue)), [80, 20, 60]);
}

#[test]
fn who_held_more_than_its_part_lately_comes_later() {
    let counted = |name: &str| Queue { history: Some(Duration::HOUR), ..Queue::open(name) };
    for (queue, held) in [(Queue::open as fn(&str) -> Queue, [32, 32]), (counted, [8, 56])] {
        let mut world = World::new(64, vec![queue("busy"), queue("idle")]);
        world.submit_many(1, (0, 64, 10_000));
        world.settle();
        world.now = world.now + Duration::HOUR.times(2);
        for queue in [0, 1] {
            world.submit_many(64, (queue, 1, 10_000));
        }
        world.end_one(0);
        // Three quarters of 64 are what the last two hours count for: 48 and 8 are as much as 56.
        let after = [0, 1].map(|queue| world.held(queue));
        assert!(after.iter().zip(held).all(|(after, held)| after.abs_diff(held) <= 1), "{after:?} {held:?}");
    }
}

#[test]
fn what_was_lent_is_given_back_on_demand() {
    let quota = |gpus| Some(gpu_member(gpus));
    let lender = Queue { quota: quota(32), ..Queue::open("lender") };
    let borrower = Queue { quota: quota(32), ..Queue::open("borrower") };
    let mut world = World::new(64, vec![lender, borrower]);
    world.submit_many(16, (1, 8, 10_000));
    world.settle();
    assert_eq!(world.held(1), 64, "what nobody wants is lent");
    world.submit_many(16, (0, 8, 10_000));
    world.settle();
    assert_eq!([world.held(0), world.held(1)], [32, 32]);
    let whole_gangs = world.running().iter().all(|(_, _, gpus)| *gpus == Gpus::whole(8));
    assert!(whole_gangs);
}

#[test]
fn what_is_not_lent_stays_free() {
    let keeper = Queue { quota: Some(gpu_member(32)), lends: false, ..Queue::open("keeper") };
    let mut world = World::new(64, vec![keeper, Queue::open("other")]);
    world.submit_many(64, (1, 1, 1000));
    world.settle();
    assert_eq!(world.held(1), 32);
    world.submit_many(64, (0, 1, 1000));
    world.settle();
    assert!(world.held(0) >= 32 && world.held(0) + world.held(1) == 64);
}

#[test]
fn a_limit_holds_also_for_those_who_borrow() {
    let bounded = Queue { limit: Some(gpu_node(3)), ..Queue::open("bounded") };
    let mut world = World::new(64, vec![bounded]);
    world.submit_many(64, (0, 1, 1000));
    world.settle();
    assert_eq!(world.held(0), 3);
}

impl World {
    fn describe(&mut self, queue: u32, described: Queue) {
        self.engine.observe(self.now, Event::Queue { queue: QueueId(queue), described });
        self.settle();
    }

    /// The books agree with a count from nothing, and no plan has broken a rule.
    fn is_right(&self) {
        let state = self.engine.state();
        assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
        let restored = Engine::restore(state.clone());
        assert_eq!(restored.snapshot().held, self.engine.snapshot().held);
    }
}

#[test]
fn a_queue_that_may_hold_more_starts_who_waited_for_that() {
    let bounded = |gpus| Queue { limit: Some(gpu_node(gpus)), ..Queue::open("bounded") };
    let mut world = World::new(64, vec![Queue::open("default")]);
    world.describe(1, bounded(8));
    world.submit_many(4, (1, 8, 1000));
    world.settle();
    assert_eq!(world.held(1), 8);
    world.describe(1, bounded(24));
    assert_eq!(world.held(1), 24);
    world.describe(1, bounded(8));
    assert_eq!(world.held(1), 24, "what runs goes on");
    world.is_right();
}

#[test]
fn what_is_held_moves_with_its_queue() {
    let inside = |name, parent| Queue { parent: Some(QueueId(parent)), ..Queue::open(name) };
    let mut world = World::new(64, vec![Queue::open("a"), Queue::open("b"), inside("c", 0)]);
    world.submit_many(2, (2, 8, 1000));
    world.settle();
    let holds = |world: &World, queue| world.engine.snapshot().held.by_queue()[QueueId(queue)].gpus;
    assert_eq!([0, 1, 2].map(|queue| holds(&world, queue)), [16, 0, 16].map(Gpus::whole));
    world.describe(2, inside("c", 1));
    assert_eq!([0, 1, 2].map(|queue| holds(&world, queue)), [0, 16, 16].map(Gpus::whole));
    world.is_right();
}

#[test]
fn a_queue_inside_itself_or_in_none_changes_nothing() {
    let inside = |name, parent| Queue { parent: Some(QueueId(parent)), ..Queue::open(name) };
    let mut world = World::new(64, vec![Queue::open("a"), inside("b", 0), inside("c", 1)]);
    let before = world.engine.state().queues.clone();
    world.describe(0, inside("a", 2));
    world.describe(0, inside("a", 0));
    world.describe(1, inside("b", 9));
    world.describe(7, Queue::open("beyond"));
    assert_eq!(world.engine.state().queues, before);
    world.is_right();
}

#[test]
fn a_quota_leaves_the_rest_of_what_it_names_to_those_without() {
    let named_only = Resources { gpus: Gpus::whole(32), ..Resources::UNBOUNDED };
    let lab = Queue { quota: Some(named_only), ..Queue::open("lab") };
    let mut world = World::new(64, vec![Queue::open("default"), lab]);
    world.submit_many(8, (1, 8, 10_000));
    world.settle();
    assert_eq!(world.held(1), 64);
    world.submit_many(8, (0, 8, 10_000));
    world.settle();
    assert_eq!([world.held(0), world.held(1)], [32, 32], "half is left to the other");
}

#[test]
fn who_does_not_give_back_keeps_what_it_borrowed() {
    let quota = Some(gpu_member(32));
    let keeper = Queue { quota, gives_back: false, ..Queue::open("keeper") };
    let mut world = World::new(64, vec![Queue { quota, ..Queue::open("lender") }, keeper]);
    world.submit_many(8, (1, 8, 10_000));
    world.settle();
    world.submit_many(8, (0, 8, 10_000));
    world.settle();
    assert_eq!([world.held(0), world.held(1)], [0, 64]);
    world.end_one(0);
    assert_eq!([world.held(0), world.held(1)], [8, 56], "what comes free goes to whom it belongs");
}

#[test]
fn a_part_of_a_quota_may_be_kept_and_the_rest_lent() {
    let (quota, kept) = (Some(gpu_member(32)), Some(gpu_member(16)));
    let mut world =
        World::new(64, vec![Queue { quota, kept, ..Queue::open("keeper") }, Queue::open("other")]);
    world.submit_many(64, (1, 1, 1000));
    world.settle();
    assert_eq!(world.held(1), 48);
}

#[test]
fn queues_that_come_and_change_are_replayed() {
    let lines = Lines::default();
    let mut world = World::new(64, vec![Queue::open("default")]);
    world.engine.keep_journal(Box::new(lines.clone()));
    world.describe(1, Queue { quota: Some(gpu_member(16)), ..Queue::open("lab") });
    world.submit_many(8, (0, 8, 1000));
    world.submit_many(8, (1, 8, 1000));
    world.settle();
    world.describe(1, Queue { quota: Some(gpu_member(40)), ..Queue::open("lab") });
    let mut replay = Replay::default();
    for line in lines.text().lines() {
        replay.feed(Record::from_line(line).unwrap()).unwrap();
    }
    assert!(replay.decisions > 1 && replay.mismatches.is_empty(), "{:?}", replay.mismatches);
}

#[test]
fn who_would_not_leave_counts_again_before_the_next_is_decided() {
    let ann = QueueUser { name: "ann".into(), priority: Share::WHOLE, limit: Some(gpu_member(6)) };
    let queues = IdVec::from_iter([Queue { users: vec![ann], ..Queue::open("default") }]);
    let mut driver = Driver::sharing(racks(1, 2, 8), policy("srtf"), queues);
    let of_ann = |members, seconds| JobSpec { owner: Some("ann".into()), ..job("job", members, seconds) };
    driver.submit(preemptible(of_ann(4, 1000)));
    driver.settle();
    driver.submit(preemptible(of_ann(3, 1)));
    driver.poll();
    driver.apply(&Op::StepFails(0));
    driver.poll();
    let again = decide(&driver.engine.snapshot(), driver.engine.policy());
    assert_eq!(again.amendment.assignments.len(), 0, "{:?}", again.amendment);
    assert_eq!(driver.engine.state().alarms, 0);
}
