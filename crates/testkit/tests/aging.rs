//! The bound on aging: whoever has waited long enough stands ahead of every newcomer, whatever counts for them.

use std::sync::Arc;

use metronome_core::engine::{Engine, Event};
use metronome_core::model::job::{Gang, JobSpec, Priority};
use metronome_core::model::policy::{Order, Parts, Policy, Weights};
use metronome_core::model::units::{Duration, Instant, Share};
use metronome_testkit::build::{engine, gpus, policy, racks};
use proptest::prelude::*;

const WINDOW: Duration = Duration(30 * Duration::MINUTE.0);

/// Waiting begins to outweigh all else after so many times a job's own length, or after a part of the window if that is
/// longer.
const LENGTHS: u64 = 14;
const SHORTEST: Duration = Duration(WINDOW.0 / 10);

/// Any that sum to the whole, of which waiting has at most half; and what is left for the others.
fn weights() -> impl Strategy<Value = (Weights, u32)> {
    (0u32..=500_000, prop::array::uniform3(0.0f64..1.0)).prop_map(|(wait, some)| {
        let rest = Share::WHOLE.0 - wait;
        let user = (f64::from(rest) * some[0]) as u32;
        let task = (f64::from(rest - user) * some[1]) as u32;
        let width = (f64::from(rest - user - task) * some[2]) as u32;
        let [user, task, wait, width, brevity] =
            [user, task, wait, width, rest - user - task - width].map(Share);
        (Weights::new(Parts { user, task, wait, width, brevity }, WINDOW).unwrap(), rest)
    })
}

fn job(name: &str, members: u64, (user, priority): (u32, i32), alone: Duration) -> JobSpec {
    let mut spec = JobSpec::workers(name, Gang::rigid(members).unwrap(), gpus(1));
    (spec.user, spec.priority) = (Share(user), Priority(priority));
    spec.work.alone = Some(alone);
    spec
}

fn newcomers() -> impl Strategy<Value = Vec<JobSpec>> {
    let one = (1u64..=8, 0..=Share::WHOLE.0, -100i32..=100, 0u32..16);
    let one = one.prop_map(|(members, user, priority, doublings)| {
        job("newcomer", members, (user, priority), Duration::from_secs(1 << doublings))
    });
    prop::collection::vec(one, 1..20)
}

/// A full cluster that nobody leaves.
fn full(weights: Weights) -> Engine {
    let policy = Policy { order: Order::Weighted(weights), ..policy("metronome") };
    let mut engine = engine(racks(1, 1, 8), policy);
    engine
        .submit(Instant::START, Arc::new(job("first", 8, (Share::WHOLE.0, 100), Duration::HOUR.times(1000))));
    for step in engine.poll(Instant::START).into_inner() {
        engine.observe(Instant::START, Event::StepDone { job: step.job, step: step.id });
    }
    engine
}

proptest! {
    #[test]
    fn whoever_has_waited_long_enough_stands_ahead_of_every_newcomer(
        (weights, rest) in weights(), doublings in 0u32..16, newcomers in newcomers()
    ) {
        let mut engine = full(weights);
        let length = Duration::from_secs(1 << doublings);
        let old = engine.submit(Instant::START, Arc::new(job("old", 1, (0, -100), length)));
        // Twice of what waiting does not count for, of the time after which it begins to outweigh all else.
        let slow = u128::from(SHORTEST.max(length.times(LENGTHS)).0);
        let bound = Duration((slow * 2 * u128::from(rest) / u128::from(Share::WHOLE.0)) as u64);
        let now = Instant::START + bound + Duration::SECOND;
        for spec in newcomers {
            engine.submit(now, Arc::new(spec));
        }
        drop(engine.poll(now));
        let position = engine.explain(old).and_then(|explanation| explanation.position);
        prop_assert_eq!(position, Some(1));
    }
}
