//! `metronome run`

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use metronome_core::model::profile::Iteration;
use metronome_core::model::units::Duration;
use metronome_kubernetes::run::{MakeJournal, Options};
use metronome_kubernetes::world::{Mode, Settings};
use metronome_kubernetes::{act, lead, run as world};

use crate::cluster_args::ClusterArgs;
use crate::failure::Failure;
use crate::journal::JournalFile;
use crate::policies;
use crate::reply::Reply;

/// Schedule the pods of a Kubernetes cluster that name this scheduler
///
/// Takes the lead among its replicas, rebuilds everything it knows from the API server, and binds pods and gangs until
/// it is told to stop. With `--observe` it binds nothing and says what it would have done.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Decide and explain, but bind nothing; compare with the scheduler in charge
    #[arg(long)]
    observe: bool,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Pods with this `schedulerName` are scheduled; with `--observe`, `default-scheduler` if not given
    #[arg(long, value_name = "NAME")]
    scheduler_name: Option<String>,
    /// Namespace for the lease, the policy and the records of gangs being bound
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    namespace: String,
    /// Policy to decide by, unless the policy's ConfigMap says otherwise
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    policy: String,
    /// Node label that names a level of the topology, outermost first, where no Fabric does; may be given more than once
    #[arg(long = "level", value_name = "LABEL")]
    levels: Vec<String>,
    /// Where to serve health, metrics and answers
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8089")]
    listen: SocketAddr,
    /// Name of this replica; unique among all of them
    #[arg(long, value_name = "NAME")]
    identity: Option<String>,
    /// How long another replica waits before it takes over
    #[arg(long, value_name = "TIME", default_value = "15s")]
    lease_duration: Duration,
    /// How long this replica acts without a renewal of its lease; shorter than the lease lasts
    #[arg(long, value_name = "TIME", default_value = "10s")]
    renew_deadline: Duration,
    /// How often the lease is renewed
    #[arg(long, value_name = "TIME", default_value = "2s")]
    retry_period: Duration,
    /// Binds and evictions a second, at most; a quarter as many conditions and events besides
    #[arg(long, value_name = "NUMBER", default_value_t = 2000.0)]
    api_qps: f64,
    /// How long half a gang may wait to be completed before what can be made anew is deleted
    #[arg(long, value_name = "TIME", default_value = "30s")]
    repair_patience: Duration,
    /// How long a gang runs before it may be evicted for another's sake
    #[arg(long, value_name = "TIME", default_value = "0s")]
    min_run: Duration,
    /// Take the lead even if the first plan of a new version would disturb running jobs
    #[arg(long)]
    accept_first_plan: bool,
    /// Write everything that happens and is decided to this file
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

pub(crate) fn run(args: &Run) -> Result<Reply, Failure> {
    let options = options(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::world("start threads").because(&error))?;
    runtime.block_on(async {
        let config = args.cluster.config().await?;
        world::run(config, options, until_told_to_stop()?).await.map_err(|error| Failure::from_world(&error))
    })?;
    Ok(Reply::nothing())
}

fn options(args: &Run) -> Result<Options, Failure> {
    if args.lease_duration <= args.renew_deadline || args.renew_deadline <= args.retry_period {
        let failure = Failure::input("run with these times of the lease");
        return Err(failure
            .hint("--lease-duration must be longer than --renew-deadline, and that than --retry-period"));
    }
    if args.api_qps.is_nan() || args.api_qps <= 0.0 {
        return Err(
            Failure::input("run without any writes to the API server").hint("--api-qps must be above zero")
        );
    }
    let identity = args.identity.clone().unwrap_or_else(own_name);
    let mut lead = lead::Settings::new(&args.namespace, &identity, env!("CARGO_PKG_VERSION"));
    lead.duration = span(args.lease_duration);
    lead.renew_deadline = span(args.renew_deadline);
    lead.retry = span(args.retry_period);
    let act = act::Settings::new(&args.namespace, &identity).per_second(args.api_qps);
    Ok(Options {
        world: settings(args)?,
        lead,
        act,
        watch: metronome_kubernetes::watch::Settings::new(&args.namespace),
        listen: Some(args.listen),
        accepts_first_plan: args.accept_first_plan,
        journal: journal(args)?,
        say: Arc::new(|line| eprintln!("{line}")),
    })
}

fn settings(args: &Run) -> Result<Settings, Failure> {
    let usual = if args.observe { "default-scheduler" } else { "metronome" };
    let levels = args.levels.iter();
    if let Some(twice) =
        levels.clone().find(|level| levels.clone().filter(|other| other == level).count() > 1)
    {
        return Err(Failure::input(format!("use the label {twice} for two levels of the topology")));
    }
    Ok(Settings {
        mode: if args.observe { Mode::Observe } else { Mode::Bind },
        levels: args.levels.clone(),
        policy: policies::built_in(&args.policy)?.preempting(),
        models: Arc::new(models()),
        repair_patience: args.repair_patience,
        min_run: args.min_run,
        ..Settings::new(args.scheduler_name.as_deref().unwrap_or(usual))
    })
}

/// What is known of models by name: the simulator's measurements serve every world.
fn models() -> BTreeMap<String, Iteration> {
    let known = metronome_sim::model::all().iter();
    known.map(|model| (model.name.clone(), model.iteration.clone())).collect()
}

fn journal(args: &Run) -> Result<Option<MakeJournal>, Failure> {
    let Some(path) = args.journal.clone() else { return Ok(None) };
    let file = JournalFile::create(&path)?;
    Ok(Some(Box::new(move || Box::new(file.clone()))))
}

/// A name that no other replica has: a pod's own, or the machine's, and the process.
fn own_name() -> String {
    let host = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    format!("{}_{}", host.unwrap_or_default().trim(), std::process::id())
}

pub(super) fn until_told_to_stop() -> Result<watch::Receiver<bool>, Failure> {
    let cannot = |error: std::io::Error| Failure::world("listen for signals").because(&error);
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
    });
    Ok(stopped)
}

fn span(duration: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.0)
}
