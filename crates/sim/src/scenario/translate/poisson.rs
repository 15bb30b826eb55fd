//! A workload that is drawn: every number is checked here, so that drawing cannot fail.

use metronome_core::cluster::Cluster;
use metronome_core::job::JobSpec;
use metronome_core::units::{Cpu, Duration, Gpus, Memory, Share};
use serde_saphyr::Spanned;

use super::{Named, World, jobs, models, priorities, roles, users};
use crate::scenario::documents::{DurationShape, GpusShape, PoissonShape, ServersShape, WorkloadSpec};
use crate::scenario::draw::{Drawn, Durations, Servers, Sizes};
use crate::scenario::error::Problem;
use crate::scenario::members::MemberSize;
use crate::scenario::values::{
    Placed, check_name, number, quantity, quantity_or_none, share, some_quantity, whole,
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
    let gpus = spec.gpus.as_ref().ok_or_else(|| missing("gpus", "say how large: gpus: {from: 2, to: 32}"))?;
    let duration = spec
        .duration
        .as_ref()
        .ok_or_else(|| missing("duration", "say how long: duration: {median: 10m, sigma: 1.0}"))?;
    let sizes = sizes(gpus, world)?;
    let servers = spec.servers.as_ref().map(|written| servers(written, world)).transpose()?;
    largest_fits(&sizes, servers, gpus, world)?;
    let drawn = Drawn {
        name: workload.name().to_owned(),
        jobs: whole(count, 1..=MOST_JOBS)? as u32,
        load: load(poisson)?,
        models: spec
            .models
            .as_ref()
            .map_or(Ok(Vec::new()), |written| models::models(written, world.cluster))?,
        sizes,
        servers,
        durations: durations(duration)?,
        priorities: priorities::priorities(spec.priorities.as_ref())?,
        checkpointing: spec.checkpoint.as_ref().map(|shape| jobs::checkpointing(&shape.value)).transpose()?,
        noise: world.ground.noise.clone(),
        owners: users::owners(spec.users.as_ref(), world)?,
    };
    check_name(&drawn.name_of(drawn.jobs - 1)).map_err(|message| workload.at().problem(message))?;
    Ok(drawn)
}

fn load(poisson: &PoissonShape) -> Result<f64, Problem> {
    let load = number(&poisson.load, 0.0..=LARGEST_LOAD)?;
    if load == 0.0 {
        return Err(poisson.load.problem("a load is more than nothing"));
    }
    Ok(load)
}

fn durations(written: &Spanned<DurationShape>) -> Result<Durations, Problem> {
    let DurationShape { median, sigma, at_most } = &written.value;
    let durations = Durations {
        median: some_quantity(median, "the median duration")?,
        sigma: sigma.as_ref().map_or(Ok(0.0), |sigma| number(sigma, 0.0..=LARGEST_SIGMA))?,
        at_most: at_most.as_ref().map_or(Ok(LONGEST), quantity)?,
    };
    let place = at_most.as_ref().unwrap_or(median);
    if durations.at_most > LONGEST {
        return Err(place.problem("a job takes at most 365d"));
    }
    if durations.median > durations.at_most {
        return Err(place.problem(format!(
            "the median, {}, is above the longest, {}",
            durations.median, durations.at_most
        )));
    }
    Ok(durations)
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
