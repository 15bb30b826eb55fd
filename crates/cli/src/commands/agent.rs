//! `metronome agent`

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use metronome_agent::Options;
use metronome_core::model::units::Duration;

use super::agent_of_pods::{self, OfPods};
use crate::failure::Failure;
use crate::reply::Reply;

/// Watch the jobs on this node: learn what they send, hold them to their turns and classes, take their reports
///
/// Runs until it is told to stop, and then removes whatever it has made.
#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Folder with `members.json`, who is here, and `token`; the socket for reports is made there
    #[arg(long, value_name = "FOLDER")]
    dir: PathBuf,
    /// Take reports at this address, too
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Read byte counters so often; up to half as long passes besides
    #[arg(long, value_name = "TIME", default_value = "6ms")]
    step: Duration,
    /// Mark all that members send with the class of their job, in the DSCP field of packets
    #[arg(long)]
    mark: bool,
    #[command(flatten)]
    of_pods: OfPods,
}

/// Counters that are read more often cost more than they tell, and those read less often tell nothing of iterations.
const STEPS: std::ops::RangeInclusive<Duration> = Duration(500_000)..=Duration(100_000_000);

pub(crate) fn run(args: &Agent) -> Result<Reply, Failure> {
    if args.of_pods.kubernetes {
        return agent_of_pods::run(&args.of_pods, &args.dir);
    }
    if !STEPS.contains(&args.step) {
        return Err(Failure::input(format!("read counters every {}", args.step))
            .hint("--step is between 500µs and 100ms"));
    }
    let options = Options {
        dir: args.dir.clone(),
        listen: args.listen,
        step: std::time::Duration::from_nanos(args.step.0),
        mark: args.mark,
    };
    metronome_agent::run_until_told_to_stop(options).map_err(|error| Failure::from_world(&error))?;
    Ok(Reply::nothing())
}
