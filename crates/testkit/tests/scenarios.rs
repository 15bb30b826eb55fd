//! Small stories with their outcome written beside them.

use insta::assert_snapshot;
use metronome_core::model::units::Duration;
use metronome_sim::scenario::Scenario;
use metronome_testkit::build::{policy, run};
use metronome_testkit::text::{scenario, timeline};

fn story(text: &str, name: &str) -> String {
    told(&scenario(text), name)
}

/// The same with decisions only on whole minutes.
fn story_in_rounds(text: &str, name: &str) -> String {
    told(&Scenario { round: Duration::MINUTE, ..scenario(text) }, name)
}

fn told(scenario: &Scenario, name: &str) -> String {
    let outcome = run(scenario, policy(name), 1);
    assert_eq!((outcome.alarms, outcome.violations.len()), (0, 0));
    timeline(&outcome)
}

/// `low` has taken half of what it needs when `high` comes, which takes what `first` gives up.
const TWO_GANGS: &str = "
    nodes: 2 of 4 GPUs
    0s first: 4 x 1 for 30s
    1s low: 6 x 1 for 60s, low
    2s high: 6 x 1 for 60s, high
";

#[test]
fn two_half_placed_gangs_deadlock_member_by_member() {
    assert_snapshot!(story(TWO_GANGS, "kubernetes"), @r"
    first: 0s to 30s, Completed
    low: - to -, Deadlocked
    high: - to -, Deadlocked
    ");
}

#[test]
fn whole_gangs_never_wait_for_each_other() {
    let whole = r"
first: 0s to 30s, Completed
low: 90s to 150s, Completed
high: 30s to 90s, Completed
";
    for name in ["volcano", "coscheduling"] {
        assert_eq!(story(TWO_GANGS, name).trim(), whole.trim(), "{name}");
    }
    // The one that counts more takes the place of the first, which loses nothing but time.
    assert_snapshot!(story(TWO_GANGS, "metronome"), @r"
    first: 0s to 90s, Completed, preempted 1x
    low: 90s to 150s, Completed
    high: 2s to 62s, Completed
    ");
}

const CROSSED: &str = "
    nodes: 2 of 4 GPUs
    0s first: 2 x 4 for 10s
    1s a: 2 x 3 for 60s
    1s b: 2 x 3 for 60s
    2s c: 1 x 1 for 5s
";

#[test]
fn the_head_of_the_line_blocks_under_fifo_and_is_passed_under_fifo_skip() {
    assert_snapshot!(story(CROSSED, "fifo"), @r"
    first: 0s to 10s, Completed
    a: 10s to 70s, Completed
    b: 70s to 130s, Completed
    c: 70s to 75s, Completed
    ");
    assert_snapshot!(story(CROSSED, "fifo-skip"), @r"
    first: 0s to 10s, Completed
    a: 10s to 70s, Completed
    b: 70s to 130s, Completed
    c: 10s to 15s, Completed
    ");
}

#[test]
fn the_shorter_job_takes_the_room_and_gives_it_back() {
    let text = "
        nodes: 1 of 4 GPUs
        0s long: 4 x 1 for 100s
        10s short: 2 x 1 for 20s
    ";
    assert_snapshot!(story(text, "srtf"), @r"
    long: 0s to 120s, Completed, preempted 1x
    short: 10s to 30s, Completed
    ");
}

#[test]
fn with_rounds_room_is_free_at_once_and_handed_out_at_the_next_one() {
    let text = "
        nodes: 1 of 4 GPUs
        0s first: 4 x 1 for 100s
        10s second: 4 x 1 for 100s
        130s short: 4 x 1 for 30s
    ";
    assert_snapshot!(story_in_rounds(text, "srtf"), @r"
    first: 0s to 100s, Completed
    second: 120s to 280s, Completed, preempted 1x
    short: 180s to 210s, Completed
    ");
}

/// It reaches 3250 GPU-seconds after 812.5 s; nothing else happens then.
#[test]
fn with_rounds_a_job_is_demoted_at_the_round_after_it_reached_its_limit() {
    let text = "
        nodes: 1 of 4 GPUs
        0s long: 4 x 1 for 2000s
        10s other: 4 x 1 for 100s
    ";
    assert_snapshot!(story_in_rounds(text, "tiresias"), @r"
    long: 0s to 2120s, Completed, preempted 1x
    other: 840s to 940s, Completed
    ");
}

#[test]
fn a_job_that_cannot_be_stopped_is_never_preempted() {
    let text = "
        nodes: 1 of 4 GPUs
        0s long: 4 x 1 for 100s, stays
        10s short: 2 x 1 for 20s
    ";
    assert_snapshot!(story(text, "srtf"), @r"
    long: 0s to 100s, Completed
    short: 100s to 120s, Completed
    ");
}

#[test]
fn a_gang_larger_than_the_cluster_is_refused_at_once() {
    let text = "
        nodes: 2 of 4 GPUs
        0s giant: 9 x 1 for 10s
        0s fits: 8 x 1 for 10s
    ";
    assert_snapshot!(story(text, "metronome"), @r"
    giant: - to 0s, Refused
    fits: 0s to 10s, Completed
    ");
}

#[test]
fn the_urgent_go_first() {
    let text = "
        nodes: 1 of 4 GPUs
        0s now: 4 x 1 for 10s
        1s later: 4 x 1 for 10s, low
        2s soon: 4 x 1 for 10s, high
    ";
    assert_snapshot!(story(text, "volcano"), @r"
    now: 0s to 10s, Completed
    later: 20s to 30s, Completed
    soon: 10s to 20s, Completed
    ");
    assert_snapshot!(story(text, "metronome"), @r"
    now: 0s to 20s, Completed, preempted 1x
    later: 20s to 30s, Completed
    soon: 2s to 12s, Completed
    ");
}
