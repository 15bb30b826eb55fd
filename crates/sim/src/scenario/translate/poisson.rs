//! A workload that is drawn: every number is checked here, so that drawing cannot fail.

use metronome_core::model::cluster::Cluster;
use metronome_core::model::job::{Binding, JobSpec};
use metronome_core::model::units::{Cpu, Duration, Gpus, Memory, Share};
use serde_saphyr::Spanned;

use super::{Named, World, jobs, models, priorities, processes, roles, users};
use crate::scenario::documents::{
    DeadlinesShape, DurationShape, GpusShape, PoissonShape, ServersShape, WorkloadSpec,
};
use crate::scenario::draw::{Drawn, DrawnDeadlines, Durations, Servers, Sizes, Takes};
use crate::scenario::error::Problem;
use crate::scenario::members::MemberSize;
use crate::scenario::values::{
    Placed, Text, check_name, number, quantity, quantity_or_none, share, some_quantity, whole, word,
};

/// More jobs than any run has; above it a count is a mistake.
const MOST_JOBS: u64 = 1_000_000;
const LARGEST_LOAD: f64 = 2.0;
/// Beyond it the longest of a thousand jobs takes a million times as long as the median.
const LARGEST_SIGMA: f64 = 5.0;
const LONGEST: Duration = Duration(365 * 24 * Duration::HOUR.0);

pub(super) fn drawn(
    poisson: &PoissonShape,
    workload: &Named<WorkloadSpec>,
    world: &World<'_>,
) -> Result<Drawn, Problem> {
    let spec = &workload.spec;
    let missing = |what: &str, hint: &str| {
        poisson.load.problem(format!("missing field `{what}` beside `arrivals.poisson`")).with_hint(hint)
    };
    if let Some(job) = &spec.job {
        return Err(job.problem("`job` is for arrivals.at; here jobs are drawn"));
    }
    if let Some(limit) = &spec.limit {
        return Err(limit.problem("`limit` is for a trace").with_hint("say how many are drawn: jobs: 120"));
    }
    let count = spec.jobs.as_ref().ok_or_else(|| missing("jobs", "say how many are drawn: jobs: 120"))?;
    if spec.gpus.is_none() && spec.cpus.is_none() {
        let hint = "say how large: gpus: {from: 2, to: 32}, or cpus: {max: 32, asks: 4}";
        return Err(missing("gpus", hint));
    }
    let duration = spec
        .duration
        .as_ref()
        .ok_or_else(|| missing("duration", "say how long: duration: {median: 10m, sigma: 1.0}"))?;
    let servers = spec.servers.as_ref().map(|written| servers(written, world)).transpose()?;
    let takes = takes(spec, servers, poisson, world)?;
    let drawn = Drawn {
        name: workload.name().to_owned(),
        jobs: whole(count, 1..=MOST_JOBS)? as u32,
        load: load(poisson)?,
        models: spec
            .models
            .as_ref()
            .map_or(Ok(Vec::new()), |written| models::models(written, world.cluster))?,
        takes,
        servers,
        durations: durations(duration)?,
        priorities: priorities::priorities(spec.priorities.as_ref())?,
        checkpointing: spec.checkpoint.as_ref().map(|shape| jobs::checkpointing(&shape.value)).transpose()?,
        noise: world.ground.noise.clone(),
        owners: users::owners(spec.users.as_ref(), world)?,
        deadlines: spec.deadlines.as_ref().map(deadlines).transpose()?,
    };
    check_name(&drawn.name_of(drawn.jobs - 1)).map_err(|message| workload.at().problem(message))?;
    Ok(drawn)
}

fn takes(
    spec: &WorkloadSpec,
    servers: Option<Servers>,
    poisson: &PoissonShape,
    world: &World<'_>,
) -> Result<Takes, Problem> {
    if let Some(serial) = spec.serial.as_ref().filter(|_| spec.cpus.is_none()) {
        return Err(serial.problem("`serial` is for `cpus`"));
    }
    match (&spec.gpus, &spec.cpus) {
        (Some(_), Some(second)) => Err(second.problem("`gpus` and `cpus` are both given")),
        (None, Some(cpus)) => processes::drawn(cpus, spec, world).map(Takes::Cpus),
        (Some(gpus), None) => {
            let sizes = sizes(gpus, world)?;
            largest_fits(&sizes, servers, gpus, world)?;
            Ok(Takes::Gpus(sizes))
        }
        (None, None) => Err(poisson.load.problem("it is not said what jobs take")),
    }
}

fn load(poisson: &PoissonShape) -> Result<f64, Problem> {
    let load = number(&poisson.load, 0.0..=LARGEST_LOAD)?;
    if load == 0.0 {
        return Err(poisson.load.problem("a load is more than nothing"));
    }
    Ok(load)
}

/// Lognormal by its median, exponential by its mean, or any time between two bounds.
pub(super) fn durations(written: &Spanned<DurationShape>) -> Result<Durations, Problem> {
    let DurationShape { median, sigma, at_most, mean, at_least, from, to } = &written.value;
    let durations = match (median, mean, from, to) {
        (Some(median), None, None, None) if at_least.is_none() => {
            lognormal(median, sigma.as_ref(), at_most.as_ref())
        }
        (None, Some(mean), None, None) if sigma.is_none() => {
            exponential(mean, at_least.as_ref(), at_most.as_ref())
        }
        (None, None, Some(from), Some(to)) if sigma.is_none() && at_least.is_none() && at_most.is_none() => {
            uniform(from, to)
        }
        _ => Err(written
            .problem("durations are one of {median, sigma, atMost}, {mean, atLeast, atMost} and {from, to}")),
    }?;
    match durations.longest() > LONGEST {
        true => {
            let place = at_most.as_ref().or(to.as_ref()).map_or_else(|| written.at(), Placed::at);
            Err(place.problem("a job takes at most 365d"))
        }
        false => Ok(durations),
    }
}

fn lognormal(median: &Text, sigma: Option<&Text>, at_most: Option<&Text>) -> Result<Durations, Problem> {
    let place = at_most.unwrap_or(median);
    let (median, longest) =
        (some_quantity(median, "the median duration")?, at_most.map_or(Ok(LONGEST), quantity)?);
    if median > longest {
        return Err(place.problem(format!("the median, {median}, is above the longest, {longest}")));
    }
    let sigma = sigma.map_or(Ok(0.0), |sigma| number(sigma, 0.0..=LARGEST_SIGMA))?;
    Ok(Durations::Lognormal { median, sigma, at_most: longest })
}

fn exponential(mean: &Text, at_least: Option<&Text>, at_most: Option<&Text>) -> Result<Durations, Problem> {
    let place = at_most.or(at_least).unwrap_or(mean);
    let (mean, shortest) =
        (some_quantity(mean, "the mean duration")?, at_least.map_or(Ok(Duration(1)), quantity)?);
    let longest = at_most.map_or(Ok(LONGEST), quantity)?;
    if shortest > longest {
        return Err(place.problem(format!("the shortest, {shortest}, is above the longest, {longest}")));
    }
    Ok(Durations::Exponential { mean, at_least: shortest.max(Duration(1)), at_most: longest })
}

fn uniform(from: &Text, to: &Text) -> Result<Durations, Problem> {
    let (from, longest) = (some_quantity(from, "the shortest duration")?, quantity(to)?);
    match from > longest {
        true => Err(to.problem(format!("`from`, {from}, is above `to`, {longest}"))),
        false => Ok(Durations::Uniform { from, to: longest }),
    }
}

/// Beyond it a deadline is none.
const LARGEST_FACTOR: f64 = 1e6;

/// From so many to so many times the time that a job takes as it is asked for.
fn deadlines(written: &Spanned<DeadlinesShape>) -> Result<DrawnDeadlines, Problem> {
    let DeadlinesShape { from, to, binding } = &written.value;
    let factor = |text| number(text, 0.0..=LARGEST_FACTOR);
    let binding =
        binding.as_ref().map_or(Ok(Binding::Soft), |text| word(text, "binding", &jobs::BINDINGS))?;
    let deadlines = DrawnDeadlines { from: factor(from)?, to: factor(to)?, binding };
    if deadlines.from == 0.0 {
        return Err(from.problem("a deadline lies after submission"));
    }
    match deadlines.from > deadlines.to {
        true => Err(to.problem(format!("`from`, {}, is above `to`, {}", deadlines.from, deadlines.to))),
        false => Ok(deadlines),
    }
}

fn sizes(written: &Spanned<GpusShape>, world: &World<'_>) -> Result<Sizes, Problem> {
    let shape = &written.value;
    let cluster = (world.cluster.capacity().gpus.0 / Gpus::whole(1).0).min(u64::from(u32::MAX));
    let (Some(from), Some(to)) = (&shape.from, &shape.to) else {
        let message = "drawn sizes lie between `from` and `to`";
        return Err(written.problem(message).with_hint("say how large: gpus: {from: 2, to: 32}"));
    };
    let size = |text| whole(text, 1..=u64::from(u32::MAX)).map(|size| size as u32);
    let sizes = Sizes {
        powers_of_two: shape.powers_of_two.as_ref().map_or(Ok(Share::NONE), share)?,
        from: size(from)?,
        to: size(to)?,
        member: member_size(Some(written), world.cluster)?,
    };
    if sizes.from > sizes.to {
        return Err(to.problem(format!("`from`, {}, is above `to`, {}", sizes.from, sizes.to)));
    }
    if u64::from(sizes.to) > cluster {
        let message = format!("jobs of {} GPUs can never run: the cluster has {cluster}", sizes.to);
        return Err(to.problem(message));
    }
    if let Some(powers) = shape.powers_of_two.as_ref().filter(|_| sizes.powers_of_two != Share::NONE)
        && sizes.powers().next().is_none()
    {
        let message = format!("there is no power of two from {} to {}", sizes.from, sizes.to);
        return Err(powers.problem(message));
    }
    Ok(sizes)
}

/// More servers than any job has; above it a count is a mistake.
const MOST_SERVERS: u64 = 10_000;

fn servers(written: &Spanned<ServersShape>, world: &World<'_>) -> Result<Servers, Problem> {
    let ServersShape { from, to, resources } = &written.value;
    let count = |text| whole(text, 1..=MOST_SERVERS).map(|count| count as u32);
    let servers = Servers { from: count(from)?, to: count(to)?, each: roles::resources(resources)? };
    if servers.from > servers.to {
        return Err(to.problem(format!("`from`, {}, is above `to`, {}", servers.from, servers.to)));
    }
    let alone = JobSpec::workers("", servers.role(1).gang, servers.each);
    match world.fit.refusal(&alone, &world.gpu_types) {
        Some(why) => Err(written.problem(format!("a server can never run: it {why}"))),
        None => Ok(servers),
    }
}

/// Where the largest size has room every smaller one has: each of its members takes no more, and it has no more servers.
fn largest_fits(
    sizes: &Sizes,
    servers: Option<Servers>,
    gpus: &Spanned<GpusShape>,
    world: &World<'_>,
) -> Result<(), Problem> {
    let place = gpus.value.to.as_ref().map_or_else(|| gpus.at(), Placed::at);
    let roles = sizes.member.roles(Gpus::whole(u64::from(sizes.to)));
    let mut roles = roles.map_err(|error| place.problem(error.to_string()))?;
    let workers = roles.iter().map(|role| role.gang.min()).sum();
    roles.extend(servers.map(|servers| servers.role(servers.to.min(workers))));
    let gang = roles.first().map(|role| role.gang).expect("a size has members");
    let mut job = JobSpec::workers("", gang, Default::default());
    job.roles = roles;
    let why = match world.fit.refusal(&job, &world.gpu_types) {
        Some(why) => format!("such a job {why}"),
        None if world.ground.alone.fewest_nodes(&job).is_none() => "its members do not fit together".into(),
        None => return Ok(()),
    };
    Err(place.problem(format!("jobs of {} GPUs can never run: {why}", sizes.to)))
}

/// How a size in GPUs becomes members.
pub(super) fn member_size(
    written: Option<&Spanned<GpusShape>>,
    cluster: &Cluster,
) -> Result<MemberSize, Problem> {
    let shape = written.map(|written| &written.value);
    let beside = shape.and_then(|shape| shape.per_gpu.as_ref()).map(|beside| &beside.value);
    Ok(MemberSize {
        gpus: super::cluster::gpus_per_member(shape.and_then(|shape| shape.per_member.as_ref()), cluster)?,
        cpu_per_gpu: quantity_or_none::<Cpu>(beside.and_then(|beside| beside.cpu.as_ref()))?,
        memory_per_gpu: quantity_or_none::<Memory>(beside.and_then(|beside| beside.memory.as_ref()))?,
    })
}
