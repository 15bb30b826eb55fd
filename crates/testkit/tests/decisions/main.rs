//! Whole decisions on clusters with links: assignments, traffic policies, CPU weights, reservations, bookings, reasons and
//! wake-ups. Equal inputs give equal bytes, deciding again changes nothing, and what an engine remembers of its past makes
//! no difference: neither its indexes, nor predictions it has made before, nor where its journal begins.

mod compare;
mod draw;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use metronome_core::engine::{Ending, Engine, Event, State};
use metronome_core::journal::{JournalError, Record, Replay};
use metronome_core::model::id::{JobId, LinkId, NodeId};
use metronome_core::model::job::Life;
use metronome_core::model::report::Reason;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::Care;
use metronome_testkit::drive::Driver;
use metronome_testkit::lines::Lines;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestCaseError, TestRunner};

use compare::{decision, difference, restored};
use draw::BandwidthWaits::{Allowed, Excluded};
use draw::{AtOnce, History, histories, two_orders};

/// The number of random histories for each property; `METRONOME_CASES` asks for another.
const CASES: u32 = 300;

fn cases() -> u32 {
    std::env::var("METRONOME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

/// What a property has compared: one that compares hardly anything holds for no good reason.
#[derive(Debug, Default)]
struct Counts {
    decisions: Cell<u64>,
    /// Of those, how many were made while jobs had traffic policies other than the default.
    with_traffic_policies: Cell<u64>,
    /// And while jobs shared links.
    with_contention: Cell<u64>,
}

impl Counts {
    fn count(&self, engine: &Engine) {
        let add = |count: &Cell<u64>, is: bool| count.set(count.get() + u64::from(is));
        add(&self.decisions, true);
        add(&self.with_traffic_policies, !engine.plan().traffic().is_empty());
        add(&self.with_contention, !engine.snapshot().contention.components().is_empty());
    }
}

/// Looks for a case in which a property does not hold, and prints how much was compared.
fn for_all<T: Debug>(
    property: &str,
    strategy: impl Strategy<Value = T>,
    holds: impl Fn(T, &Counts) -> Result<(), TestCaseError>,
) {
    let counts = Counts::default();
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    if let Err(failure) = TestRunner::new(config).run(&strategy, |value| holds(value, &counts)) {
        panic!("{property}: {failure}");
    }
    let Counts { decisions, with_traffic_policies, with_contention } = &counts;
    println!(
        "{property}: {} cases, {} decisions, {} while jobs shared links, {} while jobs had traffic policies",
        cases(),
        decisions.get(),
        with_contention.get(),
        with_traffic_policies.get()
    );
    assert!(decisions.get() >= u64::from(cases()), "there is a decision in every case");
    assert!(with_contention.get() > decisions.get() / 20, "jobs share links often enough");
    assert!(with_traffic_policies.get() > decisions.get() / 50, "traffic policies are frequent enough");
}

fn equal(what: &str, one: &str, other: &str) -> Result<(), TestCaseError> {
    match difference(one, other) {
        Some(difference) => Err(TestCaseError::fail(format!("{what} differs {difference}"))),
        None => Ok(()),
    }
}

#[test]
fn the_same_snapshot_and_policy_give_the_same_bytes_again() {
    for_all("same bytes", histories(Allowed), |history, counts| {
        let mut driver = history.driver();
        for op in &history.ops {
            driver.apply(op);
            counts.count(&driver.engine);
            equal("a decision", &decision(&driver.engine), &decision(&driver.engine))?;
            prop_assert_eq!(compare::reasons(&driver.engine), compare::reasons(&driver.engine));
            driver.poll();
        }
        let state = driver.engine.state();
        prop_assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
        Ok(())
    });
}

#[test]
fn one_history_gives_one_journal() {
    for_all("one journal", histories(Allowed), |history, counts| {
        equal("the journal", &journal(&history, counts), &journal(&history, &Counts::default()))
    });
}

#[test]
fn the_order_of_events_at_one_instant_does_not_change_a_decision() {
    for_all("any order", (histories(Allowed), two_orders()), |(history, (one, other)), counts| {
        let decided = |events: &[AtOnce]| {
            let mut driver = after(&history);
            let jobs: Vec<JobId> = driver.engine.state().jobs.iter().map(|(id, _)| id).collect();
            let running = |job: &&JobId| matches!(driver.engine.life(**job), Some(Life::Running(_)));
            let running: Vec<JobId> = jobs.iter().filter(running).copied().collect();
            for event in events {
                if let Some(event) = resolved(event, &driver.engine, &running) {
                    driver.engine.observe(driver.now, event);
                }
            }
            counts.count(&driver.engine);
            format!("{}\n{:#?}", decision(&driver.engine), compare::reasons(&driver.engine))
        };
        equal("a decision", &decided(&one), &decided(&other))
    });
}

#[test]
fn deciding_again_on_what_was_decided_changes_nothing() {
    for_all("deciding again", histories(Allowed), |history, counts| {
        after_each_decision(&history, |driver| {
            counts.count(&driver.engine);
            prop_assert_eq!(compare::changes(&driver.engine), Vec::<String>::new());
            Ok(())
        })
    });
}

#[test]
fn an_engine_that_is_restored_after_a_decision_decides_nothing_more() {
    for_all("restored", histories(Excluded), |history, counts| {
        after_each_decision(&history, |driver| {
            counts.count(&driver.engine);
            let again = decided_again(driver);
            let (state, after) = (driver.engine.state(), again.state());
            equal("the state", &compare::settled(state), &compare::settled(after))?;
            // Looks that are made once in a stretch of time are not made again at once, so the wake-up may be another.
            let is_later = |wake| wake > driver.now;
            prop_assert!(after.wake.is_none_or(is_later), "{:?} at {:?}", after.wake, driver.now);
            Ok(())
        })
    });
}

#[test]
fn an_engine_with_a_past_decides_as_one_that_is_restored_from_its_state() {
    for_all("incremental", histories(Excluded), |history, counts| {
        let mut driver = history.driver();
        for op in &history.ops {
            driver.apply(op);
            counts.count(&driver.engine);
            let scratch = restored(&driver.engine);
            equal("the state", &compare::state(driver.engine.state()), &compare::state(scratch.state()))?;
            equal("the contention graph", &contention(&driver.engine), &contention(&scratch))?;
            equal("a decision", &decision(&driver.engine), &decision(&scratch))?;
            // The numbers in a reason are those of the moment in the pass at which a class was looked at, and an engine that
            // looks at every class looks at some of them earlier.
            let from_scratch = compare::reasons(&scratch);
            for (job, reason) in compare::reasons(&driver.engine) {
                let names = (reason.name(), from_scratch.get(&job).map(Reason::name));
                prop_assert_eq!(Some(names.0), names.1, "why {:?} waits: {:?}", job, reason);
            }
            driver.poll();
        }
        Ok(())
    });
}

#[test]
fn predictions_do_not_depend_on_what_was_predicted_before() {
    for_all("predictions", histories(Allowed), |history, counts| {
        let mut driver = history.driver();
        for op in &history.ops {
            driver.apply(op);
            driver.poll();
            counts.count(&driver.engine);
            let scratch = restored(&driver.engine);
            let warm = predictions(&driver.engine, |questions| questions);
            let cold = predictions(&scratch, |questions| questions);
            prop_assert_eq!(&warm, &cold);
            let backwards = predictions(&restored(&driver.engine), |mut questions| {
                questions.reverse();
                questions
            });
            prop_assert_eq!(warm, backwards);
        }
        Ok(())
    });
}

#[test]
fn a_journal_is_replayed_to_the_same_decisions_from_any_record() {
    let starts = || prop::collection::vec(any::<Index>(), 4);
    for_all("replay", (histories(Excluded), starts()), |(history, starts), counts| {
        let journal = journal(&history, counts);
        let lines: Vec<&str> = journal.lines().collect();
        for start in starts.iter().map(|start| start.index(lines.len())).chain([0]) {
            replay(&lines[start..], start)?;
        }
        Ok(())
    });
}

/// Checks a driver after each decision that is complete: one that was cut short goes on with the next one.
fn after_each_decision(
    history: &History,
    check: impl Fn(&Driver) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut driver = history.driver();
    for op in &history.ops {
        driver.apply(op);
        let before = driver.engine.state().cycles;
        driver.poll();
        if driver.engine.state().cycles > before && !driver.engine.state().dirty {
            check(&driver)?;
        }
    }
    Ok(())
}

/// The world after a history, in which the last operation was answered.
fn after(history: &History) -> Driver {
    let mut driver = history.driver();
    for op in &history.ops {
        driver.apply(op);
        driver.poll();
    }
    driver
}

/// The journal of a history, with a state record after every poll that did something.
fn journal(history: &History, counts: &Counts) -> String {
    let lines = Lines::default();
    let mut driver = history.driver();
    driver.engine.keep_journal(Box::new(lines.clone()));
    for op in &history.ops {
        driver.apply(op);
        counts.count(&driver.engine);
        driver.poll();
    }
    lines.text()
}

/// Feeds records to a new replay. Those before the first state record say nothing by themselves; every later state record
/// must be what the replay has come to.
fn replay(lines: &[&str], start: usize) -> Result<(), TestCaseError> {
    let mut replay = Replay::default();
    for (number, line) in lines.iter().enumerate() {
        let record = Record::from_line(line).expect("a record that was written is read");
        if let (Record::State(recorded), Some(engine)) = (&record, replay.engine()) {
            let what = format!("the state at record {number} after record {start}");
            equal(&what, &compare::state(recorded), &compare::state(engine.state()))?;
        }
        match replay.feed(record) {
            Ok(()) => {}
            Err(JournalError::NoState) => prop_assert!(replay.engine().is_none()),
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        prop_assert!(replay.mismatches.is_empty(), "from record {}: {:#?}", start, replay.mismatches);
    }
    Ok(())
}

/// An event about the link, node or job that is meant; none where there is no such job.
fn resolved(event: &AtOnce, engine: &Engine, running: &[JobId]) -> Option<Event> {
    let cluster = &engine.state().cluster;
    let (links, nodes) = (cluster.fabric.links().len(), cluster.nodes().len());
    match event {
        AtOnce::LinkChanges(link, rate) => {
            (*link < links).then_some(Event::LinkChanged { link: LinkId(*link as u32), rate: *rate })
        }
        AtOnce::NodeGoes(node) => (*node < nodes).then_some(Event::NodeLost(NodeId(*node as u32))),
        AtOnce::NodeComes(node) => (*node < nodes).then_some(Event::NodeBack(NodeId(*node as u32))),
        AtOnce::LoopIsMeasured(job, profile) => {
            let job = *running.get(*job)?;
            Some(Event::LoopMeasured { job, profile: Arc::new(profile.clone()) })
        }
        AtOnce::JobEnds(job) => Some(Event::JobEnded { job: *running.get(*job)?, how: Ending::Completed }),
    }
}

/// An engine that is restored from the state after a decision, and decides once more at the same time.
fn decided_again(driver: &Driver) -> Engine {
    let mut engine = Engine::restore(State { dirty: true, ..driver.engine.state().clone() });
    engine.poll(driver.now);
    assert_eq!(engine.state().cycles, driver.engine.state().cycles + 1, "it decides");
    engine
}

/// The contention graph as text: flows with their routes, the jobs on each link, what nodes' links carry on average.
fn contention(engine: &Engine) -> String {
    let graph = engine.snapshot().contention;
    let links = engine.state().cluster.fabric.links().ids();
    let users: Vec<(LinkId, &[JobId])> = links.map(|link| (link, graph.users(link))).collect();
    let flows: Vec<(JobId, &Flow)> = graph.flows().collect();
    format!("{flows:#?}\n{users:#?}\n{:#?}\n{:#?}", graph.components(), graph.average_utilisation())
}

/// What is asked about a set of flows: how they do without traffic policies, at a glance or at a closer look, or with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    Glance,
    Look,
    WithTrafficPolicies,
}

/// Predicted slowdowns, bit by bit, of all jobs that share links and of each two of them. The questions are asked in the
/// given order.
fn predictions(
    engine: &Engine,
    order: impl Fn(Vec<(Vec<JobId>, Question)>) -> Vec<(Vec<JobId>, Question)>,
) -> BTreeMap<(Vec<JobId>, Question), Vec<u64>> {
    let graph = engine.snapshot().contention;
    let components = graph.components();
    let pairs = components.iter().flat_map(|jobs| jobs.windows(2).map(<[JobId]>::to_vec));
    let sets: Vec<Vec<JobId>> = components.iter().cloned().chain(pairs).collect();
    let questions = [Question::Glance, Question::Look, Question::WithTrafficPolicies];
    let all = sets.iter().flat_map(|jobs| questions.map(|question| (jobs.clone(), question)));
    let answers = order(all.collect()).into_iter().map(|(jobs, question)| {
        let flows: Vec<&Flow> = jobs.iter().filter_map(|job| graph.flow(*job)).collect();
        let slowdowns = match question {
            Question::Glance => graph.slowdowns(&flows, Care::Glance),
            Question::Look => graph.slowdowns(&flows, Care::Look),
            Question::WithTrafficPolicies => {
                let policies = jobs.iter().map(|job| engine.traffic_policy(*job));
                graph.slowdowns_under(&flows.iter().copied().zip(policies).collect::<Vec<_>>())
            }
        };
        ((jobs, question), slowdowns.into_iter().map(f64::to_bits).collect())
    });
    answers.collect()
}
