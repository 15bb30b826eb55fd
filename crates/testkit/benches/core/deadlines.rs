//! What it costs to book everybody anew: thousands of jobs with deadlines, one of them done and one more come in each
//! cycle.

use std::sync::Arc;
use std::time::{Duration as WallTime, Instant as WallClock};

use metronome_core::engine::{Ending, Engine, Event};
use metronome_core::model::id::JobId;
use metronome_core::model::job::{Binding, Deadline, Gang, JobSpec, Life, OnMiss};
use metronome_core::model::units::{Duration, Instant};
use metronome_core::observe::scaling::{Scaling, Speed};
use metronome_testkit::build::{engine, gpus, policy, preemptible, racks};
use rand::RngExt;
use rand_pcg::Pcg64;

pub(crate) const NAME: &str = "deadlines-10000x5000";

const JOBS: usize = 5_000;
const CYCLES: usize = 100;
/// On nodes of eight GPUs.
const NODES: u32 = 1_250;
const SPEEDS: [u64; 6] = [1_000_000, 1_900_000, 3_500_000, 6_200_000, 10_500_000, 17_000_000];

pub(crate) fn measure() -> serde_json::Value {
    let mut bench = Bench {
        engine: engine(racks(25, NODES / 25, 8), policy("metronome")),
        now: Instant::START,
        random: Pcg64::new(1, 7),
    };
    for _ in 0..JOBS {
        bench.submit();
    }
    let cold = bench.decide();
    let mut times: Vec<WallTime> = (0..CYCLES).map(|_| bench.cycle()).collect();
    times.sort_unstable();
    let state = bench.engine.state();
    assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
    let booked = state.plan.timetable().iter().filter(|(_, entry)| entry.booking.is_some()).count();
    let ms = |time: WallTime| time.as_secs_f64() * 1e3;
    serde_json::json!({
        "bench": "core", "policy": NAME, "nodes": NODES, "running": state.plan.len(), "queued": state.jobs.len() - state.plan.len(),
        "booked": booked, "cold_ms": ms(cold), "p50_ms": ms(times[CYCLES / 2]), "p99_ms": ms(times[CYCLES * 99 / 100]),
        "max_ms": ms(times[CYCLES - 1]),
    })
}

struct Bench {
    engine: Engine,
    now: Instant,
    random: Pcg64,
}

impl Bench {
    /// Of minutes to days, due within one to three times as long as it takes with one member.
    fn submit(&mut self) {
        let mut spec = preemptible(JobSpec::workers("job", Gang::elastic(1, 32).unwrap(), gpus(1)));
        let seconds = 600 << self.random.random_range(0..8u32);
        spec.work.alone = Some(Duration::from_secs(seconds));
        let within = Duration::from_secs(seconds * self.random.random_range(60..300) / 100);
        let binding = if self.random.random_range(0..2) == 0 { Binding::Strict } else { Binding::Soft };
        spec.deadline = Some(Deadline { at: self.now + within, binding, value: 1, on_miss: OnMiss::Run });
        let sizes = SPEEDS.iter().enumerate().map(|(at, speed)| (1 << at, Speed(*speed)));
        spec.scaling = Some(Arc::new(Scaling::new(sizes.collect()).unwrap()));
        self.engine.submit(self.now, Arc::new(spec));
    }

    /// One decision, after which all it asks for is done.
    fn decide(&mut self) -> WallTime {
        let clock = WallClock::now();
        let mut steps = self.engine.poll(self.now).into_inner();
        let taken = clock.elapsed();
        while !steps.is_empty() {
            for step in steps {
                self.engine.observe(self.now, Event::StepDone { job: step.job, step: step.id });
            }
            steps = self.engine.poll(self.now).into_inner();
        }
        taken
    }

    fn cycle(&mut self) -> WallTime {
        self.now = self.now + Duration::from_secs(30);
        let runs = |job: &metronome_core::model::job::Job| matches!(job.life, Life::Running(_));
        let running: Vec<JobId> =
            self.engine.state().jobs.iter().filter(|(_, job)| runs(job)).map(|(id, _)| id).collect();
        let job = running[self.random.random_range(0..running.len())];
        self.engine.observe(self.now, Event::JobEnded { job, how: Ending::Completed });
        self.submit();
        self.decide()
    }
}
