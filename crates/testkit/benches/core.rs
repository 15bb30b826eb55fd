//! `cargo xtask bench core`: what a decision costs. A full cluster with as many jobs waiting as running; a thousand
//! cycles with one event each, after each of which every waiting job holds a fresh verdict. Prints one JSON line a
//! case, then a table; how cost grows is read off the ratios. Names of cases, as in `metronome-10000x5000-200-queues`,
//! select those.

#[path = "core/deadlines.rs"]
mod deadlines;
#[path = "core/reports.rs"]
mod reports;

use std::sync::Arc;
use std::time::{Duration as WallTime, Instant as WallClock};

use metronome_core::engine::{Ending, Engine, Event, Settings};
use metronome_core::model::id::{JobId, NodeId, QueueId};
use metronome_core::model::job::{Gang, JobSpec, Life, Priority, Role, RoleKind, Shape};
use metronome_core::model::plan::Step;
use metronome_core::model::profile::{Bucket, Iteration, Profile};
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Bandwidth, Bytes, Cpu, Duration, Instant, Memory, Resources, Share};
use metronome_testkit::build::{gpu_member, linked_racks, policy, preemptible, racks};
use metronome_testkit::measure::peak_memory_mib;
use rand::RngExt;
use rand_pcg::Pcg64;

const CYCLES: usize = 1000;
const POLICIES: [&str; 4] = ["metronome", "volcano", "coscheduling", "tiresias"];

#[derive(Clone, Copy)]
struct Case {
    policy: &'static str,
    nodes: u32,
    running: usize,
    queued: usize,
    queues: u32,
    alike: Alike,
    links: Wiring,
}

/// Whether anything is known of links and of what jobs send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wiring {
    Unknown,
    Known,
}

/// Whether waiting jobs ask for the same things, so that many share a class, or each is a class of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alike {
    Many,
    None,
}

/// To each node, and from each rack of forty: a quarter of what its nodes can send.
const TO_NODES: Bandwidth = Bandwidth(100_000_000_000);
const TO_RACKS: Bandwidth = Bandwidth(1_000_000_000_000);

impl Case {
    /// What the case is called on the command line: `metronome-10000x5000` and, where it has them, its `-200-queues`,
    /// `-unalike` or `-links`.
    fn name(&self) -> String {
        let Self { policy, nodes, running, .. } = self;
        let queues = if self.queues > 1 { format!("-{}-queues", self.queues) } else { String::new() };
        let unalike = if self.alike == Alike::None { "-unalike" } else { "" };
        let links = if self.links == Wiring::Known { "-links" } else { "" };
        format!("{policy}-{nodes}x{running}{queues}{unalike}{links}")
    }
}

const LARGEST: Case = Case {
    policy: "metronome",
    nodes: 10_000,
    running: 5_000,
    queued: 5_000,
    queues: 1,
    alike: Alike::Many,
    links: Wiring::Unknown,
};

fn main() {
    let policies = POLICIES.map(|policy| Case { policy, ..LARGEST });
    let nodes = [(1_000, 500), (3_000, 1_500)];
    let nodes = nodes.map(|(nodes, jobs)| Case { nodes, running: jobs, queued: jobs, ..LARGEST });
    let jobs = [500, 1_500].map(|jobs| Case { running: jobs, queued: jobs, ..LARGEST });
    let queues = [20, 200].map(|queues| Case { queues, ..LARGEST });
    let unalike = [Case { alike: Alike::None, ..LARGEST }];
    let links = [(1_000, 500), (3_000, 1_500), (10_000, 5_000)];
    let links = links.map(|(nodes, jobs)| Case { nodes, running: jobs, queued: jobs, ..LARGEST });
    let links = links.map(|case| Case { links: Wiring::Known, ..case });
    let cases = policies.into_iter().chain(queues).chain(nodes).chain(jobs).chain(unalike).chain(links);
    let wanted: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let cases = cases.filter(|case| wanted.is_empty() || wanted.contains(&case.name()));
    let mut rows: Vec<serde_json::Value> = cases.map(|case| measure(&case)).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if is_wanted(deadlines::NAME) {
        let row = deadlines::measure();
        println!("{row}");
        rows.push(row);
    }
    for name in reports::NAMES.into_iter().filter(|name| is_wanted(name)) {
        println!("{}", reports::measure(name));
    }
    print_table(&rows);
}

const COLUMNS: [(&str, &str); 13] = [
    ("nodes", "nodes"),
    ("running", "running"),
    ("queued", "queued"),
    ("queues", "queues"),
    ("classes", "classes"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
    ("max ms", "max_ms"),
    ("cold ms", "cold_ms"),
    ("gang512 ms", "gang512_ms"),
    ("servers ms", "servers16_256_ms"),
    ("victims ms", "victims512_ms"),
    ("verdict ms", "verdict512_ms"),
];

fn print_table(rows: &[serde_json::Value]) {
    let head: String = COLUMNS.iter().map(|(head, _)| format!(" {head:>10}")).collect();
    println!("\n{:<13}{head}", "policy");
    for row in rows {
        let figure = |key: &str| match &row[key] {
            number if number.is_u64() => format!(" {number:>10}"),
            number => number.as_f64().map_or(format!(" {:>10}", "–"), |ms| format!(" {ms:>10.3}")),
        };
        let figures: String = COLUMNS.iter().map(|(_, key)| figure(key)).collect();
        println!("{:<13}{figures}", row["policy"].as_str().unwrap_or_default());
    }
}

fn measure(case: &Case) -> serde_json::Value {
    let mut bench = Bench::new(case);
    let cold = bench.fill();
    let (running, queued) = bench.counts();
    let classes = bench.engine.snapshot().waiting.classes().count();
    let mut times: Vec<WallTime> = (0..CYCLES).map(|_| bench.one_event()).collect();
    times.sort_unstable();
    bench.cancel_waiting();
    let verdict = bench.refuse(of_priority(Priority::LOW, large_gang()));
    let victims = bench.displace(of_priority(Priority(Priority::HIGH.0 + 1), large_gang()));
    bench.cancel_waiting();
    bench.empty_half();
    let gang512 = bench.start(large_gang());
    let servers = bench.start(with_servers(16, 256));
    let few_servers = bench.start(with_servers(4, 16));
    assert_eq!(bench.engine.state().alarms, 0, "{:?}", bench.engine.state().last_alarm);
    let ms = |time: WallTime| time.as_secs_f64() * 1e3;
    let line = serde_json::json!({
        "bench": "core", "policy": case.policy, "nodes": case.nodes, "running": running, "queued": queued,
        "queues": case.queues, "classes": classes, "links": case.links == Wiring::Known,
        "p50_ms": ms(times[CYCLES / 2]), "p99_ms": ms(times[CYCLES * 99 / 100]), "max_ms": ms(times[CYCLES - 1]),
        "most_steps": bench.most_steps, "cold_ms": ms(cold), "gang512_ms": ms(gang512), "verdict512_ms": verdict.map(ms), "victims512_ms": victims.map(ms),
        "servers16_256_ms": ms(servers), "servers4_16_ms": ms(few_servers), "peak_mib": peak_memory_mib(),
    });
    println!("{line}");
    line
}

struct Bench {
    engine: Engine,
    now: Instant,
    chance: Pcg64,
    running: usize,
    queued: usize,
    /// GPUs of a running job on average: so many fill the cluster.
    width: u64,
    queues: u32,
    submitted: u64,
    alike: Alike,
    links: Wiring,
    /// The most steps that followed from one event.
    most_steps: usize,
}

impl Bench {
    fn new(case: &Case) -> Self {
        let racks = match case.links {
            Wiring::Unknown => racks(case.nodes / 40, 40, 8),
            Wiring::Known => linked_racks(case.nodes / 40, 40, 8, TO_NODES, TO_RACKS),
        };
        let queue = |index| Queue { weight: 1 + index % 4, ..Queue::open(&format!("queue-{index}")) };
        let queues = (0..case.queues).map(queue).collect();
        Self {
            engine: Engine::new(racks, queues, policy(case.policy), Settings::default()),
            now: Instant::START,
            chance: Pcg64::new(42, 1),
            running: case.running,
            queued: case.queued,
            width: u64::from(case.nodes) * 8 / case.running as u64,
            queues: case.queues,
            submitted: 0,
            alike: case.alike,
            links: case.links,
            most_steps: 0,
        }
    }

    /// Sizes around the mean, members of one to eight GPUs, three priorities, some thirty distinct lengths.
    fn job(&mut self) -> Arc<JobSpec> {
        let each = [1, 2, 4, 8][self.chance.random_range(0..4)];
        let members = (self.width * self.chance.random_range(50..150) / 100 / each).max(1);
        let name = format!("job-{}", self.submitted);
        self.submitted += 1;
        let mut spec = JobSpec::workers(&name, Gang::rigid(members).expect("at least one"), gpu_member(each));
        spec.priority = [Priority::LOW, Priority::NORMAL, Priority::HIGH][self.chance.random_range(0..3)];
        spec.work.alone = Some(Duration::from_secs(60 * self.chance.random_range(1..300)));
        spec.queue = QueueId(self.chance.random_range(0..self.queues));
        if self.links == Wiring::Known {
            self.train(&mut spec);
        }
        if self.alike == Alike::None {
            spec.user = Share(self.chance.random_range(0..Share::WHOLE.0));
        }
        Arc::new(preemptible(spec))
    }

    /// Lets a job train one of some twenty models: compute, then gradients that take a tenth to half of an iteration.
    fn train(&mut self, spec: &mut JobSpec) {
        let (compute, part) = (self.chance.random_range(1..=5) * 60, self.chance.random_range(1..=4));
        let bytes = Bytes(TO_NODES.0 / 8 * compute * part / 8 / 1000);
        let profile = Profile::new(Vec::new(), None).expect("nothing is wrong with nothing");
        let buckets = vec![Bucket { ready: Duration::from_millis(compute), bytes }];
        let iteration =
            Iteration { compute: Duration::from_millis(compute), buckets, finish: Duration::ZERO };
        spec.profile = Some(Arc::new(profile.reducing(iteration)));
    }

    fn submit(&mut self) {
        let job = self.job();
        self.engine.submit(self.now, job);
    }

    fn carry_out(&mut self, steps: Vec<Step>) {
        for step in steps {
            self.engine.observe(self.now, Event::StepDone { job: step.job, step: step.id });
        }
    }

    fn settle(&mut self) {
        loop {
            let steps = self.engine.poll(self.now).into_inner();
            if steps.is_empty() {
                return;
            }
            self.carry_out(steps);
        }
    }

    fn counts(&self) -> (usize, usize) {
        (self.engine.plan().len(), self.engine.snapshot().waiting.len())
    }

    /// Submits everything at once and decides: the cold cycle. Then tops up the queue.
    fn fill(&mut self) -> WallTime {
        for _ in 0..self.running + self.queued {
            self.submit();
        }
        let clock = WallClock::now();
        let steps = self.engine.poll(self.now).into_inner();
        let cold = clock.elapsed();
        self.carry_out(steps);
        self.settle();
        while self.counts().1 < self.queued {
            self.submit();
        }
        self.settle();
        cold
    }

    /// One event, one poll, and the verdict of every waiting job; what follows from it is not part of the measure.
    fn one_event(&mut self) -> WallTime {
        self.now = self.now + Duration::from_secs(7);
        let event = self.next_event();
        let clock = WallClock::now();
        self.engine.observe(self.now, event);
        let steps = self.engine.poll(self.now).into_inner();
        let mut verdicts = 0;
        for (_, class) in self.engine.snapshot().waiting.classes() {
            verdicts += class.line.iter().filter(|place| self.engine.verdict(place.job).is_some()).count();
        }
        let time = clock.elapsed();
        assert_eq!(verdicts, self.counts().1, "every waiting job has a reason");
        self.most_steps = self.most_steps.max(steps.len());
        self.carry_out(steps);
        self.settle();
        time
    }

    fn next_event(&mut self) -> Event {
        match self.chance.random_range(0..10) {
            0 => Event::NodeCordoned(self.a_node()),
            1 => Event::NodeBack(self.a_node()),
            _ if self.counts().1 < self.queued => Event::JobSubmitted(self.job()),
            _ => Event::JobEnded { job: self.a_running_job(), how: Ending::Completed },
        }
    }

    fn a_node(&mut self) -> NodeId {
        NodeId(self.chance.random_range(0..self.engine.state().cluster.nodes().len() as u32))
    }

    fn a_running_job(&mut self) -> JobId {
        let runs = |id: &JobId| matches!(self.engine.life(*id), Some(Life::Running(_)));
        let running: Vec<JobId> = self.engine.plan().iter().map(|(id, _)| id).filter(runs).collect();
        running[self.chance.random_range(0..running.len())]
    }

    fn cancel_waiting(&mut self) {
        let waiting: Vec<JobId> = self
            .engine
            .snapshot()
            .waiting
            .classes()
            .flat_map(|(_, class)| class.line.iter().map(|place| place.job))
            .collect();
        for job in waiting {
            self.engine.observe(self.now, Event::JobCancelled(job));
        }
        self.settle();
    }

    /// Half of those who run are done.
    fn empty_half(&mut self) {
        let half: Vec<JobId> = self.engine.plan().iter().map(|(id, _)| id).step_by(2).collect();
        for job in half {
            self.engine.observe(self.now, Event::JobEnded { job, how: Ending::Completed });
        }
        self.settle();
    }

    /// How long it takes until a gang that does not fit knows why; none where it takes others' places.
    fn refuse(&mut self, spec: JobSpec) -> Option<WallTime> {
        let clock = WallClock::now();
        let job = self.engine.submit(self.now, Arc::new(spec));
        let steps = self.engine.poll(self.now).into_inner();
        let verdict = self.engine.verdict(job);
        let time = clock.elapsed();
        let waits = verdict.is_some() && steps.is_empty();
        self.carry_out(steps);
        self.engine.observe(self.now, Event::JobCancelled(job));
        self.settle();
        waits.then_some(time)
    }

    /// How long it takes until a gang has found whose place to take, and they are told; none where nobody is.
    fn displace(&mut self, spec: JobSpec) -> Option<WallTime> {
        let clock = WallClock::now();
        let job = self.engine.submit(self.now, Arc::new(spec));
        let steps = self.engine.poll(self.now).into_inner();
        let time = clock.elapsed();
        let told = steps.len();
        self.carry_out(steps);
        self.engine.observe(self.now, Event::JobCancelled(job));
        self.settle();
        (told > 0).then_some(time)
    }

    /// How long a gang takes from submission to its steps.
    fn start(&mut self, spec: JobSpec) -> WallTime {
        let clock = WallClock::now();
        let job = self.engine.submit(self.now, Arc::new(preemptible(spec)));
        let steps = self.engine.poll(self.now).into_inner();
        let time = clock.elapsed();
        assert!(steps.iter().any(|step| step.job == job), "the gang starts");
        time
    }
}

fn large_gang() -> JobSpec {
    JobSpec::workers("large", Gang::rigid(512).expect("a gang"), gpu_member(4))
}

fn of_priority(priority: Priority, spec: JobSpec) -> JobSpec {
    JobSpec { priority, ..spec }
}

/// Parameter servers beside workers of four GPUs.
fn with_servers(servers: u64, workers: u64) -> JobSpec {
    let mut spec = JobSpec::workers("servers", Gang::rigid(workers).expect("a gang"), gpu_member(4));
    let each = Resources { cpu: Cpu::cores(4), memory: Memory::gib(16), ..Resources::NONE };
    let gang = Gang::rigid(servers).expect("a gang");
    spec.roles.push(Role { kind: RoleKind::Ps, gang, shape: Shape::of(each) });
    spec
}
