//! Alibaba's openb: a list of nodes and a list of pods that ask for CPU, memory and GPUs, whole or shares of one.
//!
//! The nodes are those of the list, equal ones together. Every pod is a job of one member. Its time is that from being
//! scheduled, or created where it never was, to being deleted.
//!
//! With a fill, pods are drawn from the list, each as likely as another and as often as it comes, until they ask for so
//! much of the cluster's GPUs; they arrive a second apart. Without departures nobody ever leaves, so that the cluster
//! fills up: what it then holds is what placement is worth.

mod nodes;
mod write;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use metronome_core::model::units::{Cpu, Duration, Gpus, Memory};
use rand::RngExt;
use rand_pcg::Pcg64;

use super::{Dropped, ImportReport, Why, at_line};
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{check_name, whole_number};
use crate::scenario::{Departures, InputError};
use crate::trace::parse_seconds;
use crate::trace::table::{Cells, Column, Strangers, Table};

use nodes::{Kind, nodes, total};
pub use write::write_openb;

/// What the lists leave open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenbOptions {
    /// Pods are drawn until they ask for so much of all GPUs; all of the list once, if nothing is said.
    pub fill: Option<Fill>,
    /// The first so many pods, by creation or as drawn.
    pub limit: Option<usize>,
    pub departures: Departures,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// In thousandths of the cluster's GPUs.
    pub thousandths: u32,
    pub seed: u64,
}

/// Lists that have been read and can be written as a scenario.
#[derive(Clone, Debug)]
pub struct Openb {
    pub report: ImportReport,
    sources: [PathBuf; 2],
    nodes: Vec<(Kind, u64)>,
    pods: Vec<Pod>,
    departures: Departures,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pod {
    name: String,
    submit: Duration,
    duration: Duration,
    cpu: Cpu,
    memory: Memory,
    gpus: Gpus,
    gpu_types: Option<String>,
}

const NODE_LIST: &str = "openb_node_list_all_node.csv";
const POD_LIST: &str = "openb_pod_list_default.csv";

/// More of one node than any has; above it a number is a mistake.
const MOST_GPUS: u64 = 1_000;
const MOST_MILLI_CPU: u64 = 1_000_000_000;
const MOST_MIB: u64 = 1 << 40;

/// More pods than any list has: a fill that asks for more is a mistake.
const MOST_PODS: usize = 1_000_000;

/// What random numbers are drawn for.
const PODS: u128 = 21;

pub fn openb(folder: &Path, options: OpenbOptions) -> Result<Openb, InputError> {
    let sources = [list(folder, NODE_LIST)?, list(folder, POD_LIST)?];
    let nodes = nodes(&sources[0])?;
    let mut report = ImportReport::default();
    let mut pods = pods(&sources[1], options, &mut report)?;
    match options.fill {
        Some(fill) => {
            let drawn = drawn(&pods, fill, total(&nodes));
            pods = drawn.map_err(|problem| problem.in_file(&text(&sources[1])))?;
        }
        None => pods.sort_by_key(|pod| pod.submit),
    }
    let kept = options.limit.unwrap_or(usize::MAX).min(pods.len());
    report.beyond_limit = pods.len() - kept;
    report.jobs = kept;
    pods.truncate(kept);
    Ok(Openb { report, sources, nodes, pods, departures: options.departures })
}

/// One of the two lists, plain or gzipped.
fn list(folder: &Path, name: &str) -> Result<PathBuf, InputError> {
    let names = [name.to_owned(), format!("{name}.gz")];
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.exists());
    found.ok_or_else(|| {
        let problem = match folder.is_dir() {
            true => Problem::whole(format!("there is no {name} or {name}.gz in it")),
            false => Problem::whole("it is not a folder"),
        };
        let hint = format!("name the folder that has {NODE_LIST} and {POD_LIST}");
        problem.with_hint(hint).in_file(&text(folder))
    })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn number(cell: Option<&str>, column: &str, most: u64) -> Result<u64, String> {
    let text = cell.ok_or_else(|| format!("{column} is empty"))?;
    whole_number(text, 0..=most).map_err(|error| format!("{column}: {error}"))
}

fn cpu_of(cell: Option<&str>) -> Result<Cpu, String> {
    number(cell, "cpu_milli", MOST_MILLI_CPU).map(Cpu)
}

fn memory_of(cell: Option<&str>) -> Result<Memory, String> {
    number(cell, "memory_mib", MOST_MIB).map(|mib| Memory(mib << 20))
}

const POD_COLUMNS: [Column; 9] = [
    Column::required("name"),
    Column::required("cpu_milli"),
    Column::required("memory_mib"),
    Column::required("num_gpu"),
    Column::required("gpu_milli"),
    Column::optional("gpu_spec"),
    Column::required("creation_time"),
    Column::required("deletion_time"),
    Column::optional("scheduled_time"),
];

/// All pods. A pod that ran for no time is none, where pods leave.
fn pods(path: &Path, options: OpenbOptions, report: &mut ImportReport) -> Result<Vec<Pod>, InputError> {
    let mut table = Table::open(path, POD_COLUMNS, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let (mut pods, mut names) = (Vec::new(), HashSet::new());
    while let Some(cells) = table.next()? {
        let wrong = at_line(cells.line, &file);
        let pod = pod(&cells).map_err(&wrong)?;
        if !names.insert(pod.name.clone()) {
            return Err(wrong(format!("a second pod is called {}", quoted(&pod.name))));
        }
        match pod.duration.is_zero() && options.departures == Departures::WhenDone {
            true => report.dropped.push(Dropped { line: cells.line, why: Why::NoDuration }),
            false => pods.push(pod),
        }
    }
    report.blank_lines = table.blank_lines();
    match pods.is_empty() {
        true => Err(Problem::whole("there are no jobs in it").in_file(&file)),
        false => Ok(pods),
    }
}

fn pod(cells: &Cells<'_, 9>) -> Result<Pod, String> {
    let [name, cpu, memory, num_gpu, gpu_milli, gpu_spec, created, deleted, scheduled] = cells.values;
    let name = name.ok_or("name is empty")?;
    check_name(name)?;
    let time = |text: Option<&str>, column: &str| {
        let text = text.ok_or_else(|| format!("{column} is empty"))?;
        parse_seconds(text).map_err(|error| format!("{column}: {error}"))
    };
    let (submit, end) = (time(created, "creation_time")?, time(deleted, "deletion_time")?);
    let start = scheduled.map_or(Ok(submit), |text| time(Some(text), "scheduled_time"))?;
    let (cpu, memory) = (cpu_of(cpu)?, memory_of(memory)?);
    let gpus = gpus(number(num_gpu, "num_gpu", MOST_GPUS)?, number(gpu_milli, "gpu_milli", Gpus::ONE.0)?)?;
    if (cpu, memory, gpus) == (Cpu::ZERO, Memory::ZERO, Gpus::ZERO) {
        return Err("a pod takes something".into());
    }
    let gpu_types = gpu_spec.filter(|_| !gpus.is_zero()).map(str::to_owned);
    Ok(Pod { name: name.to_owned(), submit, duration: end - start, cpu, memory, gpus, gpu_types })
}

/// So many devices, or so much of one.
fn gpus(count: u64, milli: u64) -> Result<Gpus, String> {
    match (count, Gpus(milli)) {
        (0, _) => Ok(Gpus::ZERO),
        (_, Gpus::ZERO) => Err("gpu_milli is 0 beside a num_gpu".into()),
        (count, Gpus::ONE) => Ok(Gpus::whole(count)),
        (1, share) => Ok(share),
        (count, _) => Err(format!("gpu_milli {milli} of {count} devices: a share is of a single one")),
    }
}

/// Pods one after the other until they ask for the fill. Who is drawn again has another name.
fn drawn(pods: &[Pod], fill: Fill, gpus: Gpus) -> Result<Vec<Pod>, Problem> {
    let wanted = Gpus(gpus.0 * u64::from(fill.thousandths) / 1000);
    if wanted.is_zero() || pods.iter().all(|pod| pod.gpus.is_zero()) {
        return Err(Problem::whole("there are no GPUs to fill, or no pod that asks for any"));
    }
    let mut random = Pcg64::new(u128::from(fill.seed), PODS);
    let (mut all, mut asked) = (Vec::new(), Gpus::ZERO);
    while asked < wanted {
        if all.len() == MOST_PODS {
            return Err(Problem::whole(format!("so large a fill takes more than {MOST_PODS} pods")));
        }
        let pod = &pods[random.random_range(0..pods.len())];
        asked += pod.gpus;
        let name = format!("{}-{}", pod.name, all.len());
        let submit = Duration::from_secs(all.len() as u64);
        all.push(Pod { name, submit, ..pod.clone() });
    }
    Ok(all)
}

impl Fill {
    /// `1.3` or `130%` of the cluster's GPUs, above nothing.
    pub fn parse(text: &str, seed: u64) -> Result<Self, String> {
        const MOST: f64 = 100.0;
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let share = number.parse::<f64>().ok().map(|number| number / unit);
        let share = share.filter(|share| (0.001..=MOST).contains(share));
        let share = share.ok_or_else(|| format!("{} is not a share such as 1.3 or 130%", quoted(text)))?;
        Ok(Self { thousandths: (share * 1000.0).round() as u32, seed })
    }
}
