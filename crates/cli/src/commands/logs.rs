//! `metronome logs`

mod follow;
mod members;
mod print;
mod read;

use clap::Args;

use crate::cluster::{JobArgs, JobRef, wait_for};
use crate::failure::Failure;
use crate::reply::Reply;

use members::Member;
use print::Printer;
use read::{Ended, How, Reader};

/// Print what the members of a training job have written, each line with the member that wrote it
///
/// With one member chosen, its lines are printed as they are. With `--follow` they are printed as they come, also those of
/// members that are made anew, until the job is over.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    job: JobArgs,
    /// Only this member, such as worker-3
    #[arg(long, short, value_name = "MEMBER")]
    member: Option<String>,
    /// Container of the members; if not given, the first
    #[arg(long, short, value_name = "NAME")]
    container: Option<String>,
    /// Go on printing until the job is over
    #[arg(long, short)]
    follow: bool,
    /// So many of the last lines of each member; all, if not given
    #[arg(long, value_name = "NUMBER")]
    tail: Option<u32>,
}

pub(crate) fn run(args: &Logs) -> Result<Reply, Failure> {
    wait_for(async {
        let job = args.job.open().await?;
        let found = job.get().await?;
        let printer = Printer::new(&found, args.member.is_some());
        match args.follow {
            true => follow::follow(&job, args, printer).await,
            false => what_there_is(&job, args, printer).await,
        }
    })
}

/// One member after another, as far as they have come.
async fn what_there_is(job: &JobRef, args: &Logs, mut printer: Printer) -> Result<Reply, Failure> {
    let members = members::chosen(job, args).await?;
    let mut reply = Reply::nothing();
    let mut has_started = false;
    for member in &members {
        let Some(container) = &member.container else {
            reply = reply.remarking(format!("{member} has not started{}", member.why()));
            continue;
        };
        has_started = true;
        let mut reader = Reader::new(job.pods(), member.pod.clone(), container.clone(), args.how());
        loop {
            match reader.next().await {
                Ok(line) if printer.print(member, &line) => {}
                Ok(_) => return Ok(Reply::nothing()),
                Err(Ended::Over) => break,
                Err(Ended::Failed(error)) => return Err(unreadable(member, &*error)),
            }
        }
    }
    match has_started {
        true => Ok(reply),
        false => Err(none_has_started(job, args, &members).await),
    }
}

async fn none_has_started(job: &JobRef, args: &Logs, members: &[Member]) -> Failure {
    let who = match (&args.member, members) {
        (Some(member), [_, ..]) => format!("{member} of {job} has not started"),
        _ => format!("no member of {job} has started"),
    };
    let why = job.get().await.map(|job| job.status.message).unwrap_or_default();
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    Failure::world(format!("print logs: {who}{why}")).hint("`--follow` waits for it")
}

fn unreadable(member: &Member, error: &dyn std::error::Error) -> Failure {
    Failure::world(format!("read the log of {}", member.pod)).because(error)
}

impl Logs {
    fn how(&self) -> How {
        How { follows: self.follow, tail: self.tail }
    }
}
