//! The topology of Alibaba's Lingjun dataset: hosts under top-of-rack, pod and core switches, without rates.
//!
//! Rates and GPUs are ours: a host has 8 GPUs and 200 Gbps, and the uplinks of each switch together carry half of what
//! hangs below it. A switch at the top of a rack is named by itself and the pod it is in, as names repeat between pods.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use metronome_core::model::units::Bandwidth;

use super::at_line;
use super::write::{WriteError, write_one};
use crate::scenario::InputError;
use crate::scenario::error::{Problem, quoted};
use crate::scenario::source;
use crate::scenario::values::{MOST_NODES, check_name};
use crate::trace::table::{Column, Strangers, Table};

const HOST: Bandwidth = Bandwidth(200_000_000_000);
const GPUS: u32 = 8;

/// Above each switch there is a fraction of one over this of what is below.
const OVERSUBSCRIBED: u64 = 2;

const COLUMNS: [Column; 4] =
    [Column::required("ip"), Column::required("DSW"), Column::required("PSW"), Column::required("ASW")];

/// A topology that was read, and the documents of jobs to run on it.
#[derive(Clone, Debug)]
pub struct Lingjun {
    sources: Vec<PathBuf>,
    /// Hosts by rack, racks by pod, in order of name.
    pods: BTreeMap<String, Pod>,
    hosts: u64,
    jobs: String,
}

#[derive(Clone, Debug)]
struct Pod {
    core: String,
    racks: BTreeMap<String, u64>,
}

/// Reads the list of hosts, and documents of jobs where there are some.
pub fn lingjun(path: &Path, jobs: Option<&Path>) -> Result<Lingjun, InputError> {
    let mut table = Table::open(path, COLUMNS, Strangers::Ignored)?;
    let file = table.file().to_owned();
    let (mut pods, mut hosts) = (BTreeMap::new(), 0);
    while let Some(cells) = table.next()? {
        let wrong = at_line(cells.line, &file);
        let [_, core, pod, rack] = cells.values.map(|value| value.unwrap_or_default());
        [core, pod, rack].into_iter().try_for_each(check_name).map_err(&wrong)?;
        let found: &mut Pod = pods
            .entry(pod.to_owned())
            .or_insert_with(|| Pod { core: core.to_owned(), racks: BTreeMap::new() });
        if found.core != core {
            return Err(wrong(format!("pod {} is under two core switches", quoted(pod))));
        }
        *found.racks.entry(rack.to_owned()).or_default() += 1;
        hosts += 1;
    }
    match hosts {
        0 => return Err(Problem::whole("there are no hosts in it").in_file(&file)),
        count if count > MOST_NODES => {
            return Err(Problem::whole(format!("a cluster has at most {MOST_NODES} nodes")).in_file(&file));
        }
        _ => {}
    }
    let sources = [path].into_iter().chain(jobs).map(Path::to_owned).collect();
    let jobs = jobs.map(|jobs| source::text(source::open(jobs)?, &jobs.display().to_string())).transpose()?;
    Ok(Lingjun { sources, pods, hosts, jobs: jobs.unwrap_or_default() })
}

/// Writes the cluster, and the jobs after it, as one scenario.
pub fn write_lingjun(lingjun: &Lingjun, out: &Path) -> Result<PathBuf, WriteError> {
    write_one(out, &lingjun.sources, &lingjun.yaml())
}

impl Lingjun {
    pub fn hosts(&self) -> u64 {
        self.hosts
    }

    pub fn racks(&self) -> usize {
        self.pods.values().map(|pod| pod.racks.len()).sum()
    }

    /// The Cluster, and the documents of jobs as they are.
    pub fn yaml(&self) -> String {
        let (mut nodes, mut links) = (String::new(), String::new());
        for (name, pod) in &self.pods {
            for (rack, hosts) in &pod.racks {
                let group = format!("{name}-{rack}");
                let within = format!("within: {{pod: {name}, rack: {rack}}}");
                put(&mut nodes, format_args!("name: {group}, count: {hosts}, {within}, gpus: {GPUS}"));
                for host in 0..*hosts {
                    put(&mut links, format_args!("from: {group}-{host}, to: {group}, rate: {HOST}"));
                }
                put(&mut links, format_args!("from: {group}, to: {name}, rate: {}", above(*hosts)));
            }
            let hosts: u64 = pod.racks.values().sum();
            let rate = Bandwidth(above(hosts).0 / OVERSUBSCRIBED);
            put(&mut links, format_args!("from: {name}, to: {}, rate: {rate}", pod.core));
        }
        let jobs = if self.jobs.is_empty() { String::new() } else { format!("---\n{}", self.jobs) };
        format!(
            "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: lingjun}}
spec:
  levels: [pod, rack, node]
  nodes:
{nodes}  links:
{links}{jobs}"
        )
    }
}

/// What leads up from a rack of so many hosts.
fn above(hosts: u64) -> Bandwidth {
    Bandwidth(HOST.0 * hosts / OVERSUBSCRIBED)
}

fn put(list: &mut String, fields: std::fmt::Arguments<'_>) {
    writeln!(list, "    - {{{fields}}}").expect("writing to a string");
}
