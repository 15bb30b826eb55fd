//! The Workload: what the world takes and breaks, and the jobs that arrive in it.

use metronome_core::cluster::Cluster;
use metronome_core::units::{Duration, Instant, Share};
use serde_saphyr::Spanned;

use super::{Named, Origin, World, jobs, links, needs_network, trace_jobs};
use crate::scenario::documents::{FaultShape, JobShape, StepsShape, WorkloadSpec};
use crate::scenario::error::{InputError, Problem};
use crate::scenario::values::{Placed, Text, quantity, quantity_or_none, share, whole};
use crate::scenario::{Arrival, Costs, Fault};

#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) tick: Duration,
    pub(super) costs: Costs,
    pub(super) faults: Vec<Fault>,
}

pub(super) fn settings(
    workload: Option<&Named<WorkloadSpec>>,
    cluster: &Cluster,
) -> Result<Settings, Problem> {
    let Some(Named { spec, .. }) = workload else { return Ok(Settings::default()) };
    refuse_generated(spec)?;
    let costs = spec.costs.as_ref();
    Ok(Settings {
        tick: quantity_or_none(spec.tick.as_ref())?,
        costs: Costs {
            start: quantity_or_none(costs.and_then(|costs| costs.start.as_ref()))?,
            stop: quantity_or_none(costs.and_then(|costs| costs.stop.as_ref()))?,
        },
        faults: spec.faults.iter().map(|written| fault(written, cluster)).collect::<Result<_, _>>()?,
    })
}

/// What needs models and links to mean anything.
fn refuse_generated(spec: &WorkloadSpec) -> Result<(), Problem> {
    let arrivals = spec.arrivals.as_ref().map(|arrivals| &arrivals.value);
    let gpus = spec.gpus.as_ref().map(|gpus| &gpus.value);
    let generated = [
        ("arrivals.poisson", arrivals.and_then(|arrivals| arrivals.poisson.as_ref())),
        ("models", spec.models.as_ref()),
        ("gpus.powersOfTwo", gpus.and_then(|gpus| gpus.powers_of_two.as_ref())),
        ("gpus.from", gpus.and_then(|gpus| gpus.from.as_ref())),
        ("gpus.to", gpus.and_then(|gpus| gpus.to.as_ref())),
        ("duration", spec.duration.as_ref()),
        ("noise", spec.noise.as_ref()),
    ];
    match generated.into_iter().find_map(|(what, place)| Some((what, place?))) {
        Some((what, place)) => Err(needs_network(place, what)),
        None => Ok(()),
    }
}

fn fault(written: &Spanned<FaultShape>, cluster: &Cluster) -> Result<Fault, Problem> {
    match &written.value {
        FaultShape { node: Some(node), at: Some(at), lasts, steps: None } => Ok(Fault::Node {
            node: links::find_node(node, cluster)?,
            at: Instant::START + quantity(at)?,
            lasts: lasts.as_ref().map(quantity).transpose()?,
        }),
        FaultShape { node: None, at: None, lasts: None, steps: Some(steps) } => broken_steps(steps),
        FaultShape { node: Some(node), at: None, steps: None, .. } => {
            Err(node.problem("it is not said when the node goes").with_hint("add `at: 10s`"))
        }
        _ => Err(written.problem("a fault is either {node, at, for} or {steps: {fail, late, lost, delay}}")),
    }
}

fn broken_steps(written: &Spanned<StepsShape>) -> Result<Fault, Problem> {
    let StepsShape { fail, late, lost, delay } = &written.value;
    let chance = |text: &Option<Text>| text.as_ref().map_or(Ok(Share::NONE), share);
    let (fail, late, lost) = (chance(fail)?, chance(late)?, chance(lost)?);
    if fail.0 + late.0 + lost.0 > Share::WHOLE.0 {
        return Err(written.problem("the chances of a step sum to more than 1"));
    }
    let delay = quantity_or_none::<Duration>(delay.as_ref())?;
    if late != Share::NONE && delay.is_zero() {
        return Err(written.problem("steps come late by nothing").with_hint("add `delay: 10s`"));
    }
    Ok(Fault::Steps { fail, late, lost, delay })
}

/// Adds the jobs of the workload to those that have documents of their own.
pub(super) fn arrivals(
    workload: &Named<WorkloadSpec>,
    world: &World<'_>,
    origin: Origin<'_>,
    to: &mut Vec<Arrival>,
) -> Result<(), InputError> {
    let in_file = |problem: Problem| problem.in_file(origin.file);
    let spec = &workload.spec;
    let Some(arrivals) = &spec.arrivals else {
        return refuse_without_arrivals(spec).map_err(in_file);
    };
    match (&arrivals.value.trace, &arrivals.value.at) {
        (Some(trace), None) => trace_jobs::arrivals(trace, spec, world, origin, to),
        (None, Some(times)) => at_times(times, workload, world, to).map_err(in_file),
        _ => Err(in_file(arrivals.problem("arrivals are one of `trace` and `at`"))),
    }
}

fn refuse_without_arrivals(spec: &WorkloadSpec) -> Result<(), Problem> {
    let first = [spec.jobs.as_ref(), spec.limit.as_ref()].into_iter().flatten().map(Placed::at).next();
    match first.or_else(|| spec.job.as_ref().map(Placed::at)) {
        Some(place) => Err(place
            .problem("it is not said when jobs arrive")
            .with_hint("add arrivals: {trace: jobs.csv} or arrivals: {at: [0s, 10s]}")),
        None => Ok(()),
    }
}

/// The same job again and again.
fn at_times(
    times: &Spanned<Vec<Text>>,
    workload: &Named<WorkloadSpec>,
    world: &World<'_>,
    to: &mut Vec<Arrival>,
) -> Result<(), Problem> {
    let spec = &workload.spec;
    refuse_trace_settings(spec)?;
    let count = times.value.len() as u64;
    if let Some(jobs) = &spec.jobs
        && whole(jobs, 0..=u64::MAX)? != count
    {
        return Err(jobs.problem(format!("`jobs` says {}, `arrivals.at` has {count} times", jobs.value)));
    }
    let template: &Spanned<JobShape> = spec.job.as_ref().ok_or_else(|| {
        times.problem("it is not said what arrives").with_hint("add job: {members: 2, work: {duration: 10m}}")
    })?;
    let request = jobs::spec(&template.value, workload.name(), None, template.at(), world)?;
    for (index, time) in times.value.iter().enumerate() {
        let mut request = request.clone();
        request.spec.name = format!("{}-{index}", workload.name()).into();
        to.push(jobs::arrival(request, Instant::START + quantity(time)?));
    }
    Ok(())
}

fn refuse_trace_settings(spec: &WorkloadSpec) -> Result<(), Problem> {
    let settings = [
        ("gpus", spec.gpus.as_ref().map(Placed::at)),
        ("priorities", spec.priorities.as_ref().map(Placed::at)),
        ("checkpoint", spec.checkpoint.as_ref().map(Placed::at)),
        ("limit", spec.limit.as_ref().map(Placed::at)),
    ];
    match settings.into_iter().find_map(|(what, place)| Some((what, place?))) {
        Some((what, place)) => Err(place
            .problem(format!("`{what}` is for a trace"))
            .with_hint("with arrivals.at the job says it all: job: {checkpoint: {}}")),
        None => Ok(()),
    }
}
