//! Pollux' workloads: `name,time,application,num_replicas,batch_size`, times in seconds; and for each application what
//! was measured of it: step times by placement, and how far each batch size comes in an epoch.
//!
//! The work of a job is its epochs. How fast it is with so many GPUs, on as few nodes as will do, is the time that all its
//! epochs take with them: goodput, which is throughput times what a sample is worth at the batch size. Only sizes that
//! were measured can be had. Decisions fall on rounds of 60 s, and a change of size takes 30 s. Nobody is slowed by others.

mod application;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::units::{Duration, Gpus};
use serde::Deserialize;

use super::{ImportOptions, Imported, ImportedJob, Kind, Rules, Why, named_jobs, nanoseconds};
use crate::scenario::InputError;
use crate::scenario::curve::Curve;
use crate::scenario::values::{check_name, whole_number};
use crate::trace::parse_seconds;
use crate::trace::table::{Cells, Column};
use application::Application;

const RESTART: Duration = Duration::from_secs(30);

/// What the workloads leave open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolluxOptions {
    /// The folder with a folder for each application; `traces` beside that of the workload, if none is said.
    pub traces: Option<PathBuf>,
    pub batch: Batch,
    /// Decisions fall on multiples of this; zero for none.
    pub round: Duration,
}

/// The batch size of a job over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Batch {
    /// What its owner asks for.
    #[default]
    Given,
    /// In each epoch the one of the best goodput.
    Adaptive,
}

impl PolluxOptions {
    /// As published, with the batch sizes of the workload.
    pub const PUBLISHED: Self = Self { traces: None, batch: Batch::Given, round: Duration::from_secs(60) };

    fn folder(&self, workload: &Path) -> PathBuf {
        let beside = || workload.parent().unwrap_or(Path::new("")).join("../traces");
        self.traces.clone().unwrap_or_else(beside)
    }
}

const COLUMNS: [Column; 5] = [
    Column::required("name"),
    Column::required("time"),
    Column::required("application"),
    Column::required("num_replicas"),
    Column::required("batch_size"),
];

pub fn pollux(path: &Path, options: ImportOptions, pollux: &PolluxOptions) -> Result<Imported, InputError> {
    let applications = application::read_all(&pollux.folder(path))?;
    let mut scalings = BTreeMap::new();
    for (name, application) in &applications {
        for batch in batches(path, name)? {
            if let Some(curve) = application.curve(batch, pollux.batch) {
                scalings.insert(format!("{name}/{batch}"), curve);
            }
        }
    }
    let (jobs, report) = named_jobs(path, COLUMNS, |cells| job(cells, &applications, &scalings))?;
    let rules =
        Rules { round: pollux.round, restart: RESTART, per_member: Some(NonZeroU32::MIN), ..Rules::FREE };
    let kind = |(name, curve): (String, Curve)| {
        let (application, batch) = name.split_once('/')?;
        let quality = applications[application].quality(batch.parse().ok()?, pollux.batch);
        Some(Kind { name, curve, quality })
    };
    let scalings = scalings.into_iter().filter_map(kind).collect();
    Ok(Imported { rules, scalings, ..Imported::new(path, options, jobs, report)? })
}

/// The batch sizes at which an application is trained in a workload.
fn batches(path: &Path, application: &str) -> Result<Vec<u32>, InputError> {
    use crate::trace::table::{Strangers, Table};
    let mut table = Table::open(path, COLUMNS, Strangers::Ignored)?;
    let mut batches = Vec::new();
    while let Some(cells) = table.next()? {
        let [_, _, name, _, batch] = cells.values;
        let batch = batch.and_then(|text| text.parse().ok()).filter(|_| name == Some(application));
        batches.extend(batch.filter(|batch| !batches.contains(batch)));
    }
    Ok(batches)
}

fn job(
    cells: &Cells<'_, 5>,
    applications: &BTreeMap<String, Application>,
    scalings: &BTreeMap<String, Curve>,
) -> Result<Result<ImportedJob, Why>, String> {
    let [name, time, application, replicas, batch] = cells.values;
    let name = name.ok_or("name is empty")?;
    check_name(name)?;
    let submit = parse_seconds(time.ok_or("time is empty")?).map_err(|error| format!("time: {error}"))?;
    let application = application.ok_or("application is empty")?;
    if !applications.contains_key(application) {
        return Err(format!("nothing was measured of the application {application}"));
    }
    let batch =
        whole_number(batch.unwrap_or("0"), 1..=1_000_000).map_err(|why| format!("batch_size: {why}"))?;
    let asked =
        whole_number(replicas.unwrap_or("0"), 0..=100_000).map_err(|why| format!("num_replicas: {why}"))?;
    if asked == 0 {
        return Ok(Err(Why::NoGpus));
    }
    let scaling = format!("{application}/{batch}");
    let curve =
        scalings.get(&scaling).ok_or_else(|| format!("a batch of {batch} was measured with no size"))?;
    let asked = (asked as u32).clamp(curve.least(), curve.most());
    Ok(Ok(ImportedJob {
        gpus: Gpus::whole(u64::from(asked)),
        duration: nanoseconds(1.0 / curve.speed(asked)),
        scaling: Some(scaling),
        ..ImportedJob::new(name, submit)
    }))
}
