//! The programs of a cluster: found, or built from pinned Go modules once and kept.
//!
//! The order is `KUBEBUILDER_ASSETS`, then the cache, then `go build` into the cache. The cache lies outside `target/`,
//! so that `cargo clean` does not cost the minutes that a cold build takes.

mod build;
mod program;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

pub use program::{Kubernetes, Program, UnknownVersion};

#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    #[error(
        "build {0}: there is no Go that can (tests against a real API server are left out)\n\
         hint: install Go 1.26 or name a folder with the programs in KUBEBUILDER_ASSETS"
    )]
    NoGo(Program),
    #[error("build {program}: go ended with {status} and said\n{output}")]
    Build { program: Program, status: ExitStatus, output: String },
    #[error("find a folder for programs\nhint: set METRONOME_CACHE")]
    NoCache,
    #[error("use {}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// A program that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    pub path: PathBuf,
    /// How long it took to build it, if it had to be.
    pub built_in: Option<Duration>,
}

/// Has a program ready to run, building it where it is missing.
pub fn provide(program: Program) -> Result<Provided, Unavailable> {
    match found(program)? {
        Some(path) => Ok(Provided { path, built_in: None }),
        None => build::build(program, cached(program)?),
    }
}

/// Where the source of the module lies that a program is built from: for the definitions and configurations that come
/// with it.
pub fn sources(program: Program) -> Result<PathBuf, Unavailable> {
    build::sources(program, program.source_module())
}

/// Where the source of a module lies that a program is partly built from.
pub fn sources_of(module: &str, program: Program) -> Result<PathBuf, Unavailable> {
    build::sources(program, module)
}

fn found(program: Program) -> Result<Option<PathBuf>, Unavailable> {
    let assets =
        std::env::var_os("KUBEBUILDER_ASSETS").map(|folder| Path::new(&folder).join(program.command()));
    if let Some(asset) = assets.filter(|path| path.is_file()) {
        return Ok(Some(asset));
    }
    let cached = cached(program)?;
    Ok(cached.is_file().then_some(cached))
}

/// The place in the cache. Its name tells what the program is built from, so that a changed module is built anew.
fn cached(program: Program) -> Result<PathBuf, Unavailable> {
    let module = program.module();
    let read = |name: &str| read(&module.join(name));
    let inputs = read("go.mod")? + &read("go.sum")?;
    let folder = format!("{}-{:016x}", program.module_name(), fingerprint(inputs.as_bytes()));
    Ok(cache_folder()?.join(folder).join(program.command()))
}

fn cache_folder() -> Result<PathBuf, Unavailable> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("METRONOME_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("metronome")))
        .or_else(|| named("HOME").map(|folder| folder.join(".cache/metronome")))
        .ok_or(Unavailable::NoCache)
}

fn read(path: &Path) -> Result<String, Unavailable> {
    fs::read_to_string(path).map_err(|source| Unavailable::File { path: path.to_owned(), source })
}

/// FNV-1a: the standard library's hasher may change with the compiler, and then every program would be built again.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_module_of_ours() {
        let planes = Kubernetes::ALL.into_iter().flat_map(Program::control_plane);
        let others = [
            Program::VolcanoScheduler,
            Program::VolcanoControllers,
            Program::JobSet,
            Program::Trainer,
            Program::MpiOperator,
            Program::Helm,
            Program::Promtool,
            Program::Kubectl,
        ];
        for program in planes.chain(others) {
            let go_mod = read(&program.module().join("go.mod")).unwrap();
            assert!(go_mod.contains(program.package()), "{program} is no tool of its go.mod");
        }
    }

    #[test]
    fn a_changed_module_is_another_place_in_the_cache() {
        assert_ne!(fingerprint(b"k8s.io/api v0.37.1"), fingerprint(b"k8s.io/api v0.37.2"));
    }
}
