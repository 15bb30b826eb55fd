//! How long `core` takes to build from clean, with what it depends on.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::shell;

/// The core is to build faster than this on two cores.
const GOAL: Duration = Duration::from_secs(15);

/// Builds `core` into an empty target folder and prints the time.
pub(super) fn measure() -> Result<()> {
    let folder = shell::root()?.join("target/bench/clean");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let target = folder.to_string_lossy();
    let clock = Instant::now();
    shell::run(&["cargo", "build", "--quiet", "--package", "metronome-core", "--target-dir", &target])?;
    let (taken, goal) = (clock.elapsed().as_secs_f64(), GOAL.as_secs());
    println!(
        "core builds from clean in {taken:.1} s; the goal is less than {goal} s on two cores that do nothing else"
    );
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}
