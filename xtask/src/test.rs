//! `cargo xtask test`: stages in the order in which they can run, each with its time; then failures, skips with their
//! reasons, and the slowest tests.

mod build;
mod doc_tests;
mod executable;
mod findings;
mod libtest;
mod preparation;
mod report;
mod schedule;
mod session;
mod stages;

use std::time::Instant;

use anyhow::Result;

pub(crate) use build::WHOLE_WORKSPACE;
pub(crate) use findings::Findings;
pub(crate) use session::data_folder;

use report::{Report, Strictness};
use session::Session;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The inner loop: formatting, fence and unit tests only
    #[arg(long)]
    quick: bool,
    /// Fail if a test is skipped; this is the default where the environment variable CI is set
    #[arg(long)]
    strict: bool,
    /// The version of Kubernetes to test against [default: METRONOME_KUBERNETES, or the newest]
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    let mut session = Session::begin(options)?;
    let mut report = Report::default();
    for stage in stages::of(options) {
        report.add(stage.name, stage.perform(&mut session));
    }
    report.print(begin.elapsed());
    report.verdict(Strictness::chosen(options.strict, std::env::var("CI").ok().as_deref()))
}
