//! `metronome explain`

use std::path::{Path, PathBuf};

use clap::Args;

use metronome_core::engine::forecast::{Outlook, Sought, look_ahead};
use metronome_core::model::id::JobId;
use metronome_core::model::report::State;
use metronome_core::model::units::{Duration, Instant};
use metronome_sim::near::nearest;
use metronome_words::{Foreseen, document, document_foreseeing, lines, lines_foreseeing};

use crate::failure::Failure;
use crate::journal::Past;
use crate::reply::{Format, Reply};
use crate::server::{self, Asked, Behind};

/// Say in which state a job is and why, from a running scheduler or a recorded journal
///
/// Without `--journal` and `--server` the scheduler of the cluster is asked, through its API server.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Name of the job; in a cluster `namespace/name` of a pod or gang
    job: String,
    /// Journal that `--journal` wrote
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    journal: Option<PathBuf>,
    /// Where a running scheduler listens, such as http://127.0.0.1:8089
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    behind: Behind,
    /// Namespace of the job; if not given, the one of the kubeconfig's context
    #[arg(long, short, value_name = "NAME", conflicts_with_all = ["server", "journal"])]
    namespace: Option<String>,
    /// At this time after the beginning, such as 90s or 10m; at the end, if not given
    #[arg(long, value_name = "TIME", requires = "journal")]
    at: Option<Duration>,
    /// How to print the explanation
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

pub(crate) fn run(args: &Explain) -> Result<Reply, Failure> {
    match (&args.server, &args.journal) {
        (Some(server), _) => from_scheduler(args, Asked::At(server)),
        (None, Some(journal)) => from_journal(args, journal),
        (None, None) => from_scheduler(args, Asked::Behind(&args.behind)),
    }
}

fn from_scheduler(args: &Explain, asked: Asked<'_>) -> Result<Reply, Failure> {
    let document = server::explain(asked, &args.job, args.namespace.as_deref())?;
    Ok(match args.output {
        Format::Json => Reply::json(&document),
        Format::Human => Reply::text(document["text"].as_str().unwrap_or_default()),
    })
}

fn from_journal(args: &Explain, journal: &Path) -> Result<Reply, Failure> {
    let until = args.at.map(|after| Instant::START + after);
    let past = Past::read(journal, until)?;
    let Some((id, explanation)) = past.explain(&args.job) else {
        return Err(unknown_job(args, journal, &past));
    };
    let outlook = outlook(&past, id, explanation.state);
    let foreseen = outlook.as_ref().and_then(|outlook| Foreseen::of(outlook, id));
    let names = past.state();
    Ok(match (args.output, foreseen) {
        (Format::Json, None) => Reply::json(&document(&explanation, names)),
        (Format::Json, Some(foreseen)) => Reply::json(&document_foreseeing(&explanation, names, &foreseen)),
        (Format::Human, None) => Reply::text(lines(&explanation, names)),
        (Format::Human, Some(foreseen)) => Reply::text(lines_foreseeing(&explanation, names, &foreseen)),
    })
}

/// When it will start and end, for a job of which that can be asked. Made here and not by the engine's own
/// explanation: it costs as much as all decisions up to that job's end.
fn outlook(past: &Past, job: JobId, state: State) -> Option<Outlook> {
    let asks = !matches!(state, State::Suspended | State::Refused | State::Failed | State::Done);
    asks.then(|| look_ahead(past.state(), past.now(), Sought::One(job)))
}

fn unknown_job(args: &Explain, journal: &Path, past: &Past) -> Failure {
    let names = past.job_names();
    let failure = Failure::input(format!("find a job called `{}` in {}", args.job, journal.display()));
    match nearest(&args.job, names.iter().map(|name| &**name)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None if args.at.is_some() => failure.hint("jobs submitted after `--at` are not known at that time"),
        None => failure,
    }
}
