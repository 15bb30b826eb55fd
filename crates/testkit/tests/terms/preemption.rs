//! Room made for those of higher priority: by as few as will do, and never by those who must not.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{BudgetId, IdVec, JobId, NodeId};
use metronome_core::model::job::{JobSpec, Rule};
use metronome_core::model::plan::Action;
use metronome_core::model::queue::Queue;
use metronome_core::model::report::{Failure, Reason};
use metronome_core::model::units::{Duration, Resources};
use metronome_testkit::build::{gpus, policy, racks};
use metronome_testkit::drive::{Driver, Op};
use proptest::prelude::*;

use super::{NOW, assert_well, each_its_own, evictable, gang, nodes, observe, runs, single, with_priority};

fn world(cluster: Cluster) -> Driver {
    Driver::new(cluster, policy("volcano").preempting())
}

fn low(name: &str, members: u64, each: u64) -> JobSpec {
    evictable(with_priority(gang(name, members, each), -100))
}

fn high(name: &str, members: u64, each: u64) -> JobSpec {
    evictable(with_priority(gang(name, members, each), 100))
}

#[test]
fn the_higher_priority_takes_the_place_of_the_lower() {
    let mut driver = world(racks(1, 2, 4));
    let victim = driver.submit(low("low", 2, 4));
    driver.settle();
    let urgent = driver.submit(high("high", 1, 4));
    driver.poll();
    assert_eq!(driver.engine.verdict(urgent), Some(Reason::WaitingForVictims));
    let preempt = driver.steps.last().unwrap();
    assert_eq!(preempt.job, victim);
    assert_eq!(preempt.action, Action::Preempt { beneficiary: Some(urgent) });
    driver.settle();
    assert!(runs(&driver, urgent) && !runs(&driver, victim), "a gang leaves whole");
    assert!(driver.engine.state().displaced.is_empty());
    assert_well(&driver);
}

#[test]
fn equals_never_take_each_others_place() {
    let mut driver = world(racks(1, 1, 4));
    let first = driver.submit(high("first", 1, 4));
    driver.settle();
    let second = driver.submit(high("second", 1, 4));
    driver.settle();
    assert!(runs(&driver, first) && !runs(&driver, second));
}

#[test]
fn who_does_not_allow_it_is_not_stopped_and_who_does_not_want_it_stops_nobody() {
    let mut driver = world(racks(1, 1, 4));
    let firm = driver.submit(with_priority(single("firm", 2), -100));
    let soft = driver.submit(low("soft", 1, 2));
    driver.settle();
    let modest = driver.submit(JobSpec { preempts: false, ..high("modest", 1, 2) });
    driver.settle();
    assert!(runs(&driver, soft) && !runs(&driver, modest));
    driver.submit(high("large", 1, 4));
    driver.settle();
    assert!(runs(&driver, firm) && runs(&driver, soft), "half of the room helps nobody");
    let urgent = driver.submit(high("urgent", 1, 2));
    driver.settle();
    assert!(runs(&driver, firm) && runs(&driver, urgent));
    assert_well(&driver);
}

#[test]
fn the_lowest_priority_leaves_first_and_nobody_in_vain() {
    let mut driver = world(racks(1, 1, 4));
    let lower = driver.submit(evictable(with_priority(single("lower", 2), -200)));
    let low = driver.submit(low("low", 1, 1));
    let other = driver.submit(evictable(with_priority(single("other", 1), -100)));
    driver.settle();
    let urgent = driver.submit(high("urgent", 1, 2));
    driver.settle();
    assert!(runs(&driver, urgent) && !runs(&driver, lower));
    assert!(runs(&driver, low) && runs(&driver, other));
}

#[test]
fn room_that_is_left_over_goes_to_the_next_in_line() {
    let mut driver = world(racks(1, 1, 4));
    driver.submit(low("low", 1, 4));
    driver.settle();
    let urgent = driver.submit(high("urgent", 1, 3));
    let small = driver.submit(low("small", 1, 1));
    driver.settle();
    assert!(runs(&driver, urgent) && runs(&driver, small));
    assert_well(&driver);
}

#[test]
fn a_budget_is_never_overdrawn() {
    let mut driver = world(racks(1, 2, 4));
    let budget = driver.engine.add_budget(NOW, 1);
    for node in 0..2 {
        let spec = JobSpec { budgets: vec![budget], ..low(&format!("low-{node}"), 1, 4) };
        driver.submit(spec);
    }
    driver.settle();
    let first = driver.submit(high("first", 1, 4));
    let second = driver.submit(high("second", 1, 4));
    driver.poll();
    assert_eq!(driver.engine.state().displaced.len(), 1);
    let wide = driver.submit(high("wide", 2, 4));
    driver.poll();
    assert_eq!(driver.engine.state().displaced.len(), 1, "who leaves counts until it has left");
    observe(&mut driver, Event::Budget { budget, allowed: 0 });
    driver.settle();
    assert!(runs(&driver, first) && !runs(&driver, second) && !runs(&driver, wide));
    observe(&mut driver, Event::Budget { budget, allowed: 1 });
    driver.settle();
    assert!(runs(&driver, second));
    assert_well(&driver);
}

#[test]
fn another_is_chosen_where_a_shared_budget_does_not_allow_both() {
    let mut driver = world(racks(1, 3, 4));
    let budget = driver.engine.add_budget(NOW, 1);
    let shared: Vec<JobId> = (0..2)
        .map(|at| driver.submit(JobSpec { budgets: vec![budget], ..low(&format!("shared-{at}"), 1, 4) }))
        .collect();
    let free = driver.submit(low("free", 1, 4));
    driver.settle();
    let wide = driver.submit(high("wide", 2, 4));
    driver.settle();
    assert!(runs(&driver, wide) && !runs(&driver, free));
    assert_eq!(shared.iter().filter(|job| runs(&driver, **job)).count(), 1);
    assert_well(&driver);
}

#[test]
fn a_job_is_left_alone_until_it_has_run_long_enough() {
    let settings = Settings { full_check_every: 1, min_run: Duration::MINUTE, ..Settings::default() };
    let queues = IdVec::from_iter([Queue::open("default")]);
    let mut driver = world(racks(1, 1, 4));
    driver.engine = Engine::new(racks(1, 1, 4), queues, policy("volcano").preempting(), settings);
    let victim = driver.submit(low("low", 1, 4));
    driver.settle();
    let urgent = driver.submit(high("urgent", 1, 4));
    driver.settle();
    assert!(runs(&driver, victim));
    assert_eq!(driver.engine.next_wake(), Some(NOW + Duration::MINUTE));
    driver.apply(&Op::Pass(Duration::MINUTE));
    driver.settle();
    assert!(runs(&driver, urgent));
}

#[test]
fn who_would_not_go_stays_and_the_other_waits_on() {
    let mut driver = world(racks(1, 1, 4));
    let victim = driver.submit(low("low", 1, 4));
    driver.settle();
    let urgent = driver.submit(high("urgent", 1, 4));
    driver.poll();
    let (step, job) = driver.under_way.pop_first().unwrap();
    observe(&mut driver, Event::StepFailed { job, step, failure: Failure::WouldNotStop });
    driver.settle();
    assert!(runs(&driver, victim) && driver.engine.plan().get(urgent).is_none());
    driver.apply(&Op::Pass(Duration::HOUR));
    driver.settle();
    assert!(runs(&driver, urgent), "after a while it is asked again");
    assert_well(&driver);
}

#[test]
fn whoever_is_in_the_way_by_a_rule_leaves_before_the_other_comes() {
    let mut driver = world(racks(1, 1, 4));
    let partition = driver.engine.add_partition(NOW, each_its_own());
    let group = driver.engine.add_group(NOW, partition, vec![], vec![]);
    let mut noisy = low("noisy", 1, 1);
    noisy.roles[0].shape.groups = Arc::from([group]);
    let noisy = driver.submit(noisy);
    let quiet = driver.submit(low("quiet", 1, 1));
    driver.settle();
    let mut urgent = high("urgent", 1, 1);
    urgent.roles[0].shape.rules = Arc::from([Rule::Apart(group)]);
    let urgent = driver.submit(urgent);
    driver.poll();
    assert_eq!(
        driver.steps.last().map(|step| step.job),
        Some(noisy),
        "there is room, but it may not start yet"
    );
    driver.settle();
    assert!(runs(&driver, urgent) && runs(&driver, quiet));
    assert_well(&driver);
}

#[test]
fn leaving_for_another_is_asked_of_nobody_who_is_needed_for_another() {
    let mut driver = world(racks(1, 1, 4));
    let victim = driver.submit(low("low", 1, 4));
    driver.settle();
    let urgent = driver.submit(high("urgent", 1, 4));
    driver.poll();
    let more = driver.submit(evictable(with_priority(single("more", 4), 200)));
    driver.poll();
    assert_eq!(nodes(&driver, urgent), [0], "who does not run yet is no victim");
    driver.settle();
    assert!(runs(&driver, more), "but once it runs it is");
    assert!(!runs(&driver, victim) && !runs(&driver, urgent));
    assert_well(&driver);
}

/// Free GPUs on each node beside the plan, with one more job back on its nodes.
fn free_with(driver: &Driver, back: JobId, held: &BTreeMap<JobId, Vec<(NodeId, Resources)>>) -> Vec<u64> {
    let cluster = &driver.engine.state().cluster;
    let mut free: Vec<u64> = cluster.nodes().values().map(|node| node.capacity.gpus.0).collect();
    let displaced = &driver.engine.state().displaced;
    for (_, takes) in held.iter().filter(|(id, _)| **id == back || !displaced.contains_key(id)) {
        takes.iter().for_each(|(node, amount)| free[node.0 as usize] -= amount.gpus.0);
    }
    free
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn victims_are_lower_within_budget_and_needed_every_one(
        name in prop::sample::select(vec!["metronome", "volcano", "coscheduling", "fifo-skip"]),
        running in prop::collection::vec((1u64..5, 1u64..5, -2i32..3, any::<bool>(), 0u32..4), 1..14),
        budgets in prop::collection::vec(0u32..4, 2),
        urgent in (1u64..5, 1u64..5, -2i32..3),
    ) {
        let mut driver = Driver::new(racks(2, 3, 4), policy(name).preempting());
        for allowed in &budgets {
            driver.engine.add_budget(NOW, *allowed);
        }
        for (members, each, priority, firm, budget) in running {
            let mut spec = with_priority(gang("running", members, each), priority);
            spec.capabilities.evict = !firm;
            spec.budgets = (budget < 2).then_some(BudgetId(budget)).into_iter().collect();
            spec.preempts = false;
            driver.submit(spec);
        }
        driver.settle();
        let state = driver.engine.state();
        let waiting: Vec<JobId> =
            state.jobs.iter().filter(|(_, job)| job.life.is_waiting()).map(|(id, _)| id).collect();
        waiting.into_iter().for_each(|job| observe(&mut driver, Event::JobCancelled(job)));
        driver.settle();
        let plan = driver.engine.plan();
        let held: BTreeMap<JobId, Vec<(NodeId, Resources)>> =
            plan.iter().map(|(id, planned)| (id, planned.takes().to_vec())).collect();
        let (members, each, priority) = urgent;
        let urgent = driver.submit(with_priority(gang("urgent", members, each), priority));
        driver.poll();
        let state = driver.engine.state();
        let mut left = budgets.clone();
        for (victim, beneficiary) in &state.displaced {
            prop_assert_eq!(*beneficiary, urgent);
            let spec = &state.jobs[*victim].spec;
            prop_assert!(spec.priority.0 < priority && spec.capabilities.evict);
            for budget in &spec.budgets {
                let after = left[budget.0 as usize].checked_sub(spec.members());
                prop_assert!(after.is_some(), "{:?} is overdrawn", budget);
                left[budget.0 as usize] = after.unwrap_or(0);
            }
            let fit: u64 = free_with(&driver, *victim, &held).iter().map(|free| free / gpus(each).gpus.0).sum();
            prop_assert!(fit < members, "{:?} left in vain", victim);
        }
        prop_assert_eq!(state.alarms, 0, "{:?}", &state.last_alarm);
    }
}
