//! `cargo xtask kills`: kills scheduler, agent and members of a local world at random, many more times than the test does.

use anyhow::Result;

use crate::shell;
use crate::test::WHOLE_WORKSPACE;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How often something is killed in a run
    #[arg(long, value_name = "N", default_value_t = 200)]
    kills: u32,
    /// How many runs, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    runs: u32,
    /// The seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u32,
}

const TEST: &str = "kills::all_jobs_complete_though_scheduler_agent_and_members_are_killed_again_and_again";

pub(crate) fn run(options: &Options) -> Result<()> {
    // As `cargo xtask test` compiles it, so that nothing is compiled again.
    let test = ["--test", "local", "--", "--exact", TEST, "--nocapture"];
    let line = [&["cargo", "test", "--quiet"], &WHOLE_WORKSPACE[..], &test].concat();
    for seed in options.seed..options.seed + options.runs {
        eprintln!("── {} kills, seed {seed}", options.kills);
        let environment =
            [("METRONOME_KILLS", options.kills.to_string()), ("METRONOME_KILLS_SEED", seed.to_string())];
        shell::run_in(".", &line, &environment)?;
    }
    Ok(())
}
