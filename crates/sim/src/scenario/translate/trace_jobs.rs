//! Jobs from a trace: a size in GPUs becomes members, a row becomes a job.

use std::collections::HashSet;
use std::sync::Arc;

use metronome_core::cluster::Name;
use metronome_core::id::QueueId;
use metronome_core::job::{
    Checkpointing, Gang, GangError, JobSpec, Priority, Role, RoleKind, Shape, Topology, Work,
};
use metronome_core::units::{Duration, Gpus, Instant, Resources};
use rand::Rng;
use rand_pcg::Pcg32;
use serde_saphyr::Spanned;

use super::{Origin, World, jobs};
use crate::scenario::Arrival;
use crate::scenario::documents::{PrioritiesShape, WorkloadSpec};
use crate::scenario::error::{InputError, Position, Problem, quoted};
use crate::scenario::values::{Placed, Text, share, whole};
use crate::trace::{Row, Trace};

/// What the workload says about every row.
struct Settings<'a> {
    per_member: Gpus,
    checkpointing: Option<Checkpointing>,
    priorities: Priorities,
    limit: usize,
    world: &'a World<'a>,
}

pub(super) fn arrivals(
    file: &Text,
    spec: &WorkloadSpec,
    world: &World<'_>,
    origin: Origin<'_>,
    to: &mut Vec<Arrival>,
) -> Result<(), InputError> {
    let mut settings = settings(spec, world).map_err(|problem| problem.in_file(origin.file))?;
    let named = format!("it is the trace of {}:{}", origin.file, file.at().line);
    let trace = Trace::open(&origin.folder.join(&file.value));
    let mut trace = trace.map_err(|error| error.or_hint(named))?;
    let mut names: HashSet<Name> = HashSet::new();
    let first = to.len();
    while let Some(row) = trace.next()? {
        let at = Position::line(row.line);
        let arrival = job(&row, &mut settings).map_err(|problem| problem.in_file(trace.file()))?;
        if !names.insert(arrival.spec.name.clone()) {
            let message = format!("a second job is called {}", quoted(&arrival.spec.name));
            return Err(Problem::at(at, message).in_file(trace.file()));
        }
        to.push(arrival);
    }
    if to.len() == first {
        return Err(Problem::whole("there are no jobs in it").in_file(trace.file()));
    }
    to[first..].sort_by_key(|job| job.at);
    to.truncate(first + settings.limit.min(to.len() - first));
    Ok(())
}

fn settings<'a>(spec: &WorkloadSpec, world: &'a World<'a>) -> Result<Settings<'a>, Problem> {
    if let Some(job) = &spec.job {
        return Err(job.problem("`job` is for arrivals.at; a trace has its own jobs"));
    }
    if let Some(jobs) = &spec.jobs {
        return Err(jobs
            .problem("`jobs` is for arrivals that are made up")
            .with_hint("to cut a trace, use `limit`"));
    }
    let per_member = spec.gpus.as_ref().and_then(|gpus| gpus.value.per_member.as_ref());
    let checkpoint = spec.checkpoint.as_ref().map(|checkpoint| jobs::checkpointing(&checkpoint.value));
    Ok(Settings {
        per_member: super::cluster::gpus_per_member(per_member, world.cluster)?,
        checkpointing: checkpoint.transpose()?,
        priorities: spec.priorities.as_ref().map(Priorities::from).transpose()?.unwrap_or_default(),
        limit: spec.limit.as_ref().map_or(Ok(u64::MAX), |limit| whole(limit, 1..=u64::MAX))? as usize,
        world,
    })
}

fn job(row: &Row<'_>, settings: &mut Settings<'_>) -> Result<Arrival, Problem> {
    let line = Position::line(row.line);
    let queues = settings.world.queues;
    let queue = row.queue.map_or(Ok(QueueId(0)), |name| {
        let unknown =
            || line.problem(format!("there is no queue {}", quoted(name))).with_hint(queues.near(name));
        queues.find(name).ok_or_else(unknown)
    })?;
    let at = Instant::START + row.submit;
    let (roles, alone) = members(row, settings.per_member).map_err(|message| line.problem(message))?;
    let spec = JobSpec {
        name: Name::from(row.job),
        queue,
        priority: row.priority.unwrap_or_else(|| settings.priorities.draw()),
        user: queues.standing(queue, row.user),
        roles,
        work: Work { iterations: row.iterations, alone: Some(alone) },
        deadline: row.deadline.map(|within| at + within),
        topology: Topology::Anywhere,
        capabilities: jobs::capabilities(settings.checkpointing.is_some()),
        checkpointing: settings.checkpointing,
        profile: None,
        start_retries: JobSpec::DEFAULT_START_RETRIES,
        suspended: false,
    };
    Ok(Arrival { at, spec: Arc::new(spec), training: None })
}

/// The roles of a row, and how long they take at their smallest.
fn members(row: &Row<'_>, per_member: Gpus) -> Result<(Vec<Role>, Duration), String> {
    let text = |error: GangError| error.to_string();
    let (min, max) = (row.min_gpus.unwrap_or(row.gpus), row.max_gpus.unwrap_or(row.gpus));
    if min > row.gpus || row.gpus > max {
        return Err(format!("{} GPUs are not between min_gpus {min} and max_gpus {max}", row.gpus));
    }
    if min == max {
        return rigid(row.gpus, per_member).map(|roles| (roles, row.duration)).map_err(text);
    }
    let each = common_size(min, max, per_member);
    let gang = Gang::elastic(min.0 / each.0, max.0 / each.0).map_err(text)?;
    Ok((vec![worker(gang, each)], at_smallest(row, min)))
}

/// As many full members as there are, and one for the rest.
fn rigid(gpus: Gpus, per_member: Gpus) -> Result<Vec<Role>, GangError> {
    let (full, rest) = (gpus.0 / per_member.0, Gpus(gpus.0 % per_member.0));
    let mut roles = Vec::with_capacity(2);
    if full > 0 {
        roles.push(worker(Gang::rigid(full)?, per_member));
    }
    if !rest.is_zero() {
        roles.push(worker(Gang::rigid(1)?, rest));
    }
    Ok(roles)
}

fn worker(gang: Gang, gpus: Gpus) -> Role {
    let each = Resources { gpus, ..Resources::NONE };
    Role { kind: RoleKind::Worker, gang, shape: Shape { each, on: Default::default() } }
}

/// The largest member, up to `per_member`, of which both sizes are whole multiples.
fn common_size(min: Gpus, max: Gpus, per_member: Gpus) -> Gpus {
    let (mut a, mut b) = (min.0, max.0);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    let common = a;
    let divisors = (1..=common.isqrt()).filter(|part| common.is_multiple_of(*part));
    let sizes = divisors.flat_map(|part| [part, common / part]).filter(|size| *size <= per_member.0);
    Gpus(sizes.max().expect("one divides everything"))
}

/// Work is told at the smallest size; an elastic job is taken to speed up with its GPUs.
fn at_smallest(row: &Row<'_>, min: Gpus) -> Duration {
    let total = u128::from(row.duration.0) * u128::from(row.gpus.0);
    Duration(u64::try_from(total.div_ceil(u128::from(min.0))).unwrap_or(u64::MAX / 2).min(u64::MAX / 2))
}

/// How jobs that name no priority get one: drawn once, by the order of the trace, the same in every run.
#[derive(Debug)]
struct Priorities {
    high: u32,
    normal: u32,
    random: Pcg32,
}

impl Default for Priorities {
    fn default() -> Self {
        Self { high: 0, normal: 1_000_000, random: Pcg32::new(0, 0) }
    }
}

impl Priorities {
    fn from(written: &Spanned<PrioritiesShape>) -> Result<Self, Problem> {
        let PrioritiesShape { high, normal, low } = &written.value;
        let part = |text: &Option<Text>| text.as_ref().map_or(Ok(0), |text| share(text).map(|share| share.0));
        let (high, normal, low) = (part(high)?, part(normal)?, part(low)?);
        if high + normal + low != 1_000_000 {
            let sum = f64::from(high + normal + low) / 1e6;
            return Err(written.problem(format!("the priorities sum to {sum} instead of 1")));
        }
        Ok(Self { high, normal, ..Self::default() })
    }

    fn draw(&mut self) -> Priority {
        match self.random.next_u32() % 1_000_000 {
            part if part < self.high => Priority::HIGH,
            part if part < self.high + self.normal => Priority::NORMAL,
            _ => Priority::LOW,
        }
    }
}
