//! Hand-made outcomes that have everything a report can show: jobs that wait, train, are interrupted or hold nodes
//! for nothing, links at two levels, names that would like to be markup.

use metronome_core::model::cluster::Name;
use metronome_core::model::id::NodeId;
use metronome_core::model::job::Priority;
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Bandwidth, Duration, GpuTime, Gpus, Instant, Resources, Share};
use metronome_core::traffic::decision_inputs::What;
use metronome_core::traffic::{Follows, TrafficPolicy};
use metronome_sim::encounter::{Circle, Course, Encounter, JobCourse, Sharer};
use metronome_sim::outcome::{Because, Change, Fate, JobOutcome, LinkLoad, Outcome, Segment, Use};

/// A job with this name must not run.
pub(crate) const HOSTILE: &str = "</title><script>document.title='owned'</script>\"'&";

const NODES: usize = 24;

/// How the jobs of one policy fare.
#[derive(Clone, Copy)]
struct Manner {
    policy: &'static str,
    /// Training takes so many times as long as alone.
    slowed: f64,
    /// From here on, gangs only ever get half of their nodes.
    splits_after: Option<u64>,
}

const MANNERS: [Manner; 3] = [
    Manner { policy: "kubernetes", slowed: 1.25, splits_after: Some(9000) },
    Manner { policy: "coscheduling", slowed: 1.25, splits_after: None },
    Manner { policy: "metronome", slowed: 1.04, splits_after: None },
];

pub(crate) fn outcomes(jobs: usize) -> Vec<Outcome> {
    MANNERS.iter().map(|manner| outcome(*manner, jobs)).collect()
}

/// Numbers without a pattern for the eye, the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn outcome(manner: Manner, count: usize) -> Outcome {
    let mut numbers = Numbers(7);
    let mut free_at = [0_u64; NODES];
    let mut submit = 0;
    let mut jobs = Vec::new();
    for index in 0..count {
        submit += numbers.below(340);
        let wide = 1 + numbers.below(8) as usize;
        let alone = 120 + numbers.below(900) + numbers.below(900) * numbers.below(3);
        let priority = [Priority::HIGH, Priority::NORMAL, Priority::NORMAL, Priority::LOW, Priority::LOW]
            [numbers.below(5) as usize];
        let split = manner.splits_after.is_some_and(|after| submit > after && wide > 1);
        let start = start(&mut free_at, wide, submit, (alone as f64 * manner.slowed) as u64, split);
        jobs.push(job(index, priority, wide, submit, start, alone, manner, split));
    }
    finish(manner, jobs)
}

/// The first instant at which so many nodes are free; they are taken, for ever by a gang that was split.
fn start(free_at: &mut [u64; NODES], wide: usize, submit: u64, takes: u64, split: bool) -> u64 {
    let mut order: Vec<usize> = (0..NODES).collect();
    order.sort_by_key(|node| (free_at[*node], *node));
    let got = if split { wide.div_ceil(2) } else { wide };
    let start = order[..got].iter().map(|node| free_at[*node]).max().unwrap_or(0).max(submit);
    let until = if split { u64::MAX / 4 } else { start + takes };
    order[..got].iter().for_each(|node| free_at[*node] = until);
    start
}

#[expect(clippy::too_many_arguments, reason = "each is one fact of the job")]
fn job(
    index: usize,
    priority: Priority,
    wide: usize,
    submit: u64,
    start: u64,
    alone: u64,
    manner: Manner,
    split: bool,
) -> JobOutcome {
    let never = start >= u64::MAX / 4;
    let end = start.saturating_add((alone as f64 * manner.slowed) as u64);
    let (from, to) = (Instant::from_secs(start), Instant::from_secs(end));
    let stretch = |kind, from, to| Segment { kind, from, to, nodes: vec![NodeId(0); wide] };
    let (fate, segments) = match (split, never) {
        (_, true) => (Fate::Unfinished, Vec::new()),
        (true, _) => (Fate::Deadlocked, vec![stretch(Use::Holding, from, Instant::from_secs(ENDED))]),
        _ => (Fate::Completed, vec![stretch(Use::Training, from, to)]),
    };
    let done = fate == Fate::Completed;
    let reason = Reason::InsufficientResources { each: Resources::NONE, members: wide as u32, fit: 1 };
    JobOutcome {
        name: Name::from(if index == 3 { HOSTILE.to_owned() } else { format!("job-{index}") }),
        model: Some(format!("resnet{}/<512>", 18 + index % 4)),
        priority,
        user: Share(500_000),
        submit: Instant::from_secs(submit),
        start: done.then_some(from),
        end: done.then_some(to),
        ran: if done { to.since(from) } else { Duration::ZERO },
        alone: Duration::from_secs(alone),
        deadline: None,
        binding: None,
        taken: None,
        cpu: None,
        gpus: Gpus::whole(4 * wide as u64),
        members: wide as u32,
        nodes: wide as u32,
        fate,
        preemptions: 0,
        moves: 0,
        resizes: 0,
        resizes_in_place: 0,
        reached: None,
        wait_reason: (start > submit).then_some(reason),
        slowdown: done.then(|| 1.0 + (manner.slowed - 1.0) * (index % 9) as f64 / 4.0),
        exchange: None,
        segments,
    }
}

const ENDED: u64 = 24_000;

fn finish(manner: Manner, jobs: Vec<JobOutcome>) -> Outcome {
    let busy = jobs.iter().map(|job| GpuTime::of(job.gpus, job.ran)).fold(GpuTime::default(), |a, b| a + b);
    let last = jobs.iter().filter_map(|job| job.end).max().unwrap_or_default();
    let stuck = jobs.iter().any(|job| job.fate != Fate::Completed);
    Outcome {
        policy: manner.policy.into(),
        seed: 1,
        links: links(&jobs, manner),
        ended: if stuck { Instant::from_secs(ENDED) } else { last },
        gpu_capacity: Gpus::whole(4 * NODES as u64),
        gpu_peak: Some(Gpus::whole(4 * NODES as u64)),
        gpu_busy: busy,
        bin: Duration::from_secs(BIN),
        encounter: encounter(&jobs, manner),
        lane_changes: if manner.policy == "metronome" { 17 } else { 0 },
        changes: if manner.policy == "metronome" { changes() } else { Vec::new() },
        events: 0,
        alarms: 0,
        last_alarm: None,
        violations: Vec::new(),
        link_answers: Vec::new(),
        reconfigured: Default::default(),
        decision_nanos: Vec::new(),
        jobs,
    }
}

/// One of each kind of reason, for jobs with and without names that look like code.
fn changes() -> Vec<Change> {
    let hostile = || Name::from(HOSTILE);
    let became = [
        Because::Arrival(hostile()),
        Because::Departure(Name::from("job-1")),
        Because::Link {
            name: "rack-0 up".into(),
            was: Bandwidth(150_000_000_000),
            is: Bandwidth(75_000_000_000),
        },
        Because::Profile(hostile()),
        Because::Drift(Name::from("job-2")),
        Because::Priorities,
        Because::Room,
        Because::SlowNode(hostile()),
        Because::Drained(Name::from("node-3")),
    ];
    let change = |(at, because)| Change {
        at: Instant::from_secs(600 * at),
        because,
        what: if at >= 7 { What::Place } else { What::Lanes },
        jobs: (0..at).map(|job| Name::from(format!("job-{job}"))).collect(),
        saves: Duration::from_secs(90 * at),
    };
    (1..).zip(became).map(change).collect()
}

/// So many jobs meet on a link, if there are as many.
pub(crate) const MET: usize = 5;

/// Nobody under the first policy has come so far; under the others jobs meet, and the last has done something about it.
fn encounter(jobs: &[JobOutcome], manner: Manner) -> Option<Encounter> {
    if jobs.len() < MET || manner.splits_after.is_some() {
        return None;
    }
    let decides = manner.policy == "metronome";
    let lane = TrafficPolicy { class: 2, follows: Follows::BytesLeft, ..TrafficPolicy::default() };
    let sharer = |job: usize| Sharer {
        job,
        period: Duration::from_millis(200 * (1 + job as u64 % 2)),
        duty: 0.3,
        demand: 0.66,
        lane: if decides { lane } else { TrafficPolicy::default() },
    };
    Some(Encounter {
        at: Instant::from_secs(4000),
        link: "r1 up <&>".into(),
        rate: Bandwidth(150_000_000_000),
        circle: if decides {
            Circle::Common(Duration::from_millis(400))
        } else {
            Circle::Longest(Duration::from_millis(400))
        },
        sharers: (0..MET).map(sharer).collect(),
        more: 7,
        beyond: 2,
        fair: course(0.05, 1.4),
        decided: decides.then(|| course(0.18, 1.1)),
    })
}

const COLUMNS: usize = 480;

/// Each sends a fifth of the round, one after the other, so much later each time.
fn course(apart: f64, slowed: f64) -> Course {
    let begins = |job: usize| job as f64 * apart;
    let load = |job: usize| {
        let sends = |column: usize| {
            let round = (3 * column % COLUMNS) as f64 / COLUMNS as f64;
            if (begins(job)..begins(job) + 0.2).contains(&round) { 0.2 } else { 0.0 }
        };
        (0..COLUMNS).map(sends).collect()
    };
    let job = |job: usize| JobCourse {
        mean: Duration((200e6 * (1 + job % 2) as f64 * slowed) as u64),
        load: load(job),
        arcs: vec![(begins(job), begins(job) + 0.2)],
    };
    Course {
        span: Duration::from_millis(1200),
        jobs: (0..MET).map(job).collect(),
        more: vec![0.0; COLUMNS],
        crowded: vec![(0.1, 0.3)],
    }
}

const BIN: u64 = 60;

/// Busy as there are jobs that train, more so where they are spread.
fn links(jobs: &[JobOutcome], manner: Manner) -> Vec<LinkLoad> {
    let mut numbers = Numbers(11);
    let mut link = |name: String, level: &str, rate: Bandwidth, wildness: f64| {
        let bins: Vec<f64> = (0..ENDED / BIN)
            .map(|bin| {
                let now = Instant::from_secs(bin * BIN);
                let trains = |job: &&JobOutcome| {
                    job.start.is_some_and(|start| start <= now) && job.end.is_some_and(|end| end > now)
                };
                let share = jobs.iter().filter(trains).count() as f64 / 14.0;
                let share = share * manner.slowed * wildness * (0.3 + numbers.below(100) as f64 / 120.0);
                share.min(1.0) * rate.0 as f64 / 8.0 * BIN as f64
            })
            .collect();
        LinkLoad { name, level: level.into(), rate, carried: bins.iter().sum(), bins }
    };
    let racks = ["r0 up", "r0 down", "r1 up", "r1 down", "r2 up", "r2 down", "r3 up", "r3 down"];
    let mut links: Vec<LinkLoad> =
        racks.iter().map(|name| link((*name).into(), "rack", Bandwidth(150_000_000_000), 1.1)).collect();
    let nodes = (0..2 * NODES).map(|index| format!("n{} {}", index / 2, ["up", "down"][index % 2]));
    links.extend(nodes.map(|name| link(name, "node", Bandwidth(100_000_000_000), 0.6)));
    links
}
