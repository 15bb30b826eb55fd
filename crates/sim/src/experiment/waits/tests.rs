//! Hand-made waits with means worked out by hand.

use metronome_core::model::cluster::Name;
use metronome_core::model::units::{Duration, Gpus, Instant};

use super::*;

/// A job that waits for `wait` seconds and trains for ten.
fn job(user: Share, priority: Priority, members: u32, wait: u64) -> JobOutcome {
    JobOutcome {
        name: Name::from("job"),
        model: None,
        priority,
        user,
        submit: Instant::START,
        start: Some(Instant::from_secs(wait)),
        end: Some(Instant::from_secs(wait + 10)),
        ran: Duration::from_secs(10),
        alone: Duration::from_secs(10),
        deadline: None,
        binding: None,
        taken: None,
        cpu: None,
        gpus: Gpus::whole(1),
        members,
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

fn outcome(policy: &str, seed: u64, jobs: Vec<JobOutcome>) -> Outcome {
    Outcome { seed, ended: Instant::from_secs(1000), ..Outcome::of_jobs(policy, jobs, Gpus::whole(1)) }
}

const TABLE: WaitTable = WaitTable { title: String::new(), wide_from: 4 };

fn sample() -> Vec<PolicyWaits> {
    let (high, low) = (Share::WHOLE, Share::NONE);
    let refused = JobOutcome { fate: Fate::Refused, ..job(low, Priority::LOW, 1, 0) };
    let stuck = JobOutcome {
        fate: Fate::Unfinished,
        end: None,
        ran: Duration::ZERO,
        ..job(low, Priority::LOW, 9, 0)
    };
    let first = vec![job(high, Priority::HIGH, 1, 10), job(Share(500_000), Priority::NORMAL, 4, 40), refused];
    let second = vec![job(high, Priority::HIGH, 3, 30), job(high, Priority::LOW, 3, 50), stuck];
    waits(&TABLE, &[outcome("fifo", 1, first), outcome("fifo", 2, second), outcome("other", 1, Vec::new())])
}

#[test]
fn jobs_of_all_seeds_are_sorted_by_user_urgency_and_width() {
    let fifo = &sample()[0];
    let kinds: Vec<_> =
        fifo.cells.iter().map(|cell| (cell.user, cell.urgency, cell.width, cell.jobs, cell.wait_s)).collect();
    assert_eq!(
        kinds,
        [
            (Rank::High, Rank::High, Width::Narrow, 2, 20.0),
            (Rank::High, Rank::Low, Width::Narrow, 1, 50.0),
            (Rank::Normal, Rank::Normal, Width::Wide, 1, 40.0),
            (Rank::Low, Rank::Low, Width::Wide, 1, 1000.0),
        ]
    );
}

#[test]
fn a_slice_is_the_mean_over_its_jobs() {
    let waits = sample();
    let mean = |metric: &str| Slice::parse(metric).unwrap().mean(&waits[0].cells);
    assert_eq!(mean("wait_s{user=high}"), Some(30.0));
    assert_eq!(mean("wait_s{user=high,urgency=high,width=narrow}"), Some(20.0));
    assert_eq!(mean("wait_s{width=wide}"), Some(520.0));
    assert_eq!(mean("wait_s{}"), Some(226.0));
    assert_eq!(mean("wait_s{user=normal,width=narrow}"), None, "no such job");
}

#[test]
fn what_is_no_slice_is_not_taken_for_one() {
    for text in
        ["wait_s", "wait_s{user}", "wait_s{user=tall}", "wait_s{width=high}", "wait_s{user=low,user=low}"]
    {
        assert_eq!(Slice::parse(text), None, "{text}");
    }
}

#[test]
fn the_table_has_a_column_for_each_policy_and_says_where_nothing_was_measured() {
    let rows = rows(&sample());
    assert_eq!(rows[0], ["user", "urgency", "width", "fifo", "other"]);
    assert_eq!(rows.len(), 1 + 5 + 2 + 3 + 2 + 1, "kinds of which there are no jobs have no row");
    assert_eq!(rows[1], ["high", "high", "narrow", "20.0", "–"]);
    assert_eq!(rows.last().unwrap(), &["all", "all", "all", "226.0", "–"]);
}
