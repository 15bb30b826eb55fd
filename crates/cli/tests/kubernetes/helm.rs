//! The chart in `deploy/chart`, by the real Helm.

use std::path::PathBuf;
use std::process::{Command, Output};

use metronome_testcluster::binaries::Program;
use metronome_testcluster::provide_or_skip;
use serde_json::Value;

pub(crate) struct Helm {
    program: PathBuf,
}

impl Helm {
    /// Helm, or `None` where it cannot be built: the test is then skipped.
    pub(crate) fn get() -> Option<Self> {
        provide_or_skip(Program::Helm).map(|program| Self { program })
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program).args(arguments).output().unwrap()
    }

    /// What the chart makes of these values, each `NAME=VALUE`.
    pub(crate) fn template(&self, namespace: &str, values: &[&str]) -> Result<String, String> {
        let mut arguments = vec!["template", "metronome", chart(), "--namespace", namespace];
        arguments.extend(values.iter().flat_map(|value| ["--set", value]));
        let output = self.run(&arguments);
        let said = String::from_utf8(if output.status.success() { output.stdout } else { output.stderr });
        if output.status.success() { Ok(said.unwrap()) } else { Err(said.unwrap()) }
    }
}

pub(crate) fn chart() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart/metronome")
}

/// What `metronome install` prints, as text.
pub(crate) fn printed(namespace: &str, flags: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_metronome"))
        .args(["install", "--namespace", namespace])
        .args(flags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The objects in a text, without the namespace that Helm makes by itself, in an order of their own.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let all: Vec<Option<Value>> = serde_saphyr::from_multiple(text).unwrap();
    let mut all: Vec<Value> =
        all.into_iter().flatten().filter(|object| object["kind"] != "Namespace").collect();
    all.sort_by_key(|object| (object["kind"].to_string(), object["metadata"]["name"].to_string()));
    all
}
