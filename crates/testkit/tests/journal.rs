//! The journal: the same bytes for the same seed, every decision made again on replay, readable up to any cut.

use metronome_core::journal::{JournalError, Record, Replay};
use metronome_core::model::policy::Policy;
use metronome_core::model::units::{Duration, Instant};
use metronome_sim::scenario::{Costs, Fault, Scenario};
use metronome_sim::world::{self, RunOptions};
use metronome_testkit::build::{job, policy, racks, scenario, with_bad_steps};
use metronome_testkit::lines::Lines;

/// Forty jobs on six nodes with a fault of every kind.
fn eventful() -> Scenario {
    let jobs = (0..40u64)
        .map(|index| (index * 13, job(&format!("job-{index}"), 1 + index % 7, 60 + index * 7 % 90)));
    let mut scenario = scenario(racks(2, 3, 4), jobs);
    scenario.costs = Costs { start: Duration::from_secs(3), stop: Duration::from_secs(1) };
    scenario.faults.push(Fault::Node {
        node: metronome_core::model::id::NodeId(1),
        at: Instant::from_secs(100),
        lasts: Some(Duration::from_secs(120)),
        notice: Duration::ZERO,
    });
    with_bad_steps(scenario, 40, 60, 30, Duration::from_secs(90))
}

fn journal_of(policy: Policy, seed: u64) -> String {
    let lines = Lines::default();
    let journal = Some(Box::new(lines.clone()) as Box<_>);
    let options =
        RunOptions { seed, journal, full_check_every: 1, state_record_every: 50, ..RunOptions::new(policy) };
    let outcome = world::run(&eventful(), options, &|_| {});
    assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0));
    lines.text()
}

fn replayed(journal: &str) -> Result<Replay, JournalError> {
    let mut replay = Replay::default();
    for line in journal.lines() {
        match Record::from_line(line) {
            Ok(record) => replay.feed(record)?,
            Err(JournalError::Cut(_)) => break,
            Err(other) => return Err(other),
        }
    }
    Ok(replay)
}

#[test]
fn one_seed_gives_one_journal() {
    for name in Policy::names() {
        assert_eq!(journal_of(policy(name), 7), journal_of(policy(name), 7), "{name}");
    }
    assert_ne!(journal_of(policy("srtf"), 7), journal_of(policy("srtf"), 8));
}

#[test]
fn replay_makes_every_decision_again() {
    for name in Policy::names() {
        let journal = journal_of(policy(name), 3);
        let replay = replayed(&journal).unwrap();
        assert!(replay.decisions > 40, "{name} decided {} times", replay.decisions);
        assert!(replay.mismatches.is_empty(), "{name}: {:?}", replay.mismatches[0]);
        assert_eq!(replay.records, journal.lines().count() as u64);
    }
}

#[test]
fn replay_notices_a_decision_that_was_changed() {
    let journal = journal_of(policy("volcano"), 3);
    let forged = journal.replacen("\"members\":1", "\"members\":2", 1);
    assert_ne!(journal, forged);
    assert!(!replayed(&forged).unwrap().mismatches.is_empty());
}

#[test]
fn a_journal_cut_anywhere_is_read_up_to_the_cut() {
    let journal = journal_of(policy("metronome"), 3);
    let header = journal.match_indices('\n').nth(1).unwrap().0;
    for cut in (header..journal.len()).step_by(101) {
        let whole_lines = journal[..cut].lines().filter(|line| Record::from_line(line).is_ok()).count();
        let replay = replayed(&journal[..cut]).unwrap();
        assert!(replay.mismatches.is_empty(), "cut at {cut}");
        assert_eq!(replay.records as usize, whole_lines, "cut at {cut}");
        assert!(whole_lines + 1 >= journal[..cut].lines().count(), "only the last line may be cut");
    }
}

#[test]
fn a_journal_may_begin_at_any_state_record() {
    for name in Policy::names() {
        let journal = journal_of(policy(name), 3);
        let states: Vec<usize> = journal
            .lines()
            .enumerate()
            .filter(|(_, line)| line.starts_with("{\"state\""))
            .map(|(number, _)| number)
            .collect();
        assert!(states.len() > 3, "{name} wrote {} state records", states.len());
        for start in states {
            let rest: String = journal.lines().skip(start).map(|line| format!("{line}\n")).collect();
            let replay = replayed(&rest).unwrap();
            assert!(replay.mismatches.is_empty(), "{name} from line {start}: {:?}", replay.mismatches[0]);
        }
    }
}

#[test]
fn a_journal_without_a_state_or_of_another_version_is_refused() {
    assert!(matches!(
        replayed("{\"event\":{\"at\":0,\"event\":{\"nodeLost\":0}}}"),
        Err(JournalError::NoState)
    ));
    assert!(matches!(replayed("{\"journal\":{\"version\":99}}"), Err(JournalError::Version(99))));
}
