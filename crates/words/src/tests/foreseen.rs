//! Golden words for what is foreseen.

use std::sync::Arc;

use metronome_core::engine::forecast::{Sought, WhatIf, look_ahead, what_if};
use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::model::cluster::{Cluster, NodeSpec};
use metronome_core::model::id::{IdVec, JobId};
use metronome_core::model::job::{Gang, JobSpec, Priority};
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Duration, Gpus, Instant, Resources};

use super::Numbered;
use crate::{Foreseen, what_if_document, what_if_lines};

/// All four GPUs of the one node, for so many minutes, if that is known.
fn job(name: &str, minutes: Option<u64>) -> JobSpec {
    let each = Resources { gpus: Gpus::whole(1), ..Resources::NONE };
    let mut spec = JobSpec::workers(name, Gang::rigid(4).unwrap(), each);
    spec.work.alone = minutes.map(|minutes| Duration::MINUTE.times(minutes));
    spec
}

/// One node of four GPUs; the first job runs, the others wait.
fn engine(jobs: Vec<JobSpec>) -> Engine {
    let capacity = Resources { gpus: Gpus::whole(4), ..Resources::NONE };
    let mut cluster = Cluster::new(&[]).unwrap();
    cluster.add_node(&NodeSpec { name: "n".into(), capacity, ..NodeSpec::default() }).unwrap();
    let queues = IdVec::filled(Queue::open("default"), 1);
    let policy = Policy::named("volcano").unwrap();
    let mut engine = Engine::new(cluster, queues, policy, Settings::default());
    for spec in jobs {
        engine.submit(Instant::START, Arc::new(spec));
        for step in engine.poll(Instant::START).into_inner() {
            engine.observe(Instant::START, Event::StepDone { job: step.job, step: step.id });
        }
    }
    engine
}

fn minute(minutes: u64) -> Instant {
    Instant::START + Duration::MINUTE.times(minutes)
}

fn words(jobs: Vec<JobSpec>, about: JobId, now: Instant) -> String {
    let outlook = look_ahead(engine(jobs).state(), now, Sought::One(about));
    Foreseen::of(&outlook, about).unwrap().lines()
}

#[test]
fn a_waiting_job_hears_when_and_under_which_assumption() {
    assert_eq!(
        words(vec![job("a", Some(60)), job("b", Some(30))], JobId(1), minute(20)),
        "starts     in 40m, 1h after the beginning\n\
         ends       in 1h 10m, 1h 30m after the beginning\n\
         assuming   nobody else comes, nothing breaks, and jobs take as long as they said\n"
    );
}

#[test]
fn guesses_are_called_guesses() {
    let text = words(vec![job("a", None), job("b", None)], JobId(1), minute(30));
    assert!(text.starts_with("starts     in 30m, 1h after the beginning\n"), "{text}");
    let guess = "1 job of unknown length, each taken to run as long again as it has, and at least 10m; \
                 itself of unknown length";
    assert!(text.contains(guess), "{text}");
    let text = words(vec![job("a", Some(20)), job("b", Some(20))], JobId(1), minute(40));
    assert!(
        text.contains("before it: 1 job past the time said, each taken to run a quarter longer"),
        "{text}"
    );
}

#[test]
fn a_running_job_hears_only_when_it_ends() {
    let text = words(vec![job("a", Some(60))], JobId(0), minute(20));
    assert!(text.starts_with("ends       in 40m, 1h after the beginning\nassuming"), "{text}");
}

#[test]
fn what_is_not_foreseen_has_a_reason() {
    let mut held = job("held", Some(5));
    held.suspended = true;
    assert_eq!(
        words(vec![job("a", Some(60)), held], JobId(1), minute(20)),
        "starts     not foreseen: nothing that is known to come lets it in\n"
    );
}

fn urgent(engine: &Engine) -> WhatIf {
    let urgent = JobSpec { priority: Priority::HIGH, ..job("urgent", Some(10)) };
    what_if(engine.state(), minute(20), Arc::new(urgent))
}

#[test]
fn what_if_names_whom_it_would_delay() {
    let engine = engine(vec![job("a", Some(60)), job("b", Some(30))]);
    assert_eq!(
        what_if_lines("urgent", minute(20), &urgent(&engine), &Numbered),
        "job        urgent\n\
         submitted  20m after the beginning\n\
         starts     in 40m, 1h after the beginning\n\
         ends       in 50m, 1h 10m after the beginning\n\
         assuming   nobody else comes, nothing breaks, and jobs take as long as they said\n\
         \n\
         1 job would be delayed:\n  \
         b: starts 10m later, ends 10m later\n"
    );
}

#[test]
fn programs_get_the_times_of_all_whom_it_would_move() {
    let engine = engine(vec![job("a", Some(60)), job("b", Some(30))]);
    let answer = urgent(&engine);
    let json = serde_json::to_value(what_if_document("urgent", minute(20), &answer, &Numbered)).unwrap();
    assert_eq!(json["forecast"]["start_s"], 3600.0);
    assert_eq!(json["changes"][0]["job"], "b");
    assert_eq!(json["changes"][0]["delay_s"], 600.0);
    assert!(json["refused"].is_null());
}

#[test]
fn a_job_that_would_be_refused_hears_why() {
    let mut wide = job("wide", Some(5));
    wide.roles[0].gang = Gang::rigid(5).unwrap();
    let answer = what_if(engine(vec![]).state(), minute(0), Arc::new(wide));
    let text = what_if_lines("wide", minute(0), &answer, &Numbered);
    assert!(text.ends_with("even if all nodes were free only 4 would fit\n"), "{text}");
}

#[test]
fn what_happens_now_happens_at_once() {
    let answer = what_if(engine(vec![]).state(), minute(0), Arc::new(job("first", Some(5))));
    let text = what_if_lines("first", minute(0), &answer, &Numbered);
    assert!(text.contains("starts     at once\nends       in 5m, 5m after the beginning\n"), "{text}");
}
