//! Room kept for large gangs: under a stream of small jobs they start no later than they were promised.

use metronome_core::model::id::Id;
use metronome_core::model::job::{Gang, JobSpec, Priority};
use metronome_core::model::units::{Duration, Instant};
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};
use metronome_testkit::build::{gpus, job, policy, racks, scenario};
use rand::{Rng, RngExt};
use rand_pcg::Pcg64;

const NODES: u64 = 16;
const SMALL_JOBS: u64 = 1200;

/// The stream of random numbers for this purpose.
const STREAM: u128 = 41;

fn small(index: u64, random: &mut impl Rng) -> JobSpec {
    let (size, minutes) = (1 << random.random_range(0..4), random.random_range(2..40));
    let gang = Gang::rigid(1).expect("one member");
    let mut spec = JobSpec::workers(&format!("small-{index}"), gang, gpus(size));
    spec.work.alone = Some(Duration::MINUTE.times(minutes));
    spec
}

/// Small jobs that ask for a little more than there is, and one gang of half to all of the cluster among them.
fn crowded(seed: u64) -> (Scenario, Instant) {
    let random = &mut Pcg64::new(u128::from(seed), STREAM);
    let members = random.random_range(NODES / 2..=NODES);
    let mut gang = JobSpec::workers("gang", Gang::rigid(members).expect("members"), gpus(8));
    let length = Duration::MINUTE.times(random.random_range(5..60));
    gang.work.alone = Some(length);
    let came = 3600;
    // 3.75 GPUs for 21 minutes in the mean, of 128.
    let stream: Vec<(u64, JobSpec)> =
        (0..SMALL_JOBS).map(|index| (index * 35, small(index, random))).collect();
    let scenario = scenario(racks(4, 4, 8), stream.into_iter().chain([(came, gang)]));
    // Room is kept after as long as counts in its priority, and three times its length.
    let owed = Duration::MINUTE.times(30).max(length.times(3));
    (scenario, Instant::START + Duration::from_secs(came) + owed)
}

#[test]
fn a_gang_under_a_stream_of_small_jobs_starts_no_later_than_was_promised() {
    let mut promised = 0;
    for seed in 1..=40 {
        let (scenario, owed) = crowded(seed);
        let options = || RunOptions { seed, ..RunOptions::new(policy("metronome")) };
        let state = world::state_at(&scenario, options(), owed);
        let outcome = world::run(&scenario, options(), &|_| {});
        let gang = outcome.jobs.iter().find(|job| &*job.name == "gang").expect("it was submitted");
        let started = gang.start.expect("it started");
        let waits = state.jobs.iter().find(|(_, job)| &*job.spec.name == "gang" && job.runs_since.is_none());
        let Some((id, _)) = waits else { continue };
        let kept = state.plan.reservations().iter().find(|kept| kept.job == id);
        let kept = kept.unwrap_or_else(|| panic!("nothing is kept for job {} of seed {seed}", id.index()));
        assert!(started <= kept.from, "seed {seed}: promised for {:?}, started at {started:?}", kept.from);
        promised += 1;
    }
    assert!(promised > 20, "most gangs wait until room is kept for them: {promised}");
}

/// Two urgent jobs at a time fill the cluster, and the next is there before one ends.
#[test]
fn a_stream_of_urgent_jobs_does_not_keep_one_that_can_be_stopped_from_ending() {
    let urgent = |index: u64| {
        let spec = JobSpec { priority: Priority::HIGH, ..job(&format!("urgent-{index}"), 4, 300) };
        (index * 150, spec)
    };
    let meek = JobSpec { priority: Priority::LOW, ..job("meek", 4, 600) };
    let crowd = scenario(racks(1, 1, 8), (0..400).map(urgent).chain([(60, meek)]));
    let outcome = world::run(&crowd, RunOptions::new(policy("metronome")), &|_| {});
    let meek = outcome.jobs.iter().find(|job| &*job.name == "meek").expect("it was submitted");
    let last = outcome.jobs.iter().filter_map(|job| job.end).max();
    // Thirty times its length, its length, and as long as somebody urgent runs.
    let bound = Instant::START + Duration::from_secs(60 + 30 * 600 + 600 + 300);
    assert!(meek.end.is_some_and(|end| end <= bound), "{:?}", meek.end);
    assert!(last > Some(bound), "the stream goes on: {last:?}");
}
