//! Looks ahead whose answer is worked out by hand.

use std::sync::Arc;

use super::*;
use crate::deadlines::{DEADLINE_MARGIN, DeadlineVerdict};
use crate::engine::{Engine, Event, Settings};
use crate::model::cluster::{Cluster, NodeSpec};
use crate::model::id::IdVec;
use crate::model::job::{Binding, Capabilities, Checkpointing, Deadline, Gang, JobSpec, Priority};
use crate::model::policy::Policy;
use crate::model::queue::Queue;
use crate::model::report::{DeadlinePrediction, Reason};
use crate::model::units::{Gpus, Iterations, Resources};
use crate::observe::progress::Sample;

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

/// `members` workers of one GPU each for so long; for an unknown time, if none is said.
fn job(name: &str, members: u64, seconds: Option<u64>) -> JobSpec {
    let each = Resources { gpus: Gpus::whole(1), ..Resources::NONE };
    let mut spec = JobSpec::workers(name, Gang::rigid(members).unwrap(), each);
    spec.work.alone = seconds.map(Duration::from_secs);
    spec
}

/// One node of four GPUs under a policy.
fn engine(policy: Policy) -> Engine {
    let capacity = Resources { gpus: Gpus::whole(4), ..Resources::NONE };
    let mut cluster = Cluster::new(&[]).unwrap();
    cluster.add_node(&NodeSpec { name: "n".into(), capacity, ..NodeSpec::default() }).unwrap();
    Engine::new(cluster, IdVec::filled(Queue::open("default"), 1), policy, Settings::default())
}

fn fifo() -> Engine {
    engine(Policy::named("fifo").unwrap())
}

/// Submits a job and lets the world do at once what comes of it.
fn submit(engine: &mut Engine, now: Instant, spec: JobSpec) -> JobId {
    let id = engine.submit(now, Arc::new(spec));
    settle(engine, now);
    id
}

fn settle(engine: &mut Engine, now: Instant) {
    loop {
        let steps = engine.poll(now).into_inner();
        if steps.is_empty() {
            return;
        }
        for step in steps {
            engine.observe(now, Event::StepDone { job: step.job, step: step.id });
        }
    }
}

fn times(outlook: &Outlook, job: JobId) -> (Option<Instant>, Option<Instant>) {
    let forecast = outlook.job(job).unwrap();
    (forecast.start, forecast.end)
}

#[test]
fn who_waits_starts_when_those_before_it_have_ended() {
    let mut engine = fifo();
    let a = submit(&mut engine, at(0), job("a", 4, Some(100)));
    let b = submit(&mut engine, at(10), job("b", 3, Some(50)));
    let c = submit(&mut engine, at(20), job("c", 2, Some(30)));
    let outlook = look_ahead(engine.state(), at(40), Sought::Everybody);
    assert_eq!(times(&outlook, a), (Some(at(0)), Some(at(100))));
    assert_eq!(times(&outlook, b), (Some(at(100)), Some(at(150))));
    assert_eq!(times(&outlook, c), (Some(at(150)), Some(at(180))));
    assert_eq!((outlook.stopped, outlook.from), (Stopped::Seen, at(40)));
    assert_eq!(outlook.job(c).unwrap().length, Some(Length::Said));
    assert_eq!(outlook.job(c).unwrap().guesses, Guesses::default());
}

#[test]
fn a_look_ahead_for_one_job_goes_no_further_than_its_end() {
    let mut engine = fifo();
    submit(&mut engine, at(0), job("a", 4, Some(100)));
    let b = submit(&mut engine, at(0), job("b", 4, Some(100)));
    let c = submit(&mut engine, at(0), job("c", 4, Some(100)));
    let outlook = look_ahead(engine.state(), at(0), Sought::One(b));
    assert_eq!(times(&outlook, b), (Some(at(100)), Some(at(200))));
    assert_eq!(times(&outlook, c).1, None);
}

#[test]
fn the_state_that_is_looked_at_stays_as_it_is() {
    let mut engine = fifo();
    submit(&mut engine, at(0), job("a", 4, Some(100)));
    submit(&mut engine, at(0), job("b", 4, Some(100)));
    let before = serde_json::to_string(engine.state()).unwrap();
    let first = look_ahead(engine.state(), at(0), Sought::Everybody);
    assert_eq!(serde_json::to_string(engine.state()).unwrap(), before);
    assert_eq!(look_ahead(engine.state(), at(0), Sought::Everybody), first);
}

#[test]
fn a_length_that_nobody_said_is_a_guess_and_called_one() {
    let mut engine = fifo();
    submit(&mut engine, at(0), job("a", 4, None));
    let b = submit(&mut engine, at(0), job("b", 4, Some(60)));
    let soon = look_ahead(engine.state(), at(60), Sought::Everybody);
    assert_eq!(times(&soon, b).0, Some(at(60) + LEAST_GUESS), "at least the least");
    assert_eq!(soon.job(b).unwrap().guesses, Guesses { unknown: 1, overdue: 0 });
    let late = look_ahead(engine.state(), at(3600), Sought::Everybody);
    assert_eq!(times(&late, b).0, Some(at(7200)), "as long again");
}

#[test]
fn a_job_past_its_time_is_taken_to_run_a_quarter_longer() {
    let mut engine = fifo();
    let a = submit(&mut engine, at(0), job("a", 4, Some(100)));
    let b = submit(&mut engine, at(0), job("b", 4, Some(60)));
    let outlook = look_ahead(engine.state(), at(120), Sought::Everybody);
    assert_eq!(times(&outlook, a).1, Some(at(150)));
    assert_eq!(outlook.job(b).unwrap().guesses, Guesses { unknown: 0, overdue: 1 });
}

#[test]
fn a_job_that_reports_goes_on_at_its_own_pace() {
    let mut engine = fifo();
    let mut spec = job("a", 4, Some(100));
    spec.work.iterations = Some(Iterations(1000));
    let a = submit(&mut engine, at(0), spec);
    // Half as fast as it said: a hundred iterations in twenty seconds.
    let sample = Sample { at: at(20), iterations: Iterations(100), loss: None, used: None };
    engine.observe(at(20), Event::Progress { job: a, sample });
    let outlook = look_ahead(engine.state(), at(30), Sought::Everybody);
    assert_eq!(times(&outlook, a).1, Some(at(200)));
    assert_eq!(outlook.job(a).unwrap().length, Some(Length::Measured));
}

#[test]
fn who_is_stopped_saves_and_restarts_for_as_long_as_it_says() {
    let mut engine = engine(Policy::named("volcano").unwrap().preempting());
    let mut low = job("low", 4, Some(100));
    low.priority = Priority::LOW;
    low.capabilities = Capabilities::CHECKPOINTED;
    let (takes, restart) = (Duration::from_secs(5), Duration::from_secs(7));
    low.checkpointing = Some(Checkpointing { every: None, takes, restart });
    let low = submit(&mut engine, at(0), low);
    let mut high = job("high", 4, Some(50));
    high.priority = Priority::HIGH;
    let WhatIf::Taken { job: high, outlook, changes, without, .. } =
        what_if(engine.state(), at(40), Arc::new(high))
    else {
        panic!("it is taken in");
    };
    assert_eq!(times(&outlook, high), (Some(at(45)), Some(at(95))));
    assert_eq!(times(&outlook, low), (Some(at(0)), Some(at(95 + 7 + 60))));
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].start(), changes[0].end()), (Shift::Same, Shift::Later(Duration::from_secs(62))));
    assert_eq!(without, Stopped::Seen);
}

#[test]
fn one_more_job_delays_those_behind_it_and_nobody_else() {
    let mut engine = engine(Policy::named("volcano").unwrap());
    submit(&mut engine, at(0), job("a", 4, Some(100)));
    submit(&mut engine, at(0), job("b", 4, Some(100)));
    let mut urgent = job("urgent", 4, Some(30));
    urgent.priority = Priority::HIGH;
    let WhatIf::Taken { job, outlook, changes, .. } = what_if(engine.state(), at(50), Arc::new(urgent))
    else {
        panic!("it is taken in");
    };
    assert_eq!(times(&outlook, job), (Some(at(100)), Some(at(130))));
    let delayed: Vec<(&str, Shift)> =
        changes.iter().map(|change| (&*change.before.name, change.start())).collect();
    assert_eq!(delayed, [("b", Shift::Later(Duration::from_secs(30)))]);
}

#[test]
fn what_would_be_refused_is_not_looked_ahead_for() {
    let engine = fifo();
    let answer = what_if(engine.state(), at(0), Arc::new(job("wide", 5, Some(1))));
    assert!(
        matches!(answer, WhatIf::Refused(Reason::NoMatchingNode { members: 5, fit: 4, .. })),
        "{answer:?}"
    );
}

#[test]
fn what_nothing_makes_room_for_is_not_foreseen() {
    let mut engine = fifo();
    submit(&mut engine, at(0), job("a", 4, Some(100)));
    let mut held = job("held", 1, Some(10));
    held.suspended = true;
    let held = submit(&mut engine, at(0), held);
    let outlook = look_ahead(engine.state(), at(0), Sought::Everybody);
    assert_eq!((times(&outlook, held), outlook.stopped), ((None, None), Stopped::NothingMore));
}

#[test]
fn nothing_is_foreseen_where_members_wait_for_each_other_in_the_world() {
    let mut engine = engine(Policy::named("kubernetes").unwrap());
    let a = submit(&mut engine, at(0), job("a", 4, Some(100)));
    let outlook = look_ahead(engine.state(), at(0), Sought::Everybody);
    assert_eq!((times(&outlook, a).1, outlook.stopped), (None, Stopped::MembersApart));
}

/// A job on all four GPUs that can be stopped and is to be done by a time, come what may.
fn due(name: &str, takes: u64, by: u64) -> JobSpec {
    let mut spec = job(name, 4, Some(takes));
    spec.capabilities = Capabilities::CHECKPOINTED;
    spec.deadline = Some(Deadline { binding: Binding::Strict, ..Deadline::soft(at(by)) });
    spec
}

/// How a second job would stand to its deadline that comes after ten seconds, and who would give way for it.
fn second_after(first: JobSpec, second: JobSpec) -> (DeadlinePrediction, Vec<GivesWay>) {
    let mut engine = engine(Policy::named("metronome").unwrap());
    submit(&mut engine, at(0), first);
    let answer = what_if(engine.state(), at(10), Arc::new(second));
    let WhatIf::Taken { due, gives_way, .. } = answer else { panic!("it is taken in") };
    (due.expect("it has a deadline"), gives_way)
}

#[test]
fn a_deadline_that_can_be_kept_is_promised_and_who_has_time_is_stopped_for_it() {
    let (due, gives_way) = second_after(due("first", 100, 160), due("second", 50, 100));
    assert_eq!(due.verdict, Some(DeadlineVerdict::Promised));
    assert!(due.ends.is_some_and(|ends| ends <= at(100)) && due.earliest.is_none(), "{due:?}");
    let [first] = &gives_way[..] else { panic!("{gives_way:?}") };
    assert_eq!((&*first.job, first.how), ("first", Gives::Members { from: 4, to: 0 }));
}

#[test]
fn a_deadline_that_cannot_be_kept_names_a_later_one_and_who_stands_in_its_way() {
    let (due, gives_way) = second_after(due("first", 100, 105), due("second", 50, 80));
    assert_eq!((due.verdict, gives_way), (Some(DeadlineVerdict::Pending), Vec::new()));
    assert_eq!(due.earliest, Some(at(150) + DEADLINE_MARGIN));
    assert_eq!(due.in_the_way, ["first".into()]);
}

/// A job that has reported ten iterations, one every ten seconds.
fn reporting(engine: &mut Engine) -> JobId {
    let mut spec = job("it", 4, Some(1000));
    spec.work.iterations = Some(Iterations(100));
    let it = submit(engine, at(0), spec);
    for k in 1..=10 {
        let sample = Sample { at: at(k * 10), iterations: Iterations(k), loss: None, used: None };
        engine.observe(at(k * 10), Event::Progress { job: it, sample });
        engine.poll(at(k * 10));
    }
    it
}

#[test]
fn a_job_that_falls_silent_is_missed_in_time_and_until_it_reports() {
    let mut engine = fifo();
    let it = reporting(&mut engine);
    assert_eq!(engine.next_wake(), Some(at(200)), "ten iterations after the last word");
    engine.poll(at(199));
    assert_eq!((engine.verdict(it), engine.stalled().count()), (None, 0));
    let _ = engine.poll(at(260));
    let silent = Duration::from_secs(160);
    assert_eq!(engine.verdict(it), Some(Reason::Stalled { since: at(100), silent }));
    assert_eq!(engine.explain(it).unwrap().learned.unwrap().left, None);
    assert_eq!(engine.job(it).unwrap().remaining(at(260)), Some(Duration::from_secs(900)));
    let sample = Sample { at: at(270), iterations: Iterations(11), loss: None, used: None };
    engine.observe(at(270), Event::Progress { job: it, sample });
    assert_eq!(engine.verdict(it), None);
}

#[test]
fn nobody_hangs_ahead_of_time_only_because_nobody_reports_there() {
    let mut engine = fifo();
    let it = reporting(&mut engine);
    let ahead = look_ahead(engine.state(), at(100), Sought::Everybody);
    assert_eq!(times(&ahead, it), (Some(at(0)), Some(at(1000))));
    // Of one that hangs already nobody knows when it ends.
    let _ = engine.poll(at(700));
    let ahead = look_ahead(engine.state(), at(700), Sought::Everybody);
    assert_eq!(ahead.job(it).unwrap().length, Some(Length::Guessed));
}
