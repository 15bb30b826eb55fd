//! From documents to a scenario: names become ids, texts become units, and whatever does not fit together is said
//! with its place.

mod chosen;
mod cluster;
mod commands;
mod faults;
mod fit;
mod gpu_types;
mod jobs;
mod learners;
mod links;
mod models;
mod noise;
mod pattern;
mod poisson;
mod policies;
mod priorities;
mod processes;
mod queues;
mod roles;
mod scalings;
mod trace_jobs;
mod users;
mod work;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;

use metronome_core::model::cluster::Name;
use metronome_core::model::units::Instant;
use serde_saphyr::Spanned;

use super::documents::{
    ClusterSpec, Document, JobShape, Metadata, PolicySpec, QueueSpec, ScalingSpec, Spec, WorkloadSpec,
};
use super::error::{InputError, Position, Problem, quoted};
use super::training::Ground;
use super::values::{Placed, Text, check_name, name, position};
use super::{Arrival, Scenario, Setting, Source};
use crate::model::alone::Alone;
use crate::near::meant_or_known;
use crate::noise::Noise;

const API_VERSION: &str = "metronome.dev/v1alpha1";
const KINDS: [&str; 6] = ["Cluster", "Workload", "TrainingJob", "Queue", "Policy", "Scaling"];

/// Where the documents come from: what an error names, and what a relative path starts from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) file: &'a str,
    pub(super) folder: &'a Path,
}

pub(super) fn scenario(
    documents: Vec<Spanned<Document>>,
    origin: Origin<'_>,
) -> Result<Scenario, InputError> {
    let in_file = |problem: Problem| problem.in_file(origin.file);
    let sorted = Sorted::from(documents).map_err(in_file)?;
    let cluster_document = sorted.cluster.ok_or_else(|| in_file(missing_cluster()))?;
    let (mut cluster, within_node) = cluster::cluster(&cluster_document.spec).map_err(in_file)?;
    let queues = queues::queues(&sorted.queues).map_err(in_file)?;
    let policies = policies::policies(&sorted.policies).map_err(in_file)?;
    let scalings = scalings::scalings(&sorted.scalings).map_err(in_file)?;

    let workload = sorted.workload.as_ref();
    let workload::Settings { round, rounds, tick, costs, faults, departures, estimates } =
        workload::settings(workload, &cluster).map_err(in_file)?;
    let noise = noise::noise(workload.and_then(|document| document.spec.noise.as_ref()), origin)?;
    let world = World {
        cluster: &cluster,
        queues: &queues,
        scalings,
        fit: fit::Fit::of(&cluster),
        gpu_types: gpu_types::GpuTypes::default(),
        ground: Ground { alone: Alone::new(&cluster, within_node), noise },
    };
    let declared = sorted.jobs.iter().map(|document| jobs::declared(document, &world));
    let declared = declared.collect::<Result<Vec<Arrival>, Problem>>().map_err(in_file)?;
    let names = declared.iter().map(|arrival| arrival.spec.name.clone());
    let commands = names.zip(&sorted.jobs).filter_map(|(name, job)| Some((name, commands::of(&job.spec)?)));
    let commands: BTreeMap<Name, Vec<Vec<String>>> = commands.collect();
    let mut sources = vec![Source::Listed(declared)];
    if let Some(document) = workload {
        sources.extend(workload::source(document, &world, origin)?);
    }
    let sets = world.gpu_types.into_sets(&cluster);
    for nodes in sets {
        cluster.add_set(nodes);
    }
    check_jobs(&sources).map_err(in_file)?;
    if let Some(document) = workload {
        faults::check_jobs(&document.spec.faults, &sources).map_err(in_file)?;
    }
    workload::check_departures(workload, departures, &sources).map_err(in_file)?;

    let name = workload.map_or_else(|| stem(origin.file), |document| document.name().to_owned());
    Ok(Scenario {
        name,
        cluster,
        queues: queues.into_list(),
        policies,
        sources,
        within_node,
        round,
        rounds,
        tick,
        costs,
        departures,
        estimates,
        faults,
        commands,
    })
}

/// The one job of a file that holds nothing else, submitted at `at`.
pub(super) fn one_job(
    documents: Vec<Spanned<Document>>,
    setting: &Setting<'_>,
    at: Instant,
) -> Result<Arrival, Problem> {
    let job = Sorted::from(documents)?.only_job()?;
    let queues = queues::Queues::known(setting.queues);
    let world = World {
        cluster: setting.cluster,
        queues: &queues,
        scalings: scalings::Scalings::default(),
        fit: fit::Fit::of(setting.cluster),
        gpu_types: gpu_types::GpuTypes::default(),
        ground: Ground { alone: Alone::new(setting.cluster, setting.within_node), noise: Noise::None },
    };
    let arrival = jobs::submitted(&job, &world, at)?;
    // The nodes of a mixture are part of a cluster, and this one is there already.
    match world.gpu_types.is_empty() {
        true => Ok(arrival),
        false => Err(job.metadata.name.problem("it asks for several types of GPU").with_hint(
            "ask for one of them: a cluster that is there already has no name for any of several",
        )),
    }
}

/// What jobs refer to.
#[derive(Debug)]
struct World<'a> {
    cluster: &'a metronome_core::model::cluster::Cluster,
    queues: &'a queues::Queues,
    scalings: scalings::Scalings,
    fit: fit::Fit,
    gpu_types: gpu_types::GpuTypes,
    ground: Ground,
}

/// A document whose kind is known.
#[derive(Debug)]
struct Named<T> {
    metadata: Metadata,
    spec: T,
}

impl<T> Named<T> {
    fn name(&self) -> &str {
        &self.metadata.name.value
    }

    fn at(&self) -> Position {
        self.metadata.name.at()
    }
}

/// The documents by kind, in the order of appearance.
#[derive(Debug, Default)]
struct Sorted {
    cluster: Option<Named<ClusterSpec>>,
    workload: Option<Named<WorkloadSpec>>,
    jobs: Vec<Named<JobShape>>,
    queues: Vec<Named<QueueSpec>>,
    policies: Vec<Named<PolicySpec>>,
    scalings: Vec<Named<ScalingSpec>>,
}

impl Sorted {
    fn from(documents: Vec<Spanned<Document>>) -> Result<Self, Problem> {
        let mut sorted = Self::default();
        let mut names: BTreeMap<(String, String), Position> = BTreeMap::new();
        for document in documents {
            let at = position(document.referenced);
            let kind = kind(&document.value, at)?.to_owned();
            let metadata = metadata(&document.value, at)?;
            let earlier = names.insert((kind.clone(), full_name(metadata)?), metadata.name.at());
            if let Some(earlier) = earlier {
                return Err(twice(&kind, &metadata.name, earlier));
            }
            sorted.put(document.value, at)?;
        }
        Ok(sorted)
    }

    /// The job, where there is nothing beside it.
    fn only_job(self) -> Result<Named<JobShape>, Problem> {
        let others = [
            self.cluster.map(|document| (document.at(), "Cluster")),
            self.workload.map(|document| (document.at(), "Workload")),
            self.queues.first().map(|document| (document.at(), "Queue")),
            self.policies.first().map(|document| (document.at(), "Policy")),
            self.scalings.first().map(|document| (document.at(), "Scaling")),
        ];
        if let Some((at, kind)) = others.into_iter().flatten().next() {
            let hint = "name a file with one TrainingJob; the rest is known from where it would be submitted";
            return Err(at.problem(format!("a {kind} beside the job")).with_hint(hint));
        }
        let mut jobs = self.jobs.into_iter();
        match (jobs.next(), jobs.next()) {
            (Some(job), None) => Ok(job),
            (None, _) => Err(Problem::whole("there is no TrainingJob in it")),
            (Some(first), Some(second)) => {
                let message = format!("a second TrainingJob; the first is at line {}", first.at().line);
                Err(second.at().problem(message).with_hint("ask about one job at a time"))
            }
        }
    }

    fn put(&mut self, document: Document, at: Position) -> Result<(), Problem> {
        let Document { kind, metadata: Some(metadata), spec, .. } = document else {
            return Err(at.problem("missing field `metadata`"));
        };
        match spec {
            Spec::Cluster(spec) => only(&mut self.cluster, metadata, *spec, "Cluster"),
            Spec::Workload(spec) => only(&mut self.workload, metadata, *spec, "Workload"),
            Spec::TrainingJob(spec) => {
                self.jobs.push(Named { metadata, spec: *spec });
                Ok(())
            }
            Spec::Queue(spec) => {
                self.queues.push(Named { metadata, spec: *spec });
                Ok(())
            }
            Spec::Policy(spec) => {
                self.policies.push(Named { metadata, spec: *spec });
                Ok(())
            }
            Spec::Scaling(spec) => {
                self.scalings.push(Named { metadata, spec: *spec });
                Ok(())
            }
            Spec::BeforeKind(spec) => Err(spec
                .problem("`spec` comes before `kind`")
                .with_hint("write `kind` first: it says what the fields of `spec` are")),
            Spec::Missing | Spec::OfUnknownKind => {
                let kind = kind.map_or_else(String::new, |kind| format!(" of this {}", kind.value));
                Err(at.problem(format!("missing field `spec`{kind}")))
            }
        }
    }
}

fn only<T>(place: &mut Option<Named<T>>, metadata: Metadata, spec: T, kind: &str) -> Result<(), Problem> {
    if let Some(first) = place {
        let message = format!("a second {kind}; the first is at line {}", first.at().line);
        return Err(metadata.name.problem(message).with_hint(format!("a scenario has one {kind}")));
    }
    *place = Some(Named { metadata, spec });
    Ok(())
}

fn kind(document: &Document, at: Position) -> Result<&str, Problem> {
    let hint = format!("every document begins with apiVersion: {API_VERSION}");
    let Some(version) = &document.api_version else {
        return Err(at.problem("missing field `apiVersion`").with_hint(hint));
    };
    if version.value != API_VERSION {
        let message = format!("unknown apiVersion {}", quoted(&version.value));
        return Err(version.problem(message).with_hint(hint));
    }
    let Some(kind) = &document.kind else {
        let hint = format!("known are {}", KINDS.join(", "));
        return Err(at.problem("missing field `kind`").with_hint(hint));
    };
    if kind.value == "Fabric" {
        let hint = "in a scenario the links are a part of the Cluster: links: {node: 100Gbps}";
        return Err(kind.problem("a Fabric describes a Kubernetes cluster").with_hint(hint));
    }
    if !KINDS.contains(&kind.value.as_str()) {
        let message = format!("unknown kind {}", quoted(&kind.value));
        return Err(kind.problem(message).with_hint(meant_or_known(&kind.value, KINDS)));
    }
    Ok(&kind.value)
}

fn metadata(document: &Document, at: Position) -> Result<&Metadata, Problem> {
    let metadata = document.metadata.as_ref().ok_or_else(|| at.problem("missing field `metadata`"))?;
    name(&metadata.name)?;
    Ok(metadata)
}

/// `team-a/bert`, or `bert` where there is no namespace.
fn full_name(metadata: &Metadata) -> Result<String, Problem> {
    let own = name(&metadata.name)?;
    let full = match &metadata.namespace {
        Some(namespace) => format!("{}/{own}", name(namespace)?),
        None => own.to_owned(),
    };
    check_name(&full).map_err(|message| metadata.name.problem(message))?;
    Ok(full)
}

fn twice(what: &str, name: &Text, earlier: Position) -> Problem {
    name.problem(format!(
        "a second {what} called {}; the first is at line {}",
        quoted(&name.value),
        earlier.line
    ))
}

fn missing_cluster() -> Problem {
    Problem::whole("there is no Cluster in it")
        .with_hint("add a document of kind Cluster: it says what there is")
}

/// No two jobs share a name, wherever they come from, and there is at least one.
fn check_jobs(sources: &[Source]) -> Result<(), Problem> {
    let mut names: Vec<Name> = sources.iter().flat_map(Source::names).collect();
    if names.is_empty() {
        let hint = "add a TrainingJob, or a Workload whose arrivals name a trace";
        return Err(Problem::whole("there are no jobs in it").with_hint(hint));
    }
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Problem::whole(format!("two jobs are called {}", quoted(&pair[0])))),
        None => Ok(()),
    }
}

/// `lab` for `experiments/lab.yaml`; standard input is what it is called.
fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or(file).to_owned()
}
