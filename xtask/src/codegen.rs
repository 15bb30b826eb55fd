//! `cargo xtask codegen`: pages of `docs/reference/`, definitions for API servers and the Helm chart, which the program itself
//! prints, committed and diffed.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::shell;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail where a file is not what would be written
    #[arg(long)]
    check: bool,
}

/// What the program is asked for, and where it lies.
const PAGES: &[(&str, &str)] = &[
    ("cli", "docs/reference/cli.md"),
    ("policies", "docs/reference/policies.md"),
    ("tuning", "docs/reference/tuning.md"),
    ("queue", "deploy/crds/queue.yaml"),
    ("fabric", "deploy/crds/fabric.yaml"),
    ("training-job", "deploy/crds/trainingjob.yaml"),
    ("rights", "docs/reference/rbac.md"),
    ("chart Chart.yaml", "deploy/chart/metronome/Chart.yaml"),
    ("chart README.md", "deploy/chart/metronome/README.md"),
    ("chart values.yaml", "deploy/chart/metronome/values.yaml"),
    ("chart values.schema.json", "deploy/chart/metronome/values.schema.json"),
    ("chart templates/account.yaml", "deploy/chart/metronome/templates/account.yaml"),
    ("chart templates/agent.yaml", "deploy/chart/metronome/templates/agent.yaml"),
    ("chart templates/agent-monitoring.yaml", "deploy/chart/metronome/templates/agent-monitoring.yaml"),
    ("chart templates/definitions.yaml", "deploy/chart/metronome/templates/definitions.yaml"),
    ("chart templates/guard.yaml", "deploy/chart/metronome/templates/guard.yaml"),
    ("chart templates/monitoring.yaml", "deploy/chart/metronome/templates/monitoring.yaml"),
    ("chart templates/scheduler.yaml", "deploy/chart/metronome/templates/scheduler.yaml"),
    ("chart templates/settings.yaml", "deploy/chart/metronome/templates/settings.yaml"),
];

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.check {
        return check();
    }
    for (page, path) in PAGES {
        let path = shell::root()?.join(path);
        fs::write(&path, print(page)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn check() -> Result<()> {
    let mut stale = Vec::new();
    for (page, path) in PAGES {
        let committed = fs::read_to_string(shell::root()?.join(path)).unwrap_or_default();
        if committed != print(page)? {
            stale.push(*path);
        }
    }
    ensure!(stale.is_empty(), "{} out of date: run `cargo xtask codegen`", stale.join(", "));
    Ok(())
}

fn print(page: &str) -> Result<String> {
    let run = ["cargo", "run", "--quiet", "--package", "metronome-cli", "--features", "kubernetes", "--"];
    let words: Vec<&str> = page.split(' ').collect();
    shell::output(&[&run[..], &["reference"], &words].concat())
}
