//! A TrainingJob as the engine takes it.

use std::sync::Arc;

use metronome_core::cluster::{Cluster, Name};
use metronome_core::id::QueueId;
use metronome_core::job::{Capabilities, Checkpointing, JobSpec, Priority, Topology, Work};
use metronome_core::profile::{Phase, Profile, Traffic};
use metronome_core::units::{Duration, Instant, Iterations};
use serde_saphyr::Spanned;

use super::queues::Queues;
use super::{Named, World, full_name, needs_network, roles};
use crate::scenario::Arrival;
use crate::scenario::documents::{
    CheckpointShape, DeadlineShape, JobShape, TopologyShape, TrafficShape, WorkShape,
};
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::near::meant_or_known;
use crate::scenario::values::{Placed, Text, name, quantity, quantity_or_none, some_quantity, whole, word};

pub(super) const PRIORITIES: [(&str, Priority); 3] =
    [("high", Priority::HIGH), ("normal", Priority::NORMAL), ("low", Priority::LOW)];

const USER: &str = "metronome.dev/user";
const SUBMIT_AFTER: &str = "metronome.dev/submit-after";

/// A job with a document of its own.
pub(super) fn declared(document: &Named<JobShape>, world: &World<'_>) -> Result<Arrival, Problem> {
    let metadata = &document.metadata;
    let user = ours(&metadata.labels, "label", USER)?.map(name).transpose()?;
    let submit = ours(&metadata.annotations, "annotation", SUBMIT_AFTER)?;
    let at = Instant::START + quantity_or_none::<Duration>(submit)?;
    let spec = spec(&document.spec, &full_name(metadata)?, user, document.at(), world)?;
    Ok(arrival(spec, at))
}

/// The same job, now with a time to be submitted.
pub(super) fn arrival(request: Request, at: Instant) -> Arrival {
    let Request { mut spec, within } = request;
    spec.deadline = within.map(|within| at + within);
    Arrival { at, spec: Arc::new(spec), training: None }
}

/// A job before it is known when it is submitted.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) spec: JobSpec,
    /// The deadline, counted from submission.
    pub(super) within: Option<Duration>,
}

/// What a shape asks for; `at` is where to point when the whole of it is wrong.
pub(super) fn spec(
    shape: &JobShape,
    name: &str,
    user: Option<&str>,
    at: Position,
    world: &World<'_>,
) -> Result<Request, Problem> {
    refuse_unsupported(shape)?;
    let queue = queue(shape.queue.as_ref(), world.queues)?;
    let traffic = shape.traffic.as_ref().map(traffic).transpose()?;
    let work = work(shape.work.as_ref(), traffic.as_ref(), at)?;
    let profile =
        traffic.map(|traffic| Profile::new(Vec::new(), Some(traffic)).expect("no compute to be wrong"));
    let spec = JobSpec {
        name: Name::from(name),
        queue,
        priority: priority(shape.priority_class_name.as_ref())?,
        user: world.queues.standing(queue, user),
        roles: roles::roles(shape, at)?,
        work,
        deadline: None,
        topology: topology(shape.topology.as_ref(), world.cluster)?,
        capabilities: capabilities(shape.checkpoint.is_some()),
        checkpointing: shape.checkpoint.as_ref().map(checkpointing).transpose()?,
        profile: profile.map(Arc::new),
        start_retries: start_retries(shape.backoff_limit.as_ref())?,
        suspended: shape.suspend.unwrap_or(false),
    };
    if let Some(why) = world.fit.refusal(&spec) {
        return Err(at.problem(format!("job {} can never run: it {why}", quoted(name))));
    }
    Ok(Request { spec, within: shape.deadline.as_ref().map(deadline).transpose()? })
}

fn refuse_unsupported(shape: &JobShape) -> Result<(), Problem> {
    if let Some(model) = &shape.model {
        return Err(needs_network(model, "model").with_hint("say how long it takes: work: {duration: 10m}"));
    }
    if let Some(on_miss) = &shape.on_miss {
        let runs = word(on_miss, "word for onMiss", &[("Run", true), ("Suspend", false), ("Fail", false)])?;
        if !runs {
            return Err(
                on_miss.problem(format!("`onMiss: {}` is not simulated by this version", on_miss.value))
            );
        }
    }
    if let Some(progress) = &shape.progress {
        word(
            &progress.from,
            "source of progress",
            &[("SDK", ()), ("HTTP", ()), ("Annotation", ()), ("None", ())],
        )?;
    }
    if let Some(seconds) = &shape.ttl_seconds_after_finished {
        whole(seconds, 0..=u64::from(u32::MAX))?;
    }
    Ok(())
}

/// The one label or annotation of ours; another with our prefix is a slip.
fn ours<'a>(
    map: &'a std::collections::BTreeMap<String, Text>,
    what: &str,
    known: &str,
) -> Result<Option<&'a Text>, Problem> {
    let stranger = map.iter().find(|(key, _)| key.starts_with("metronome.dev/") && *key != known);
    match stranger {
        Some((key, text)) => Err(text
            .problem(format!("unknown {what} {}", quoted(key)))
            .with_hint(meant_or_known(key, [known]))),
        None => Ok(map.get(known)),
    }
}

fn queue(text: Option<&Text>, queues: &Queues) -> Result<QueueId, Problem> {
    let Some(text) = text else { return Ok(QueueId(0)) };
    queues.find(&text.value).ok_or_else(|| {
        text.problem(format!("there is no queue {}", quoted(&text.value))).with_hint(queues.near(&text.value))
    })
}

fn priority(text: Option<&Text>) -> Result<Priority, Problem> {
    text.map_or(Ok(Priority::NORMAL), |text| word(text, "priority class", &PRIORITIES))
}

fn start_retries(text: Option<&Text>) -> Result<u32, Problem> {
    text.map_or(Ok(JobSpec::DEFAULT_START_RETRIES), |text| whole(text, 0..=1000).map(|count| count as u32))
}

/// A job that saves its work may be stopped and moved; another is left alone.
pub(super) fn capabilities(checkpointed: bool) -> Capabilities {
    if checkpointed { Capabilities::CHECKPOINTED } else { Capabilities::START_ONLY }
}

pub(super) fn checkpointing(shape: &CheckpointShape) -> Result<Checkpointing, Problem> {
    Ok(Checkpointing {
        every: shape
            .every
            .as_ref()
            .map(|every| some_quantity(every, "the time between checkpoints"))
            .transpose()?,
        takes: quantity_or_none(shape.takes.as_ref())?,
        restart: quantity_or_none(shape.restart.as_ref())?,
    })
}

/// How much there is to do: a duration, or iterations of a known period. Of a target only its bound is known.
fn work(
    shape: Option<&Spanned<WorkShape>>,
    traffic: Option<&Traffic>,
    at: Position,
) -> Result<Work, Problem> {
    const HINT: &str = "say how long it takes alone: work: {duration: 10m}";
    let Some(written) = shape else { return Err(at.problem("missing field `work`").with_hint(HINT)) };
    let WorkShape { iterations, duration, target, max_iterations } = &written.value;
    if let (Some(target), None) = (target, max_iterations) {
        return Err(target.problem("a target needs `maxIterations`: there is no loss curve to follow"));
    }
    let count = match (iterations, max_iterations) {
        (Some(_), Some(bound)) => {
            return Err(bound.problem("`iterations` and `maxIterations` are both given"));
        }
        (Some(count), None) | (None, Some(count)) => Some((count, whole(count, 1..=1_000_000_000_000)?)),
        (None, None) => None,
    };
    let alone = match (duration, count, traffic) {
        (Some(duration), _, _) => some_quantity(duration, "the duration of a job")?,
        (None, Some((text, count)), Some(traffic)) => total_time(traffic.period(), count, text)?,
        (None, Some((text, _)), None) => {
            let message = "how long an iteration takes is not known: there is no `traffic.period`";
            return Err(text.problem(message).with_hint(HINT));
        }
        (None, None, _) => return Err(written.problem("there is no work in it").with_hint(HINT)),
    };
    Ok(Work { iterations: count.map(|(_, count)| Iterations(count)), alone: Some(alone) })
}

fn total_time(period: Duration, iterations: u64, text: &Text) -> Result<Duration, Problem> {
    let total = period.0.checked_mul(iterations).filter(|total| *total <= u64::MAX / 2);
    total.map(Duration).ok_or_else(|| text.problem("its iterations take longer than can be counted"))
}

fn deadline(written: &Spanned<DeadlineShape>) -> Result<Duration, Problem> {
    match &written.value {
        DeadlineShape { after: Some(after), at: None } => quantity(after),
        DeadlineShape { at: Some(at), after: None } => Err(at
            .problem("a date means nothing in a simulation, whose time begins at zero")
            .with_hint("count from submission: deadline: {after: 6h}")),
        _ => Err(written.problem("a deadline is either `after` or `at`")),
    }
}

fn topology(written: Option<&Spanned<TopologyShape>>, cluster: &Cluster) -> Result<Topology, Problem> {
    let level = |text: &Text| {
        cluster.find_level(&text.value).ok_or_else(|| {
            let known = super::cluster::known_levels(cluster);
            text.problem(format!("the topology has no level {}", quoted(&text.value)))
                .with_hint(format!("known are {known}"))
        })
    };
    let Some(written) = written else { return Ok(Topology::Anywhere) };
    match &written.value {
        TopologyShape { preferred: Some(text), required: None } => level(text).map(Topology::Preferred),
        TopologyShape { required: Some(text), preferred: None } => level(text).map(Topology::Required),
        _ => Err(written.problem("a topology is either `preferred` or `required`")),
    }
}

fn traffic(written: &Spanned<TrafficShape>) -> Result<Traffic, Problem> {
    let phases = written.value.phases.iter().map(|phase| {
        Ok(Phase {
            offset: quantity_or_none(phase.offset.as_ref())?,
            length: quantity(&phase.length)?,
            rate: quantity(&phase.rate)?,
        })
    });
    let phases = phases.collect::<Result<Vec<_>, Problem>>()?;
    let period = quantity(&written.value.period)?;
    Traffic::new(period, phases).map_err(|error| written.problem(error.to_string()))
}
