//! The Workload: what the world takes and breaks, and the jobs that arrive in it.

use metronome_core::model::cluster::Cluster;
use metronome_core::model::units::{Duration, Instant, Share};
use serde_saphyr::Spanned;

use super::{Named, Origin, World, faults, jobs, learners, poisson, trace_jobs};
use crate::scenario::documents::{EstimatesShape, JobShape, WorkloadSpec};
use crate::scenario::error::{InputError, Position, Problem};
use crate::scenario::values::{Placed, Text, check_name, quantity, quantity_or_none, share, whole, word};
use crate::scenario::{Arrival, Costs, Departures, Fault, Rounds, Source};
use crate::world::Estimates;

#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) round: Duration,
    pub(super) rounds: Rounds,
    pub(super) tick: Duration,
    pub(super) costs: Costs,
    pub(super) departures: Departures,
    pub(super) estimates: Estimates,
    pub(super) faults: Vec<Fault>,
}

pub(super) fn settings(
    workload: Option<&Named<WorkloadSpec>>,
    cluster: &Cluster,
) -> Result<Settings, Problem> {
    let Some(Named { spec, .. }) = workload else { return Ok(Settings::default()) };
    let costs = spec.costs.as_ref();
    Ok(Settings {
        round: quantity_or_none(spec.round.as_ref())?,
        rounds: spec.rounds.as_ref().map_or(Ok(Rounds::default()), rounds)?,
        tick: quantity_or_none(spec.tick.as_ref())?,
        costs: Costs {
            start: quantity_or_none(costs.and_then(|costs| costs.start.as_ref()))?,
            stop: quantity_or_none(costs.and_then(|costs| costs.stop.as_ref()))?,
        },
        departures: spec.departures.as_ref().map_or(Ok(Departures::default()), |text| {
            word(
                text,
                "word for departures",
                &[("whenDone", Departures::WhenDone), ("never", Departures::Never)],
            )
        })?,
        estimates: spec.estimates.as_ref().map_or(Ok(Estimates::Exact), estimates)?,
        faults: faults::faults(&spec.faults, cluster)?,
    })
}

fn rounds(text: &Text) -> Result<Rounds, Problem> {
    let words = [("onMultiples", Rounds::OnMultiples), ("fromLastDecision", Rounds::FromLastDecision)];
    word(text, "word for rounds", &words)
}

fn estimates(shape: &EstimatesShape) -> Result<Estimates, Problem> {
    let error = share(&shape.error)?;
    let of = shape.of.as_ref().map_or(Ok(Of::Lengths), |text| {
        word(text, "word for what is estimated", &[("lengths", Of::Lengths), ("scaling", Of::Scaling)])
    })?;
    match error {
        Share::NONE => Ok(Estimates::Exact),
        Share::WHOLE => Err(shape.error.problem("an error is less than the whole: nothing takes no time")),
        error => Ok(match of {
            Of::Lengths => Estimates::Uniform { error },
            Of::Scaling => Estimates::Scaling { error },
        }),
    }
}

/// What is misjudged.
#[derive(Clone, Copy, Debug)]
enum Of {
    Lengths,
    Scaling,
}

/// Who never leaves never ends an iteration either: that is for jobs without any.
pub(super) fn check_departures(
    workload: Option<&Named<WorkloadSpec>>,
    departures: Departures,
    sources: &[Source],
) -> Result<(), Problem> {
    let trains = |source: &Source| match source {
        Source::Listed(arrivals) => arrivals.iter().any(|arrival| arrival.training.is_some()),
        Source::Drawn(_) | Source::Learners(_) => true,
    };
    let written = workload.and_then(|document| document.spec.departures.as_ref());
    match written.filter(|_| departures == Departures::Never && sources.iter().any(trains)) {
        Some(text) => Err(text.problem("jobs that are drawn or have a model leave when they are done")),
        None => Ok(()),
    }
}

/// Where the jobs of the workload come from, beside those that have documents of their own.
pub(super) fn source(
    workload: &Named<WorkloadSpec>,
    world: &World<'_>,
    origin: Origin<'_>,
) -> Result<Option<Source>, InputError> {
    let in_file = |problem: Problem| problem.in_file(origin.file);
    let spec = &workload.spec;
    let Some(arrivals) = &spec.arrivals else {
        return refuse_without_arrivals(spec).map(|()| None).map_err(in_file);
    };
    let shape = &arrivals.value;
    if let Some(within) = &shape.within {
        if shape.trace.is_some() || shape.at.is_some() || shape.poisson.is_some() {
            return Err(in_file(
                arrivals.problem("arrivals are one of `trace`, `at`, `poisson` and `within`"),
            ));
        }
        refuse_drawing(spec, "learners have their own").map_err(in_file)?;
        let drawn = learners::drawn(within, workload, world).map_err(in_file)?;
        return Ok(Some(Source::Learners(Box::new(drawn))));
    }
    if let Some(learners) = &spec.learners {
        return Err(in_file(learners.problem("`learners` are for arrivals.within")));
    }
    match (&shape.trace, &shape.at, &shape.poisson) {
        (Some(trace), None, None) => {
            refuse_drawing(spec, "a trace has its own").map_err(in_file)?;
            trace_jobs::arrivals(trace, spec, world, origin).map(Source::Listed)
        }
        (None, Some(times), None) => {
            refuse_drawing(spec, "with arrivals.at the job says it all").map_err(in_file)?;
            at_times(times, workload, world).map(Source::Listed).map_err(in_file)
        }
        (None, None, Some(poisson)) => poisson::drawn(poisson, workload, world)
            .map(|drawn| Source::Drawn(Box::new(drawn)))
            .map_err(in_file),
        _ => Err(in_file(arrivals.problem("arrivals are one of `trace`, `at`, `poisson` and `within`"))),
    }
    .map(Some)
}

fn refuse_without_arrivals(spec: &WorkloadSpec) -> Result<(), Problem> {
    let fields = [
        spec.jobs.as_ref().map(Placed::at),
        spec.limit.as_ref().map(Placed::at),
        spec.job.as_ref().map(Placed::at),
    ];
    match fields.into_iter().flatten().next().or_else(|| drawing(spec).map(|(_, place)| place)) {
        Some(place) => Err(place
            .problem("it is not said when jobs arrive")
            .with_hint("add arrivals: {trace: jobs.csv}, {at: [0s, 10s]} or {poisson: {load: 0.8}}")),
        None => Ok(()),
    }
}

/// What only drawn jobs have, if it is said.
fn drawing(spec: &WorkloadSpec) -> Option<(&'static str, Position)> {
    let gpus = spec.gpus.as_ref().map(|gpus| &gpus.value);
    let fields = [
        ("models", spec.models.as_ref().map(Placed::at)),
        ("duration", spec.duration.as_ref().map(Placed::at)),
        ("cpus", spec.cpus.as_ref().map(Placed::at)),
        ("serial", spec.serial.as_ref().map(Placed::at)),
        ("deadlines", spec.deadlines.as_ref().map(Placed::at)),
        ("gpus.powersOfTwo", gpus.and_then(|gpus| gpus.powers_of_two.as_ref()).map(Placed::at)),
        ("gpus.from", gpus.and_then(|gpus| gpus.from.as_ref()).map(Placed::at)),
        ("gpus.to", gpus.and_then(|gpus| gpus.to.as_ref()).map(Placed::at)),
        ("users", spec.users.as_ref().map(Placed::at)),
        ("servers", spec.servers.as_ref().map(Placed::at)),
    ];
    fields.into_iter().find_map(|(what, place)| Some((what, place?)))
}

fn refuse_drawing(spec: &WorkloadSpec, instead: &str) -> Result<(), Problem> {
    match drawing(spec) {
        Some((what, place)) => Err(place.problem(format!("`{what}` is for arrivals.poisson; {instead}"))),
        None => Ok(()),
    }
}

/// The same job again and again.
fn at_times(
    times: &Spanned<Vec<Text>>,
    workload: &Named<WorkloadSpec>,
    world: &World<'_>,
) -> Result<Vec<Arrival>, Problem> {
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
    let mut arrivals = Vec::with_capacity(times.value.len());
    for (index, time) in times.value.iter().enumerate() {
        let mut request = request.clone();
        let name = format!("{}-{index}", workload.name());
        check_name(&name).map_err(|message| workload.at().problem(message))?;
        request.spec.name = name.into();
        arrivals.push(jobs::arrival(request, Instant::START + quantity(time)?));
    }
    Ok(arrivals)
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
            .problem(format!("`{what}` is for a trace or drawn jobs"))
            .with_hint("with arrivals.at the job says it all: job: {checkpoint: {}}")),
        None => Ok(()),
    }
}
