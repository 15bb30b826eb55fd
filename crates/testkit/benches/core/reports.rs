//! What it costs that jobs report: ten thousand of them every ten seconds, for some minutes, as the part of one core that
//! taking reports and deciding by them needs.

use std::sync::Arc;
use std::time::{Duration as WallTime, Instant as WallClock};

use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::model::id::{IdVec, JobId};
use metronome_core::model::job::{Gang, JobSpec, Life, Target};
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Cpu, Duration, Instant, Iterations, Resources};
use metronome_core::observe::progress::Sample;
use metronome_testkit::build::{gpus, policy, preemptible, racks};
use rand::RngExt;
use rand_pcg::Pcg64;

pub(crate) const NAMES: [&str; 2] = ["reports-10000-gpus", "reports-10000-cores"];

const JOBS: u64 = 10_000;
const EVERY: u64 = 10;
const SECONDS: u64 = 300;

pub(crate) fn measure(name: &'static str) -> serde_json::Value {
    let shares_cores = name == NAMES[1];
    let cluster = if shares_cores { racks(25, 40, 8) } else { racks(25, 50, 8) };
    let queues = IdVec::from_iter([Queue::open("all")]);
    let mut bench = Bench {
        engine: Engine::new(cluster, queues, policy("metronome"), Settings::default()),
        now: Instant::START,
        random: Pcg64::new(1, 9),
        observing: WallTime::ZERO,
        deciding: WallTime::ZERO,
    };
    for index in 0..JOBS {
        bench.engine.submit(bench.now, Arc::new(job(index, shares_cores)));
    }
    bench.settle();
    (bench.observing, bench.deciding) = (WallTime::ZERO, WallTime::ZERO);
    for second in 1..=SECONDS {
        bench.second(second);
    }
    let state = bench.engine.state();
    assert_eq!(state.alarms, 0, "{:?}", state.last_alarm);
    let reports = (JOBS / EVERY * SECONDS) as f64;
    let of_a_core = |time: WallTime| time.as_secs_f64() / SECONDS as f64;
    serde_json::json!({
        "bench": "core", "policy": name, "running": state.plan.len(), "reports": reports,
        "us_a_report": bench.observing.as_secs_f64() * 1e6 / reports,
        "observing_of_a_core": of_a_core(bench.observing), "deciding_of_a_core": of_a_core(bench.deciding),
    })
}

/// One process with a target, on a GPU of its own or on cores that ten of them share.
fn job(index: u64, shares_cores: bool) -> JobSpec {
    let core = Resources { cpu: Cpu::cores(1), ..Resources::NONE };
    let each = if shares_cores { core } else { gpus(1) };
    let mut spec = preemptible(JobSpec::workers(&format!("job-{index}"), Gang::rigid(1).expect("one"), each));
    spec.work.target = Some(Target::AtMost(0.25));
    spec.work.cpu = shares_cores.then(|| Cpu::cores(16));
    spec
}

struct Bench {
    engine: Engine,
    now: Instant,
    random: Pcg64,
    observing: WallTime,
    deciding: WallTime,
}

impl Bench {
    fn settle(&mut self) {
        let clock = WallClock::now();
        let mut steps = self.engine.poll(self.now).into_inner();
        self.deciding += clock.elapsed();
        while !steps.is_empty() {
            for step in steps {
                self.engine.observe(self.now, Event::StepDone { job: step.job, step: step.id });
            }
            steps = self.engine.poll(self.now).into_inner();
        }
    }

    /// A tenth of all jobs report, and what follows is decided.
    fn second(&mut self, second: u64) {
        self.now = Instant::from_secs(second);
        let runs = |job: &metronome_core::model::job::Job| matches!(job.life, Life::Running(_));
        let state = self.engine.state();
        let reporting =
            state.jobs.iter().filter(|(id, job)| u64::from(id.0) % EVERY == second % EVERY && runs(job));
        let reports: Vec<(JobId, Sample)> = reporting
            .map(|(id, _)| id)
            .collect::<Vec<_>>()
            .into_iter()
            .map(|id| (id, self.sample(id, second)))
            .collect();
        let clock = WallClock::now();
        for (job, sample) in reports {
            self.engine.observe(self.now, Event::Progress { job, sample });
        }
        self.observing += clock.elapsed();
        self.settle();
    }

    /// A loss that falls at a pace of the job's own, with noise.
    fn sample(&mut self, id: JobId, second: u64) -> Sample {
        let pace = 1 + u64::from(id.0) % 7;
        let done = second * pace * 10;
        let loss = 1.0 / (0.002 * done as f64 + 0.5) + 0.2;
        let noise = 1.0 + 0.01 * (self.random.random::<f64>() - 0.5);
        Sample {
            at: self.now,
            iterations: Iterations(done),
            loss: Some(loss * noise),
            used: Some(Duration::from_secs(second * pace)),
        }
    }
}
