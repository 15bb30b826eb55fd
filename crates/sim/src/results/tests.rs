//! Hand-made outcomes with figures worked out by hand.

use metronome_core::model::cluster::Name;
use metronome_core::model::job::{Binding, Priority};
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Bandwidth, Duration, GpuTime, Gpus, Instant, Resources, Share};

use super::*;
use crate::outcome::{CpuUse, Fate, JobOutcome, LinkLoad};

/// A job of two GPUs that waits for `wait` after its submission and then trains for `ran`.
fn completed(name: &str, submit: u64, wait: u64, ran: u64) -> JobOutcome {
    JobOutcome {
        name: Name::from(name),
        model: None,
        priority: Priority::NORMAL,
        user: Share(500_000),
        submit: Instant::from_secs(submit),
        start: Some(Instant::from_secs(submit + wait)),
        end: Some(Instant::from_secs(submit + wait + ran)),
        ran: Duration::from_secs(ran),
        alone: Duration::from_secs(ran),
        deadline: None,
        binding: None,
        taken: None,
        cpu: None,
        gpus: Gpus::whole(2),
        members: 2,
        nodes: 1,
        fate: Fate::Completed,
        preemptions: 0,
        moves: 0,
        resizes: 0,
        resizes_in_place: 0,
        reached: None,
        wait_reason: None,
        slowdown: None,
        exchange: None,
        segments: Vec::new(),
    }
}

fn refused(name: &str, submit: u64) -> JobOutcome {
    let at = Some(Instant::from_secs(submit));
    JobOutcome {
        start: None,
        end: at,
        ran: Duration::ZERO,
        fate: Fate::Refused,
        reached: None,
        wait_reason: Some(Reason::NoMatchingNode { each: Resources::NONE, members: 2, fit: 1 }),
        ..completed(name, submit, 0, 0)
    }
}

fn stuck(name: &str, submit: u64, fate: Fate) -> JobOutcome {
    JobOutcome { start: None, end: None, ran: Duration::ZERO, fate, ..completed(name, submit, 0, 60) }
}

fn outcome(seed: u64, jobs: Vec<JobOutcome>, ended: u64) -> Outcome {
    let busy = jobs.iter().map(|job| GpuTime::of(job.gpus, job.ran)).fold(GpuTime::default(), |a, b| a + b);
    Outcome {
        policy: "fifo".into(),
        seed,
        jobs,
        ended: Instant::from_secs(ended),
        gpu_capacity: Gpus::whole(4),
        gpu_peak: Some(Gpus(3500)),
        gpu_busy: busy,
        links: Vec::new(),
        bin: Duration::ZERO,
        encounter: None,
        lane_changes: 0,
        changes: Vec::new(),
        events: 0,
        alarms: 0,
        last_alarm: None,
        violations: Vec::new(),
        link_answers: Vec::new(),
        reconfigured: Default::default(),
        decision_nanos: vec![3_000_000, 1_000_000, 2_000_000, 4_000_000],
    }
}

fn figures(jobs: Vec<JobOutcome>, ended: u64) -> Figures<u64> {
    RunResult::of(&outcome(1, jobs, ended)).figures
}

#[test]
fn three_jobs_have_the_figures_worked_out_by_hand() {
    let jobs = vec![completed("a", 10, 0, 30), completed("b", 10, 20, 50), completed("c", 25, 5, 65)];
    let figures = figures(jobs, 95);
    assert_eq!(figures.jobs, Jobs { submitted: 3, completed: 3, ..Jobs::default() });
    let jct = JctSeconds { mean: Some(170.0 / 3.0), median: Some(70.0), p90: Some(70.0), p99: Some(70.0) };
    assert_eq!(figures.jct_s, jct);
    assert_eq!(figures.makespan_s, Some(85.0));
    assert_eq!(figures.queueing_s, QueueingSeconds { mean: Some(25.0 / 3.0), p99: Some(20.0) });
    assert_eq!(figures.slowdown, Slowdown { mean: Some(1.0), p99: Some(1.0), max: Some(1.0) });
    // 290 GPU-seconds on 4 GPUs, from the first start at 10 to the last end at 95.
    assert_eq!(figures.gpu_utilisation.mean, Some(290.0 / 340.0));
    assert_eq!(figures.gpu_allocated.peak, Some(0.875), "three GPUs and a half of four");
    assert_eq!(figures.link_utilisation.mean, None);
    assert_eq!(figures.decisions, Decisions { count: 4, p50_ms: Some(2.0), p99_ms: Some(4.0) });
}

#[test]
fn a_refused_job_is_counted_and_has_no_other_figure() {
    let without = figures(vec![completed("a", 0, 0, 30)], 40);
    let with = figures(vec![completed("a", 0, 0, 30), refused("b", 35)], 40);
    assert_eq!((with.jobs.submitted, with.jobs.refused), (2, 1));
    assert_eq!(Figures { jobs: without.jobs.clone(), ..with }, without);
}

#[test]
fn jobs_that_never_complete_count_with_the_end_of_the_run() {
    let jobs = vec![
        completed("a", 0, 0, 30),
        stuck("b", 10, Fate::Deadlocked),
        stuck("c", 40, Fate::Unfinished),
        JobOutcome { fate: Fate::Failed, ..completed("d", 0, 5, 15) },
    ];
    let figures = figures(jobs, 100);
    let jobs = Jobs { submitted: 4, completed: 1, refused: 0, failed: 1, deadlocked: 1, unfinished: 2 };
    assert_eq!(figures.jobs, jobs);
    assert_eq!(figures.jct_s.mean, Some((30.0 + 90.0 + 60.0 + 100.0) / 4.0));
    assert_eq!(figures.queueing_s.mean, Some((0.0 + 90.0 + 60.0 + 5.0) / 4.0));
    assert_eq!(figures.makespan_s, Some(100.0));
    assert_eq!(figures.slowdown.mean, Some(1.0), "only completed jobs have a slowdown");
}

#[test]
fn slowdown_is_training_time_over_time_alone() {
    let slow = JobOutcome { alone: Duration::from_secs(20), ..completed("a", 0, 10, 30) };
    let figures = figures(vec![slow, completed("b", 0, 0, 10)], 40);
    assert_eq!(figures.slowdown, Slowdown { mean: Some(1.25), p99: Some(1.5), max: Some(1.5) });
}

#[test]
fn the_slowdown_that_the_network_caused_goes_before_arithmetic() {
    let slow = JobOutcome { slowdown: Some(1.2), ..completed("a", 0, 10, 30) };
    let stuck = JobOutcome { slowdown: Some(9.0), ..stuck("b", 0, Fate::Deadlocked) };
    let slowdown = figures(vec![slow, stuck], 40).slowdown;
    assert_eq!(slowdown.max, Some(1.2), "only completed jobs have a slowdown");
}

#[test]
fn exchange_is_the_mean_over_completed_jobs_that_have_a_loop() {
    let sends = |name: &str, exchange| JobOutcome { exchange: Some(exchange), ..completed(name, 0, 10, 30) };
    let stuck = JobOutcome { exchange: Some(9.0), ..stuck("c", 0, Fate::Deadlocked) };
    let jobs = vec![sends("a", 0.25), sends("b", 0.75), stuck, completed("d", 0, 0, 30)];
    assert_eq!(figures(jobs, 40).exchange_s, ExchangeSeconds { mean: Some(0.5), p99: Some(0.75) });
}

#[test]
fn link_utilisation_is_bytes_over_what_the_used_links_could_carry() {
    let link = |name: &str, carried| LinkLoad {
        name: name.into(),
        level: "rack".into(),
        rate: Bandwidth(800),
        carried,
        bins: Vec::new(),
    };
    let mut outcome = outcome(1, vec![completed("a", 10, 10, 40)], 60);
    outcome.links = vec![link("r0", 3000.0), link("r1", 1000.0), link("unused", 0.0)];
    // Two links of 100 bytes a second, from 20 to 60.
    assert_eq!(RunResult::of(&outcome).figures.link_utilisation.mean, Some(0.5));
}

#[test]
fn each_class_of_priority_has_its_own_figures() {
    let high = JobOutcome { priority: Priority::HIGH, ..completed("a", 0, 0, 30) };
    let low = JobOutcome { priority: Priority::LOW, ..completed("b", 0, 30, 50) };
    let by = figures(vec![high, low], 80).by_priority;
    assert_eq!((by.high.jct_mean_s, by.low.jct_mean_s), (Some(30.0), Some(80.0)));
    assert_eq!(by.normal, Class::default(), "no job, no figure");
}

#[test]
fn a_deadline_is_met_by_completing_in_time() {
    let due = |job: JobOutcome, at| JobOutcome { deadline: Some(Instant::from_secs(at)), ..job };
    let jobs = vec![
        due(completed("in time", 0, 0, 30), 30),
        due(completed("late", 0, 0, 30), 29),
        due(stuck("never", 0, Fate::Unfinished), 1000),
        completed("whenever", 0, 0, 30),
    ];
    let all = figures(jobs, 40);
    assert_eq!((all.deadlines.total, all.deadlines.met, all.deadlines.share), (3, 1, Some(1.0 / 3.0)));
    assert_eq!(all.deadlines.soft, Bound { total: 3, met: 1, missed: 2 });
    assert_eq!(all.best_effort, BestEffort { jobs: 1, jct_mean_s: Some(30.0) });
}

#[test]
fn deadlines_are_counted_by_how_much_they_bind() {
    let due = |name, at, binding| JobOutcome {
        deadline: Some(Instant::from_secs(at)),
        binding: Some(binding),
        ..completed(name, 0, 0, 30)
    };
    let jobs = vec![
        due("kept", 30, Binding::Strict),
        due("broken", 20, Binding::Strict),
        due("told", 20, Binding::BestEffort),
    ];
    let all = figures(jobs, 40);
    assert_eq!(all.deadlines.strict, Bound { total: 2, met: 1, missed: 1 });
    assert_eq!(all.deadlines.best_effort, Bound { total: 1, met: 0, missed: 1 });
    assert_eq!(all.best_effort.jobs, 1, "a deadline that binds nobody is none");
}

#[test]
fn cores_that_wait_for_one_of_them_are_held_and_not_used() {
    let on_cores = |name, serial, used, held| JobOutcome {
        cpu: Some(CpuUse { serial: Share(serial), used, held }),
        ..completed(name, 0, 0, 30)
    };
    let jobs = vec![on_cores("parallel", 10_000, 99.0, 100.0), on_cores("serial", 50_000, 60.0, 100.0)];
    let used = figures(jobs, 40).cpu_allocated_utilisation;
    assert_eq!((used.mean, used.nearly_parallel), (Some(0.795), Some(0.99)));
    assert_eq!(figures(vec![completed("on GPUs", 0, 0, 30)], 40).cpu_allocated_utilisation.mean, None);
}

#[test]
fn a_run_without_jobs_measures_nothing() {
    let empty = figures(Vec::new(), 0);
    let decisions = empty.decisions.clone();
    assert_eq!(empty, Figures { decisions, ..Figures::default() });
}

#[test]
fn a_summary_is_the_mean_over_seeds() {
    let outcomes = [
        outcome(1, vec![completed("a", 0, 0, 30)], 30),
        outcome(2, vec![stuck("a", 0, Fate::Deadlocked)], 50),
    ];
    let summary = &Comparison::of("pair", &outcomes).summary;
    assert_eq!(summary.len(), 1);
    let figures = &summary[0].figures;
    assert_eq!((figures.jobs.submitted, figures.jobs.completed), (1.0, 0.5));
    assert_eq!(figures.jct_s.mean, Some(40.0));
    assert_eq!(figures.slowdown.mean, Some(1.0), "the mean over the runs that measured it");
}

#[test]
fn without_times_equal_runs_give_equal_bytes() {
    let slower = Outcome { decision_nanos: vec![9; 4], ..outcome(1, vec![completed("a", 0, 0, 30)], 30) };
    let bytes =
        |outcome: Outcome| serde_json::to_string(&Comparison::of("one", &[outcome]).without_times()).unwrap();
    let json = bytes(slower);
    assert_eq!(json, bytes(outcome(1, vec![completed("a", 0, 0, 30)], 30)));
    assert!(json.contains(r#""decisions":{"count":4}"#), "{json}");
}

#[test]
fn every_job_is_one_row() {
    let waited = JobOutcome {
        preemptions: 2,
        reached: None,
        wait_reason: Some(Reason::WaitingForVictims),
        ..completed("b, the second", 0, 20, 50)
    };
    let mut csv = Vec::new();
    per_job_csv(&[outcome(7, vec![refused("a", 3), waited], 70)], &mut csv).unwrap();
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        "policy,seed,job,submit_s,start_s,end_s,ran_s,gpus,members,nodes,fate,preemptions,wait_reason,\
         priority,user,deadline_s,binding,taken,in_time,resizes,resizes_in_place,cpu_used\n\
         fifo,7,a,3,,3,0,2,2,1,refused,0,NoMatchingNode,0,0.5,,,,,0,0,\n\
         fifo,7,\"b, the second\",0,20,70,50,2,2,1,completed,2,WaitingForVictims,0,0.5,,,,,0,0,\n"
    );
}
