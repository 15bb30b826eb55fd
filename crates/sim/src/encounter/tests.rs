use std::sync::Arc;

use metronome_core::model::units::Bytes;
use metronome_core::network::{Pattern, Route};
use metronome_core::traffic::Follows;

use super::*;

const LINK: LinkId = LinkId(1);
/// One byte a nanosecond.
const RATE: Bandwidth = Bandwidth(8_000_000_000);

fn rates() -> IdVec<LinkId, Bandwidth> {
    IdVec::filled(RATE, 2)
}

/// Computes and then sends over the second link, for so many milliseconds each.
fn flow(computes: u64, sends: u64) -> Flow {
    let ready = Duration::from_millis(computes);
    let phases = [(Duration(ready.0 - 1), Bytes(sends * 1_000_000))];
    let pattern = Arc::new(Pattern::phases(ready, &phases).unwrap());
    let alone = Duration::from_millis(computes + sends);
    Flow { fingerprint: pattern.fingerprint(), pattern, route: Route::over(&[(LINK, 1.0)]), alone }
}

fn met(flows: Vec<Flow>, lane: TrafficPolicy) -> Option<Encounter> {
    let jobs = flows.into_iter().enumerate().map(|(job, flow)| (job, flow, lane)).collect();
    let moment = Moment { at: Instant::from_secs(60), jobs };
    let tuning = &TrafficTuning::DEFAULT;
    look(&moment, &Links { named: 2, rates: &rates(), name: &|link| format!("link {}", link.0), tuning })
}

const CLASSES: TrafficPolicy = TrafficPolicy {
    class: 2,
    weight: 1,
    follows: Follows::BytesLeft,
    turn: None,
    pace: None,
    rotation: None,
};

#[test]
fn whoever_asks_most_comes_first_and_the_circle_is_what_they_have_in_common() {
    let encounter = met(vec![flow(60, 40), flow(100, 100)], TrafficPolicy::default()).unwrap();
    let jobs: Vec<usize> = encounter.sharers.iter().map(|sharer| sharer.job).collect();
    assert_eq!((jobs, encounter.link.as_str()), (vec![1, 0], "link 1"));
    assert!((encounter.sharers[0].duty - 0.5).abs() < 1e-6 && encounter.sharers[0].demand == 1.0);
    let Circle::Common(circle) = encounter.circle else { panic!("100 and 200 ms have 200 ms in common") };
    assert!(circle.0.abs_diff(200_000_000) < 1_000_000, "{circle}");
    assert_eq!(encounter.decided, None, "nothing was decided");
}

#[test]
fn both_courses_carry_what_the_link_carries_and_no_more() {
    let encounter = met(vec![flow(60, 40), flow(70, 50), flow(90, 80)], CLASSES).unwrap();
    for course in [&encounter.fair, encounter.decided.as_ref().unwrap()] {
        assert_eq!(course.jobs.len(), 3);
        for column in 0..course::COLUMNS {
            let load: f64 = course.jobs.iter().map(|job| job.load[column]).sum();
            assert!(load <= 1.0 + 1e-6, "{load} in column {column}");
        }
        let arcs = course.jobs.iter().flat_map(|job| &job.arcs).chain(&course.crowded);
        assert!(arcs.into_iter().all(|(from, to)| 0.0 <= *from && from < to && *to <= 1.0));
        assert!(course.jobs.iter().all(|job| !job.arcs.is_empty()));
        assert!(!course.crowded.is_empty(), "more is asked than there is");
    }
    let mean = |course: &Course| course.jobs.iter().map(|job| job.mean.0).sum::<u64>();
    assert!(mean(encounter.decided.as_ref().unwrap()) < mean(&encounter.fair));
}

#[test]
fn however_many_meet_what_is_kept_is_bounded() {
    let encounter = met((0..40).map(|job| flow(900 + job, 20)).collect(), CLASSES).unwrap();
    assert_eq!((encounter.sharers.len(), encounter.more), (MOST_JOBS, 30));
    assert_eq!(encounter.fair.jobs.len(), MOST_JOBS);
    assert!(encounter.fair.more.iter().sum::<f64>() > 0.0, "the others are seen together");
}

#[test]
fn where_nobody_shares_a_link_there_is_nothing_to_see() {
    assert_eq!(met(vec![flow(60, 40)], CLASSES), None);
}
