//! Compiles the tests and finds the executables that cargo leaves.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use super::executable::Executable;
use crate::shell;

/// Everything in the workspace, and the commands of the binary that need a cluster.
pub(crate) const WHOLE_WORKSPACE: [&str; 3] = ["--workspace", "--features", "metronome-cli/kubernetes"];

/// The binary as `cargo build` makes it, without those commands. The other packages are named so that their dependencies
/// have the same features in both builds, and are compiled once.
pub(crate) const DEFAULT_BUILD: [&str; 1] = ["--workspace"];

/// Compiles these kinds of targets, such as `--lib`, of one of the builds.
pub(crate) fn build(of: &[&str], kinds: &[&str]) -> Result<Vec<Executable>> {
    let line = ["cargo", "test", "--no-run", "--quiet", "--message-format=json-render-diagnostics"];
    let messages = shell::output(&[&line[..], of, kinds].concat())?;
    Ok(executables(&messages))
}

/// A program of a package that its integration tests may run.
struct Binary {
    package: String,
    name: String,
    path: String,
}

/// The test executables named in cargo's messages, in cargo's order of packages: by name.
fn executables(messages: &str) -> Vec<Executable> {
    let artifacts: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(is_program).collect();
    let (tests, others): (Vec<&Value>, Vec<&Value>) =
        artifacts.iter().partition(|artifact| artifact["profile"]["test"] == true);
    let binaries: Vec<Binary> = others.into_iter().filter_map(binary).collect();
    let mut found: Vec<Executable> =
        tests.into_iter().filter_map(|test| executable(test, &binaries)).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn is_program(message: &Value) -> bool {
    message["reason"] == "compiler-artifact" && message["executable"].is_string()
}

fn binary(artifact: &Value) -> Option<Binary> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (package, name) = (text(&artifact["package_id"])?, text(&artifact["target"]["name"])?);
    Some(Binary { package, name, path: text(&artifact["executable"])? })
}

fn executable(artifact: &Value, binaries: &[Binary]) -> Option<Executable> {
    let (id, target) = (artifact["package_id"].as_str()?, artifact["target"]["name"].as_str()?);
    let (manifest, kind) = (artifact["manifest_path"].as_str()?, artifact["target"]["kind"][0].as_str()?);
    let (package, version) = package_of(id, manifest);
    let name = match kind {
        "test" => format!("{package}::{target}"),
        "bin" => format!("{package}::bin/{target}"),
        _ => package.clone(),
    };
    let own = binaries.iter().filter(|binary| binary.package == id);
    let programs = own.map(|binary| (format!("CARGO_BIN_EXE_{}", binary.name), binary.path.clone()));
    let cargo = [
        ("CARGO_MANIFEST_DIR", Path::new(manifest).parent()?.display().to_string()),
        ("CARGO_MANIFEST_PATH", manifest.to_owned()),
        ("CARGO_PKG_NAME", package),
        ("CARGO_PKG_VERSION", version),
    ];
    let environment = cargo.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(programs);
    Some(Executable {
        name,
        path: PathBuf::from(artifact["executable"].as_str()?),
        folder: Path::new(manifest).parent()?.to_owned(),
        environment: environment.collect(),
    })
}

/// Name and version from an id such as `path+file:///…/crates/cli#metronome-cli@0.1.0`. Where the folder has the name
/// of the package, the id ends in `…/xtask#0.1.0`.
fn package_of(id: &str, manifest: &str) -> (String, String) {
    let end = id.rsplit('#').next().unwrap_or_default();
    let folder = Path::new(manifest).parent().and_then(Path::file_name).unwrap_or_default();
    match end.split_once('@') {
        Some((name, version)) => (name.to_owned(), version.to_owned()),
        None => (folder.to_string_lossy().into_owned(), end.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r##"
{"reason":"compiler-artifact","package_id":"registry+https://x#serde@1.0.0","manifest_path":"/c/serde/Cargo.toml","target":{"kind":["lib"],"name":"serde"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","package_id":"path+file:///r/crates/cli#metronome-cli@0.1.0","manifest_path":"/r/crates/cli/Cargo.toml","target":{"kind":["bin"],"name":"metronome"},"profile":{"test":false},"executable":"/t/metronome"}
{"reason":"compiler-artifact","package_id":"path+file:///r/xtask#0.1.0","manifest_path":"/r/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":true},"executable":"/t/xtask-1"}
{"reason":"compiler-artifact","package_id":"path+file:///r/crates/cli#metronome-cli@0.1.0","manifest_path":"/r/crates/cli/Cargo.toml","target":{"kind":["test"],"name":"cmd"},"profile":{"test":true},"executable":"/t/cmd-1"}
{"reason":"compiler-artifact","package_id":"path+file:///r/crates/core#metronome-core@0.1.0","manifest_path":"/r/crates/core/Cargo.toml","target":{"kind":["lib"],"name":"metronome_core"},"profile":{"test":true},"executable":"/t/core-1"}
{"reason":"build-finished","success":true}
"##;

    #[test]
    fn every_test_executable_is_found_with_its_folder_and_the_programs_of_its_package() {
        let found = executables(MESSAGES);
        let names: Vec<&str> = found.iter().map(|executable| executable.name.as_str()).collect();
        assert_eq!(names, ["metronome-cli::cmd", "metronome-core", "xtask::bin/xtask"]);
        assert_eq!(found[0].folder, Path::new("/r/crates/cli"));
        let value = |name: &str| found[0].environment.iter().find(|(known, _)| known == name).cloned();
        assert_eq!(value("CARGO_BIN_EXE_metronome").unwrap().1, "/t/metronome");
        assert_eq!(value("CARGO_MANIFEST_DIR").unwrap().1, "/r/crates/cli");
        assert_eq!(value("CARGO_PKG_NAME").unwrap().1, "metronome-cli");
        assert!(!found[1].environment.iter().any(|(name, _)| name.starts_with("CARGO_BIN_EXE")));
    }
}
