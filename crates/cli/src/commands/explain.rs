//! `metronome explain`

use std::path::PathBuf;

use clap::Args;

use metronome_core::units::{Duration, Instant};

use crate::failure::Failure;
use crate::journal::Past;
use crate::reply::{Format, Reply};
use metronome_sim::near::nearest;

/// Say in which state a job is and why, from a recorded journal
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Name of the job
    job: String,
    /// Journal that `sim run --journal` wrote
    #[arg(long, value_name = "FILE")]
    journal: PathBuf,
    /// At this time after the beginning, such as 90s or 10m; at the end, if not given
    #[arg(long, value_name = "TIME")]
    at: Option<Duration>,
    /// How to print the explanation
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

pub(crate) fn run(args: &Explain) -> Result<Reply, Failure> {
    let until = args.at.map(|after| Instant::START + after);
    let past = Past::read(&args.journal, until)?;
    let Some(explanation) = past.explain(&args.job) else { return Err(unknown_job(args, &past)) };
    Ok(match args.output {
        Format::Json => Reply::json(&metronome_words::document(&explanation, &past)),
        Format::Human => Reply::text(metronome_words::lines(&explanation, &past)),
    })
}

fn unknown_job(args: &Explain, past: &Past) -> Failure {
    let names = past.job_names();
    let failure = Failure::input(format!("find a job called `{}` in {}", args.job, args.journal.display()));
    match nearest(&args.job, names.iter().map(|name| &**name)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None if args.at.is_some() => failure.hint("jobs submitted after `--at` are not known at that time"),
        None => failure,
    }
}
