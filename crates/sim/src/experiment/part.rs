//! One scenario of an experiment: a file beside the definition, or a public trace that becomes one when it is run.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use metronome_core::model::job::Binding;
use metronome_core::model::units::{Duration, QuantityError, Share, parse_share};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::import::{
    self, Batch, ElasticflowOptions, Fill, ImportOptions, Imported, Lingjun, MuriOptions, Openb,
    OpenbOptions, PolluxOptions, TimeFrom, WriteError,
};
use crate::scenario::{Departures, InputError};

/// As it is written: `"load-0.8.yaml"`, `{"file": "load-0.8.yaml", "policies": […]}`, `{"name": "muri", "import": …}` or
/// `{"name": "two-to-one", "file": "load-0.8.yaml", "with": {"rack: 150Gbps": "rack: 300Gbps"}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What bars, tables and charts call it: its file, or the name that an import is given.
    pub name: String,
    /// The trace it is made of; nothing where it is a file in the folder of the experiment.
    pub import: Option<Import>,
    /// The file that it is made of, with some texts replaced by others; it may be one of another experiment.
    pub varied: Option<Varied>,
    /// Run instead of those of the experiment, if there are any.
    pub policies: Vec<String>,
    /// What was measured elsewhere on the same jobs.
    pub observed: Vec<Observed>,
    /// By up to which part of it the length of each job is misjudged; as the scenario says, if nothing is said.
    pub misjudged: Option<Share>,
}

/// A scenario file, from the folder of the experiment, and what stands in it instead of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Varied {
    pub file: String,
    pub with: BTreeMap<String, String>,
}

/// A trace in the folder of data, and how it is imported.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "format", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Import {
    Muri {
        file: String,
        nodes: NonZeroU32,
        gpus_per_node: NonZeroU32,
        limit: Option<usize>,
        #[serde(default = "published_round", deserialize_with = "time")]
        round: Duration,
        #[serde(default)]
        time: TimeFrom,
    },
    Elasticflow {
        file: String,
        nodes: NonZeroU32,
        gpus_per_node: NonZeroU32,
        limit: Option<usize>,
        #[serde(default = "a100")]
        scaling: String,
        #[serde(default = "elasticflow_round", deserialize_with = "time")]
        round: Duration,
        #[serde(default)]
        binding: Binding,
    },
    Chronus {
        file: String,
        nodes: NonZeroU32,
        gpus_per_node: NonZeroU32,
        limit: Option<usize>,
        #[serde(default = "chronus_round", deserialize_with = "time")]
        round: Duration,
    },
    Pollux {
        file: String,
        nodes: NonZeroU32,
        gpus_per_node: NonZeroU32,
        #[serde(default)]
        batch: Batch,
        #[serde(default = "pollux_round", deserialize_with = "time")]
        round: Duration,
    },
    /// Pods drawn until they ask for that share of the GPUs, who stay.
    Openb {
        /// The folder of its lists.
        file: String,
        /// In thousandths.
        #[serde(deserialize_with = "thousandths")]
        fill: u32,
        seed: u64,
    },
    /// A topology, with jobs that the folder of the experiment has.
    Lingjun {
        file: String,
        /// Documents of jobs, beside the definition.
        jobs: String,
    },
}

/// A trace that was read and can be written as a scenario.
#[derive(Clone, Debug)]
pub enum Trace {
    Jobs(Imported),
    Pods(Openb),
    Topology(Lingjun),
}

impl Trace {
    /// Writes `out` and the trace beside it.
    pub fn write(&self, out: &Path) -> Result<PathBuf, WriteError> {
        match self {
            Self::Jobs(jobs) => import::write(jobs, out),
            Self::Pods(pods) => import::write_openb(pods, out),
            Self::Topology(topology) => import::write_lingjun(topology, out),
        }
    }
}

/// The outcome of one policy on a testbed: a row for each job, as Muri's authors publish theirs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Observed {
    /// What tables and bars call it, as if it were a policy.
    pub name: String,
    /// The policy that ran there.
    pub policy: String,
    /// In the folder of data.
    pub file: String,
}

impl Part {
    /// Files that it takes from the folder of data.
    pub fn data(&self) -> impl Iterator<Item = &str> {
        let trace = self.import.iter().map(Import::file);
        trace.chain(self.observed.iter().map(|observed| observed.file.as_str()))
    }
}

impl Import {
    pub fn file(&self) -> &str {
        match self {
            Self::Muri { file, .. }
            | Self::Elasticflow { file, .. }
            | Self::Chronus { file, .. }
            | Self::Pollux { file, .. }
            | Self::Openb { file, .. }
            | Self::Lingjun { file, .. } => file,
        }
    }

    /// The file beside the definition that it needs, if any.
    pub fn beside(&self) -> Option<&str> {
        match self {
            Self::Lingjun { jobs, .. } => Some(jobs),
            _ => None,
        }
    }

    /// Reads the trace from the folder of data, and from that of the experiment what it needs beside it.
    pub fn read(&self, data: &Path, folder: &Path) -> Result<Trace, InputError> {
        match *self {
            Self::Muri { ref file, nodes, gpus_per_node, limit, round, time } => {
                let options = ImportOptions { nodes, gpus_per_node, limit };
                import::muri(&data.join(file), options, MuriOptions { round, time }).map(Trace::Jobs)
            }
            Self::Elasticflow { ref file, nodes, gpus_per_node, limit, ref scaling, round, binding } => {
                let options = ImportOptions { nodes, gpus_per_node, limit };
                let rules = ElasticflowOptions { scaling: scaling.clone(), round, binding };
                import::elasticflow(&data.join(file), options, &rules).map(Trace::Jobs)
            }
            Self::Chronus { ref file, nodes, gpus_per_node, limit, round } => {
                let options = ImportOptions { nodes, gpus_per_node, limit };
                import::chronus(&data.join(file), options, round).map(Trace::Jobs)
            }
            Self::Pollux { ref file, nodes, gpus_per_node, batch, round } => {
                let options = ImportOptions { nodes, gpus_per_node, limit: None };
                let rules = PolluxOptions { traces: None, batch, round };
                import::pollux(&data.join(file), options, &rules).map(Trace::Jobs)
            }
            Self::Openb { ref file, fill, seed } => {
                let fill = Some(Fill { thousandths: fill, seed });
                let options = OpenbOptions { fill, limit: None, departures: Departures::Never };
                import::openb(&data.join(file), options).map(Trace::Pods)
            }
            Self::Lingjun { ref file, ref jobs } => {
                import::lingjun(&data.join(file), Some(&folder.join(jobs))).map(Trace::Topology)
            }
        }
    }
}

fn published_round() -> Duration {
    MuriOptions::PUBLISHED.round
}

fn a100() -> String {
    ElasticflowOptions::published().scaling
}

fn elasticflow_round() -> Duration {
    ElasticflowOptions::published().round
}

fn chronus_round() -> Duration {
    import::CHRONUS_ROUND
}

fn pollux_round() -> Duration {
    PolluxOptions::PUBLISHED.round
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|error: QuantityError| de::Error::custom(error))
}

fn thousandths<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let fill = Fill::parse(&String::deserialize(from)?, 0);
    fill.map(|fill| fill.thousandths).map_err(de::Error::custom)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    file: Option<String>,
    name: Option<String>,
    import: Option<Import>,
    #[serde(default)]
    with: BTreeMap<String, String>,
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    observed: Vec<Observed>,
    misjudged: Option<String>,
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(PartVisitor)
    }
}

const WHAT_A_SCENARIO_HAS: &str = "a scenario has a `file`; a `name`, a `file` and what is replaced `with` what; or a `name` and an `import`";

struct PartVisitor;

impl<'de> Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a file, {file, policies}, {name, file, with, policies} or {name, import, policies, observed}",
        )
    }

    fn visit_str<E: de::Error>(self, file: &str) -> Result<Part, E> {
        Ok(Part {
            name: file.to_owned(),
            import: None,
            varied: None,
            policies: Vec::new(),
            observed: Vec::new(),
            misjudged: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Part, A::Error> {
        let Shape { file, name, import, with, policies, observed, misjudged } =
            Deserialize::deserialize(MapAccessDeserializer::new(fields))?;
        let (name, import, varied) = match (file, name, import, with.is_empty()) {
            (Some(file), None, None, true) => (file, None, None),
            (Some(file), Some(name), None, false) => (name, None, Some(Varied { file, with })),
            (None, Some(name), Some(import), true) => (name, Some(import), None),
            _ => return Err(de::Error::custom(WHAT_A_SCENARIO_HAS)),
        };
        let misjudged = misjudged.map(|text| parse_share(&text)).transpose().map_err(de::Error::custom)?;
        Ok(Part { name, import, varied, policies, observed, misjudged })
    }
}
