//! The lists as a scenario, with the pods as a trace beside it.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Openb;
use super::nodes::Kind;
use crate::import::write::{WriteError, seconds, write_both};
use crate::scenario::Departures;

/// Writes `out` and the pods beside it; returns the path of the pods.
pub fn write_openb(openb: &Openb, out: &Path) -> Result<PathBuf, WriteError> {
    write_both(out, &openb.sources, |trace| openb.yaml(trace), |to| openb.write_trace(to))
}

impl Openb {
    /// The scenario, with its pods in the file `trace`.
    pub fn yaml(&self, trace: &str) -> String {
        let trace = serde_json::Value::from(trace);
        let mut nodes = String::new();
        for (Kind { cpu, memory, gpus, gpu_type }, count) in &self.nodes {
            write!(nodes, "    - {{count: {count}, cpu: {cpu}, memory: {memory}")
                .expect("writing to a string");
            if *gpus > 0 {
                write!(nodes, ", gpus: {gpus}").expect("writing to a string");
            }
            if let Some(gpu_type) = gpu_type {
                let gpu_type = serde_json::Value::from(gpu_type.as_str());
                write!(nodes, ", gpuType: {gpu_type}").expect("writing to a string");
            }
            nodes.push_str("}\n");
        }
        let departures = match self.departures {
            Departures::WhenDone => "",
            Departures::Never => "  departures: never\n",
        };
        format!(
            "apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: openb}}
spec:
  nodes:
{nodes}---
apiVersion: metronome.dev/v1alpha1
kind: Workload
metadata: {{name: openb}}
spec:
  arrivals: {{trace: {trace}}}
{departures}"
        )
    }

    /// The pods, row by row in the order of arrival.
    pub fn write_trace(&self, to: &mut impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(["job", "submit_s", "gpus", "duration_s", "cpu", "memory", "gpu_types"])?;
        for pod in &self.pods {
            let submit = seconds(pod.submit);
            let duration = match self.departures {
                Departures::WhenDone => seconds(pod.duration),
                Departures::Never => String::new(),
            };
            let [gpus, cpu, memory] = [pod.gpus.to_string(), pod.cpu.to_string(), pod.memory.to_string()];
            let types = pod.gpu_types.as_deref().unwrap_or_default();
            writer.write_record([&*pod.name, &*submit, &*gpus, &*duration, &*cpu, &*memory, types])?;
        }
        writer.flush()
    }
}
