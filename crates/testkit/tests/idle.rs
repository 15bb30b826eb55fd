//! Gangs that do not use the cores they have: they give them back, and have them again when they do.

use metronome_core::engine::Event;
use metronome_core::model::id::JobId;
use metronome_core::model::job::{Binding, Deadline, Gang, JobSpec, OnMiss};
use metronome_core::model::units::{Cpu, Duration, Instant, Iterations, Resources};
use metronome_core::observe::progress::Sample;
use metronome_testkit::build::{policy, preemptible, racks};
use metronome_testkit::drive::{Driver, Op};

/// Workers of one core each.
fn on_cores(name: &str, min: u64, max: u64) -> JobSpec {
    let core = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
    let mut spec = JobSpec::workers(name, Gang::elastic(min, max).unwrap(), core);
    spec.work.alone = Some(Duration::from_secs(100_000));
    preemptible(spec)
}

fn members(driver: &Driver, job: JobId) -> u32 {
    driver.engine.plan().get(job).map_or(0, |held| held.members())
}

/// A job uses so many millionths of a core for some minutes, and reports that every minute.
fn uses(driver: &mut Driver, job: JobId, cores: u64, minutes: u64) {
    for _ in 0..minutes {
        let before = driver.engine.job(job).and_then(|job| job.progress.latest?.used).unwrap_or_default();
        driver.apply(&Op::Pass(Duration::MINUTE));
        let used = before + Duration(Duration::MINUTE.0 / 1000 * (cores / 1000));
        let sample = Sample { at: driver.now, iterations: Iterations(0), loss: None, used: Some(used) };
        driver.engine.observe(driver.now, Event::Progress { job, sample });
        driver.settle();
    }
}

fn driver() -> Driver {
    Driver::new(racks(1, 1, 8), policy("metronome"))
}

#[test]
fn who_uses_less_than_it_has_gives_back_the_rest() {
    let mut driver = driver();
    let job = driver.submit(on_cores("job", 1, 8));
    driver.settle();
    assert_eq!(members(&driver, job), 8);
    uses(&mut driver, job, 3_500_000, 2);
    assert_eq!(members(&driver, job), 8, "one minute is no lull");
    uses(&mut driver, job, 3_500_000, 2);
    assert_eq!(members(&driver, job), 4);
    uses(&mut driver, job, 3_500_000, 10);
    assert_eq!(members(&driver, job), 4, "it uses most of these");
}

#[test]
fn who_comes_to_use_all_it_has_is_given_more_again() {
    let mut driver = driver();
    let job = driver.submit(on_cores("job", 1, 8));
    driver.settle();
    uses(&mut driver, job, 3_500_000, 4);
    assert_eq!(members(&driver, job), 4);
    uses(&mut driver, job, 4_000_000, 2);
    assert_eq!(members(&driver, job), 8);
    uses(&mut driver, job, 4_000_000, 20);
    assert_eq!(members(&driver, job), 5, "more was of no use to it");
}

#[test]
fn nobody_gives_back_of_its_least() {
    let mut driver = driver();
    let job = driver.submit(on_cores("job", 6, 8));
    driver.settle();
    uses(&mut driver, job, 500_000, 6);
    assert_eq!(members(&driver, job), 6);
}

#[test]
fn what_a_deadline_needs_is_kept() {
    let mut driver = driver();
    let at = Instant::from_secs(13_000);
    let deadline = Some(Deadline { at, binding: Binding::Strict, value: 1, on_miss: OnMiss::Run });
    let job = driver.submit(JobSpec { deadline, ..on_cores("job", 1, 8) });
    driver.settle();
    assert_eq!(members(&driver, job), 8);
    uses(&mut driver, job, 3_500_000, 6);
    assert_eq!(members(&driver, job), 8);
}
