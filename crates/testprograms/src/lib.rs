//! The programs of a cluster: found, or built from pinned Go modules once and kept.
//!
//! The order is `KUBEBUILDER_ASSETS`, then the cache, then a build into the cache. The cache lies outside `target/`, so
//! that `cargo clean` does not cost the minutes that a cold build takes. This crate depends on next to nothing, so that
//! `cargo xtask test` can build Go programs while it compiles everything else.

mod amended;
mod build;
mod cache;
mod debian;
mod go;
mod program;

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

pub use cache::{cache_folder, fingerprint};
pub use program::{Kubernetes, Program, UnknownVersion};

#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    #[error(
        "build {0}: there is no Go that can (tests that need it are skipped)\n\
         hint: install Go 1.26 or name a folder with the programs in KUBEBUILDER_ASSETS"
    )]
    NoGo(Program),
    #[error(
        "get {0} from its Debian package: apt-get or dpkg-deb cannot be run (tests that need it are skipped)\n\
         hint: name a folder with the program in KUBEBUILDER_ASSETS"
    )]
    NoDebian(Program),
    #[error("build {what}: {tool} ended with {status} and said\n{output}")]
    Build { what: String, tool: &'static str, status: ExitStatus, output: String },
    #[error("find a folder for programs\nhint: set METRONOME_CACHE")]
    NoCache,
    #[error("use {}", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl Unavailable {
    /// Whether this machine lacks a tool: then tests are skipped. Everything else is a failure.
    pub fn is_lack_of_tools(&self) -> bool {
        matches!(self, Self::NoGo(_) | Self::NoDebian(_))
    }
}

/// Programs that were built together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub programs: Vec<Program>,
    pub took: Duration,
}

/// The path of a program that is ready to run; it is built if it is missing.
pub fn provide(program: Program) -> Result<PathBuf, Unavailable> {
    provide_all(&[program])?;
    cache::find(program)?.ok_or(Unavailable::NoCache)
}

/// Builds those of the programs that are missing. Programs of one Go module are built by one command, which compiles
/// what they share once and links one while it compiles the next.
pub fn provide_all(programs: &[Program]) -> Result<Vec<Built>, Unavailable> {
    let mut missing = Vec::new();
    for program in programs {
        if cache::find(*program)?.is_none() {
            missing.push(*program);
        }
    }
    missing.sort();
    missing.dedup();
    let mut built = Vec::new();
    while let Some(first) = missing.first() {
        let source = first.source();
        let (together, others) =
            missing.iter().partition::<Vec<Program>, _>(|other| other.source() == source);
        built.extend(build::build(&together)?);
        missing = others;
    }
    Ok(built)
}

/// The folder with the source of a program's module: for the definitions and configurations that come with it.
pub fn sources(program: Program) -> Result<PathBuf, Unavailable> {
    go::sources(program, program.source_module())
}

/// The folder with the source of another module that the program's Go module pins.
pub fn sources_of(module: &str, program: Program) -> Result<PathBuf, Unavailable> {
    go::sources(program, module)
}
