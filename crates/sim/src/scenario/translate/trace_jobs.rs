//! Jobs from a trace: a size in GPUs becomes members, a row becomes a job.

use std::collections::HashSet;
use std::sync::Arc;

use metronome_core::model::cluster::Name;
use metronome_core::model::id::QueueId;
use metronome_core::model::job::{Checkpointing, Deadline, Gang, GangError, JobSpec, Role, Topology, Work};
use metronome_core::model::units::{Duration, Gpus, Instant, Iterations};
use metronome_core::observe::progress::WorkPace;
use metronome_core::observe::scaling::Scaling;
use rand_pcg::Pcg32;

use super::roles::on_devices;
use super::{Origin, World, chosen, jobs, models, poisson, priorities};
use crate::model::{self, Model, Pattern, TrainingModel};
use crate::scenario::documents::WorkloadSpec;
use crate::scenario::error::{InputError, Position, Problem, quoted};
use crate::scenario::members::MemberSize;
use crate::scenario::priorities::Priorities;
use crate::scenario::training::Amount;
use crate::scenario::values::{Placed, Text, whole};
use crate::scenario::{Arrival, Asks, capabilities};
use crate::trace::{Row, Trace};

/// What the workload says about every row.
struct Settings<'a> {
    member: MemberSize,
    checkpointing: Option<Checkpointing>,
    priorities: Priorities,
    /// Priorities are drawn once, by the order of the trace: the same in every run.
    random: Pcg32,
    limit: usize,
    /// Whether jobs end, and so need a duration.
    leaves: bool,
    world: &'a World<'a>,
}

pub(super) fn arrivals(
    file: &Text,
    spec: &WorkloadSpec,
    world: &World<'_>,
    origin: Origin<'_>,
) -> Result<Vec<Arrival>, InputError> {
    let mut settings = settings(spec, world).map_err(|problem| problem.in_file(origin.file))?;
    let named = format!("it is the trace of {}:{}", origin.file, file.at().line);
    let trace = Trace::open(&origin.folder.join(&file.value));
    let mut trace = trace.map_err(|error| error.or_hint(named))?;
    let mut names: HashSet<Name> = HashSet::new();
    let mut arrivals = Vec::new();
    while let Some(row) = trace.next()? {
        let at = Position::line(row.line);
        let arrival = job(&row, &mut settings).map_err(|problem| problem.in_file(trace.file()))?;
        if !names.insert(arrival.spec.name.clone()) {
            let message = format!("a second job is called {}", quoted(&arrival.spec.name));
            return Err(Problem::at(at, message).in_file(trace.file()));
        }
        arrivals.push(arrival);
    }
    if arrivals.is_empty() {
        return Err(Problem::whole("there are no jobs in it").in_file(trace.file()));
    }
    arrivals.sort_by_key(|job: &Arrival| job.at);
    arrivals.truncate(settings.limit);
    Ok(arrivals)
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
    let checkpoint = spec.checkpoint.as_ref().map(|checkpoint| jobs::checkpointing(&checkpoint.value));
    Ok(Settings {
        member: poisson::member_size(spec.gpus.as_ref(), world.cluster)?,
        checkpointing: checkpoint.transpose()?,
        priorities: priorities::priorities(spec.priorities.as_ref())?,
        random: Pcg32::new(0, 0),
        limit: spec.limit.as_ref().map_or(Ok(u64::MAX), |limit| whole(limit, 1..=u64::MAX))? as usize,
        leaves: spec.departures.as_ref().is_none_or(|text| text.value != "never"),
        world,
    })
}

fn job(row: &Row<'_>, settings: &mut Settings<'_>) -> Result<Arrival, Problem> {
    let line = Position::line(row.line);
    let queues = settings.world.queues;
    let queue = row.queue.map_or(Ok(QueueId(0)), |name| {
        queues.for_jobs(name).map_err(|(problem, hint)| line.problem(problem).with_hint(hint))
    })?;
    let at = Instant::START + row.submit;
    let model = row.model.and_then(model::named);
    let mut size = Size::of(row, settings)?;
    size.take_beside(row, settings.world)?;
    let mut spec = JobSpec {
        name: Name::from(row.job),
        queue,
        priority: row.priority.unwrap_or_else(|| settings.priorities.draw(&mut settings.random)),
        user: queues.standing(queue, row.user),
        owner: row.user.map(Name::from),
        roles: size.roles.clone(),
        work: Work::default(),
        deadline: row.deadline.map(|within| deadline(row, at + within)),
        scaling: size.scaling.clone(),
        topology: Topology::Anywhere,
        teams: None,
        capabilities: capabilities(settings.checkpointing),
        checkpointing: settings.checkpointing,
        profile: None,
        start_retries: JobSpec::DEFAULT_START_RETRIES,
        suspended: false,
        budgets: Vec::new(),
        preempts: true,
        repairs: false,
    };
    let training = work(row, &size, model, &mut spec, settings)?;
    let quality = row.scaling.and_then(|name| settings.world.scalings.quality(name));
    Ok(Arrival { at, spec: Arc::new(spec), training, asks: size.asks(), learning: None, quality })
}

fn deadline(row: &Row<'_>, at: Instant) -> Deadline {
    let (binding, value) = (row.binding.unwrap_or_default(), row.value.unwrap_or(1));
    Deadline { binding, value, ..Deadline::soft(at) }
}

/// How much there is to do. A known model makes a training loop of the row, by its iterations if it has them; the name
/// of any other is not used, because the duration says what it would.
fn work(
    row: &Row<'_>,
    size: &Size,
    model: Option<Arc<Model>>,
    spec: &mut JobSpec,
    settings: &Settings<'_>,
) -> Result<Option<Arc<TrainingModel>>, Problem> {
    let world = settings.world;
    let line = Position::line(row.line);
    let lasting = row.duration.map(|duration| size.at_smallest(duration));
    let Some(model) = model else {
        if lasting.is_none() && settings.leaves {
            return Err(no_duration(row));
        }
        spec.work = Work { iterations: row.iterations, alone: lasting, ..Work::default() };
        return Ok(None);
    };
    if row.scaling.is_some() {
        return Err(line
            .problem(format!("job {} has a known model and a scaling", quoted(row.job)))
            .with_hint(
                "leave one of them out: how a model scales follows from its gradients and the links",
            ));
    }
    models::check_links(&line, world.cluster)?;
    let amount = match (row.iterations, lasting) {
        (Some(Iterations(count)), _) => Amount::Iterations(count),
        (None, Some(lasting)) => Amount::Lasting(lasting),
        (None, None) => return Err(no_duration(row)),
    };
    let training = world.ground.train(spec, Pattern::Gradients(model), amount);
    training.map(Some).ok_or_else(|| line.problem("its iterations take longer than can be counted"))
}

fn no_duration(row: &Row<'_>) -> Problem {
    let problem = Position::line(row.line).problem(format!("job {} has no duration", quoted(row.job)));
    match (row.model, row.iterations) {
        (Some(name), Some(_)) => {
            problem.with_hint(format!("a model that is known would do: {}", models::near(name)))
        }
        _ => problem,
    }
}

/// The members of a row.
struct Size {
    roles: Vec<Role>,
    asked: Gpus,
    smallest: Gpus,
    scaling: Option<Arc<Scaling>>,
}

impl Size {
    fn of(row: &Row<'_>, settings: &Settings<'_>) -> Result<Self, Problem> {
        let line = Position::line(row.line);
        match row.scaling {
            Some(name) => Self::by_table(row, name, settings),
            None => Self::in_proportion(row, &settings.member).map_err(|message| line.problem(message)),
        }
    }

    fn in_proportion(row: &Row<'_>, member: &MemberSize) -> Result<Self, String> {
        let text = |error: GangError| error.to_string();
        let (min, max) = (row.min_gpus.unwrap_or(row.gpus), row.max_gpus.unwrap_or(row.gpus));
        if min > row.gpus || row.gpus > max {
            return Err(format!("{} GPUs are not between min_gpus {min} and max_gpus {max}", row.gpus));
        }
        let roles = if row.gpus.is_zero() {
            vec![member.workers(Gang::rigid(1).map_err(text)?, Gpus::ZERO)]
        } else if min == max {
            member.roles(row.gpus).map_err(text)?
        } else {
            let each = common_size(min, max, member.gpus);
            let gang = Gang::elastic(min.0 / each.0, max.0 / each.0).map_err(text)?;
            vec![member.workers(gang, each)]
        };
        roles.iter().try_for_each(|role| on_devices(role.shape.each.gpus).map(|_| ()))?;
        Ok(Self { roles, asked: row.gpus, smallest: min, scaling: None })
    }

    /// Members of one GPU, as many as a table has sizes for.
    fn by_table(row: &Row<'_>, name: &str, settings: &Settings<'_>) -> Result<Self, Problem> {
        let line = Position::line(row.line);
        let curve = settings.world.scalings.find(name);
        let curve = curve.map_err(|(message, hint)| line.problem(message).with_hint(hint))?;
        let bound = |gpus: Option<Gpus>, none| gpus.map_or(none, whole_gpus);
        let cut = curve.within(bound(row.min_gpus, 1), bound(row.max_gpus, u32::MAX)).ok_or_else(|| {
            line.problem(format!("no size of {} is between min_gpus and max_gpus", quoted(name)))
        })?;
        let (least, most, asked) = (cut.least(), cut.most(), whole_gpus(row.gpus));
        if !row.gpus.is_whole() || !(least..=most).contains(&asked) {
            return Err(line.problem(format!(
                "{} GPUs are not between {least} and {most}, the sizes of {}",
                row.gpus,
                quoted(name)
            )));
        }
        let gang = chosen::gang(&cut).map_err(|message| line.problem(message))?;
        Ok(Self {
            roles: vec![settings.member.workers(gang, Gpus::whole(1))],
            asked: row.gpus,
            smallest: Gpus::whole(u64::from(least)),
            scaling: Some(Arc::new(cut.scaling())),
        })
    }

    /// What was asked for, where there are other sizes of which the speed is known.
    fn asks(&self) -> Option<Asks> {
        self.scaling.as_ref().map(|_| Asks { members: whole_gpus(self.asked), serial: None })
    }

    /// What the row says that each member takes beside its GPUs, and of which type these are.
    fn take_beside(&mut self, row: &Row<'_>, world: &World<'_>) -> Result<(), Problem> {
        let line = Position::line(row.line);
        let types = row.gpu_types.into_iter().flat_map(|types| types.split('|')).map(|name| (name, line));
        let on = world.gpu_types.eligible(world.cluster, types)?;
        for Role { shape, .. } in &mut self.roles {
            shape.each.cpu = row.cpu.unwrap_or(shape.each.cpu);
            shape.each.memory = row.memory.unwrap_or(shape.each.memory);
            shape.on = on;
        }
        Ok(())
    }

    /// Work is told at the smallest size; an elastic job is taken to speed up with its GPUs, unless a table says otherwise.
    fn at_smallest(&self, duration: Duration) -> Duration {
        if let Some(scaling) = &self.scaling {
            return WorkPace::at(scaling.speed(whole_gpus(self.asked))).work(duration);
        }
        if self.asked == self.smallest {
            return duration;
        }
        let total = u128::from(duration.0) * u128::from(self.asked.0);
        let smallest = total.div_ceil(u128::from(self.smallest.0));
        Duration(u64::try_from(smallest).unwrap_or(u64::MAX / 2).min(u64::MAX / 2))
    }
}

/// So many whole GPUs.
fn whole_gpus(gpus: Gpus) -> u32 {
    u32::try_from(gpus.0 / Gpus::whole(1).0).unwrap_or(u32::MAX)
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
