//! Queues: shares by weight, and what was lent is given back.

use std::sync::Arc;

use metronome_core::engine::{Ending, Engine, Event, Settings};
use metronome_core::id::{IdVec, JobId, QueueId};
use metronome_core::job::{JobSpec, Life};
use metronome_core::queue::Queue;
use metronome_core::units::{Duration, Gpus, Instant};
use metronome_testkit::build::{gpu_member, gpu_node, job, policy, racks};

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
