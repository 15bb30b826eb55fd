//! A TrainingJob as the engine takes it.

use std::num::NonZeroU32;
use std::sync::Arc;

use metronome_core::model::cluster::{Cluster, Level, Name};
use metronome_core::model::id::QueueId;
use metronome_core::model::job::{
    Binding, Checkpointing, Deadline, JobSpec, Members, OnMiss, Priority, Role, RoleKind, Teams, Topology,
    Work,
};
use metronome_core::model::units::{Duration, Instant};
use serde_saphyr::Spanned;

use super::queues::Queues;
use super::work::Written;
use super::{Named, World, chosen, full_name, models, pattern};
use crate::model::{Pattern, TrainingModel};
use crate::near::meant_or_known;
use crate::scenario::documents::{CheckpointShape, DeadlineShape, JobShape, TeamsShape, TopologyShape};
use crate::scenario::error::{Position, Problem, quoted};
use crate::scenario::quality::Quality;
use crate::scenario::values::{Placed, Text, name, quantity, quantity_or_none, some_quantity, whole, word};
use crate::scenario::{Arrival, Asks, capabilities, profile};

pub(super) const PRIORITIES: [(&str, Priority); 3] =
    [("high", Priority::HIGH), ("normal", Priority::NORMAL), ("low", Priority::LOW)];

const USER: &str = "metronome.dev/user";
const SUBMIT_AFTER: &str = "metronome.dev/submit-after";

/// A job with a document of its own.
pub(super) fn declared(document: &Named<JobShape>, world: &World<'_>) -> Result<Arrival, Problem> {
    let submit = ours(&document.metadata.annotations, "annotation", SUBMIT_AFTER)?;
    let at = Instant::START + quantity_or_none::<Duration>(submit)?;
    Ok(arrival(requested(document, world)?, at))
}

/// The same, submitted at a time that is known already.
pub(super) fn submitted(
    document: &Named<JobShape>,
    world: &World<'_>,
    at: Instant,
) -> Result<Arrival, Problem> {
    if let Some(text) = ours(&document.metadata.annotations, "annotation", SUBMIT_AFTER)? {
        let problem = text.problem(format!("`{SUBMIT_AFTER}` means nothing here: the job is submitted now"));
        return Err(problem.with_hint("remove it"));
    }
    Ok(arrival(requested(document, world)?, at))
}

fn requested(document: &Named<JobShape>, world: &World<'_>) -> Result<Request, Problem> {
    let metadata = &document.metadata;
    let user = ours(&metadata.labels, "label", USER)?.map(name).transpose()?;
    spec(&document.spec, &full_name(metadata)?, user, document.at(), world)
}

/// The same job, now with a time to be submitted.
pub(super) fn arrival(request: Request, at: Instant) -> Arrival {
    let Request { mut spec, training, asks, within, quality } = request;
    spec.deadline = within.map(|within| within.deadline(at));
    Arrival { at, spec: Arc::new(spec), training, asks, learning: None, quality }
}

/// A job before it is known when it is submitted.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) spec: JobSpec,
    training: Option<Arc<TrainingModel>>,
    asks: Option<Asks>,
    within: Option<Within>,
    quality: Option<Arc<Quality>>,
}

/// A deadline, counted from submission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Within {
    pub(super) time: Duration,
    pub(super) binding: Binding,
    pub(super) value: u32,
    pub(super) on_miss: OnMiss,
}

impl Within {
    pub(super) fn deadline(self, submitted: Instant) -> Deadline {
        let Self { time, binding, value, on_miss } = self;
        Deadline { at: submitted + time, binding, value, on_miss }
    }
}

pub(super) const BINDINGS: [(&str, Binding); 3] =
    [("strict", Binding::Strict), ("soft", Binding::Soft), ("bestEffort", Binding::BestEffort)];
const ON_MISS: [(&str, OnMiss); 3] =
    [("Run", OnMiss::Run), ("Suspend", OnMiss::Suspend), ("Fail", OnMiss::Fail)];
/// What a deadline may be worth: beyond it a number is a mistake.
pub(super) const LARGEST_VALUE: u64 = 1_000_000;

/// What a shape asks for; `at` is where to point when the whole of it is wrong.
pub(super) fn spec(
    shape: &JobShape,
    name: &str,
    user: Option<&str>,
    at: Position,
    world: &World<'_>,
) -> Result<Request, Problem> {
    check_unused(shape)?;
    let queue = queue(shape.queue.as_ref(), world.queues)?;
    let checkpointing = shape.checkpoint.as_ref().map(checkpointing).transpose()?;
    let pattern = pattern::pattern(shape, world.cluster)?;
    let work = Written::of(shape.work.as_ref(), at)?;
    let chosen = chosen::members(shape, pattern.as_ref(), at, world)?;
    let roles = chosen.roles.clone();
    let mut spec = JobSpec {
        name: Name::from(name),
        queue,
        priority: priority(shape.priority_class_name.as_ref())?,
        user: world.queues.standing(queue, user),
        owner: user.map(Name::from),
        work: Work::default(),
        deadline: None,
        scaling: None,
        topology: match chosen::topology(shape, world) {
            Some(one_node) => one_node,
            None => topology(shape.topology.as_ref(), world.cluster)?,
        },
        teams: teams(shape.topology.as_ref(), &roles, world.cluster)?,
        roles,
        capabilities: capabilities(checkpointing),
        checkpointing,
        profile: None,
        start_retries: start_retries(shape.backoff_limit.as_ref())?,
        suspended: shape.suspend.unwrap_or(false),
        budgets: Vec::new(),
        preempts: true,
        repairs: false,
    };
    if let Some(why) = world.fit.refusal(&spec, &world.gpu_types) {
        return Err(at.problem(format!("job {} can never run: it {why}", quoted(name))));
    }
    let training = work.give(&mut spec, pattern, world)?;
    chosen.give(&mut spec);
    declare(&mut spec, shape, world.cluster)?;
    let quality = chosen::quality(shape, world);
    Ok(Request { spec, training, asks: chosen.asks, within: within(shape)?, quality })
}

/// What an owner says of a job may be wrong: the scheduler then knows another model than the one that is trained.
fn declare(spec: &mut JobSpec, shape: &JobShape, cluster: &Cluster) -> Result<(), Problem> {
    let Some(declared) = &shape.declared_model else { return Ok(()) };
    let Some(trained) = &shape.model else {
        let problem = declared.problem("`declaredModel` is for a job that trains another `model`");
        return Err(problem.with_hint("add `model`, which is what it does in fact"));
    };
    if trained.value == declared.value {
        return Err(declared.problem("`declaredModel` is what it trains in fact").with_hint("remove it"));
    }
    let declared = Pattern::Gradients(models::model(declared, cluster)?);
    spec.profile = Some(Arc::new(profile(&declared, spec.members())));
    Ok(())
}

/// What means nothing in a simulation is checked all the same.
fn check_unused(shape: &JobShape) -> Result<(), Problem> {
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

pub(super) fn queue(text: Option<&Text>, queues: &Queues) -> Result<QueueId, Problem> {
    let Some(text) = text else { return Ok(QueueId(0)) };
    queues.for_jobs(&text.value).map_err(|(problem, hint)| text.problem(problem).with_hint(hint))
}

fn priority(text: Option<&Text>) -> Result<Priority, Problem> {
    text.map_or(Ok(Priority::NORMAL), |text| word(text, "priority class", &PRIORITIES))
}

fn start_retries(text: Option<&Text>) -> Result<u32, Problem> {
    text.map_or(Ok(JobSpec::DEFAULT_START_RETRIES), |text| whole(text, 0..=1000).map(|count| count as u32))
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

fn within(shape: &JobShape) -> Result<Option<Within>, Problem> {
    let missed = shape.on_miss.as_ref();
    let on_miss = missed.map_or(Ok(OnMiss::Run), |text| word(text, "word for onMiss", &ON_MISS))?;
    let Some(written) = &shape.deadline else {
        return match missed.filter(|_| on_miss != OnMiss::Run) {
            Some(text) => Err(text
                .problem(format!("`onMiss: {}` is for a job with a deadline", text.value))
                .with_hint("add deadline: {after: 6h}")),
            None => Ok(None),
        };
    };
    let DeadlineShape { binding, value, .. } = &written.value;
    Ok(Some(Within {
        time: time_allowed(written)?,
        binding: binding.as_ref().map_or(Ok(Binding::Soft), |text| word(text, "binding", &BINDINGS))?,
        value: value.as_ref().map_or(Ok(1), |text| whole(text, 1..=LARGEST_VALUE))? as u32,
        on_miss,
    }))
}

fn time_allowed(written: &Spanned<DeadlineShape>) -> Result<Duration, Problem> {
    match &written.value {
        DeadlineShape { after: Some(after), at: None, .. } => {
            let problem = || after.problem("the deadline is over when the job is submitted");
            quantity(after).and_then(|time: Duration| if time.is_zero() { Err(problem()) } else { Ok(time) })
        }
        DeadlineShape { at: Some(at), after: None, .. } => Err(at
            .problem("a date means nothing in a simulation, whose time begins at zero")
            .with_hint("count from submission: deadline: {after: 6h}")),
        _ => Err(written.problem("a deadline is either `after` or `at`")),
    }
}

fn topology(written: Option<&Spanned<TopologyShape>>, cluster: &Cluster) -> Result<Topology, Problem> {
    let Some(written) = written else { return Ok(Topology::Anywhere) };
    match &written.value {
        TopologyShape { preferred: Some(text), required: None, .. } => {
            level(text, cluster).map(Topology::Preferred)
        }
        TopologyShape { required: Some(text), preferred: None, .. } => {
            level(text, cluster).map(Topology::Required)
        }
        TopologyShape { preferred: None, required: None, teams: Some(_) } => Ok(Topology::Anywhere),
        _ => Err(written.problem("a topology is either `preferred` or `required`")),
    }
}

fn level(text: &Text, cluster: &Cluster) -> Result<Level, Problem> {
    cluster.find_level(&text.value).ok_or_else(|| {
        let known = super::cluster::known_levels(cluster);
        text.problem(format!("the topology has no level {}", quoted(&text.value)))
            .with_hint(format!("known are {known}"))
    })
}

/// Groups of workers that make up all of them, at the least and at the most.
fn teams(
    written: Option<&Spanned<TopologyShape>>,
    roles: &[Role],
    cluster: &Cluster,
) -> Result<Option<Teams>, Problem> {
    let Some(TeamsShape { size: text, within }) = written.and_then(|written| written.value.teams.as_ref())
    else {
        return Ok(None);
    };
    let size = whole(text, 1..=u64::from(Members::MOST))?;
    let size = NonZeroU32::new(size as u32).expect("at least one");
    let workers = || roles.iter().filter(|role| role.kind == RoleKind::Worker).map(|role| role.gang);
    let counts = workers().flat_map(|gang| [gang.min(), gang.max()]);
    if let Some(count) = counts.into_iter().find(|count| !count.is_multiple_of(size.get())) {
        return Err(text.problem(format!("{count} workers do not make up groups of {size}")));
    }
    Ok(Some(Teams { size, within: level(within, cluster)? }))
}
