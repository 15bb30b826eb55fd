//! `metronome run`: waits for the lead, rebuilds the world from the API server, and turns it until the lead is lost.

mod answer;
mod outlook;
mod rehearse;
mod term;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch as channel};
use tokio::task::JoinHandle;

use metronome_core::journal::Journal;

use crate::lead::{self, Lead, Standing};
use crate::metrics::Metrics;
use crate::request::{Server, connect};
use crate::serve::{Health, Question, Sources, serve};
use crate::world::{self, Mode};
use crate::{act, watch};

use rehearse::Permission;
use term::Term;

/// Everything `run` is told.
pub struct Options {
    pub world: world::Settings,
    pub lead: lead::Settings,
    pub act: act::Settings,
    pub watch: watch::Settings,
    /// Where health, metrics and answers are served.
    pub listen: Option<SocketAddr>,
    /// Takes the lead even if the first plan would disturb running jobs.
    pub accepts_first_plan: bool,
    /// Where each term's journal goes, if anywhere.
    pub journal: Option<MakeJournal>,
    /// One line for whoever watches the process.
    pub say: Say,
}

pub type MakeJournal = Box<dyn Fn() -> Box<dyn Journal + Send> + Send + Sync>;
pub type Say = Arc<dyn Fn(String) + Send + Sync>;

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("world", &self.world)
            .field("lead", &self.lead)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("connect to the API server")]
    Connect(#[source] kube::Error),
    #[error("listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
}

/// A loop that has not turned for so long hangs.
const STALLED_AFTER: Duration = Duration::from_secs(60);
/// An answer that has not come by then is not awaited: shorter than the time between the end of our lead and the
/// beginning of another's.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs until `stop` says so. Losing the lead is no error: another leads, and we wait to lead again.
pub async fn run(
    config: Config,
    options: Options,
    mut stop: channel::Receiver<bool>,
) -> Result<(), RunError> {
    let client = connect(config).map_err(RunError::Connect)?;
    let (metrics, health) = (Metrics::default(), Health::new(STALLED_AFTER));
    let (questions, mut asked) = mpsc::channel::<Question>(64);
    let sources = Sources { health: health.clone(), metrics: metrics.clone(), questions };
    let serving = listen(&options, sources, stop.clone()).await?;
    let timeout = REQUEST_TIMEOUT.min(options.lead.duration - options.lead.renew_deadline);
    let server = Server::new(client.clone(), metrics.clone(), timeout);
    let lead = match options.world.mode {
        Mode::Observe => Lead::alone(0),
        Mode::Bind => Lead::open(),
    };
    let options = Arc::new(options);
    let permission = Permission::new(&options);
    let election = campaign(&server, &options, &lead, &permission, stop.clone());
    let rehearsals =
        tokio::spawn(rehearse::on_demand(client.clone(), metrics.clone(), permission, options.clone()));
    let term = Term {
        client: &client,
        server: &server,
        lead: &lead,
        metrics: &metrics,
        health: &health,
        options: &options,
    };
    while let Some(epoch) = next_lead(&lead, &mut stop, &health, &mut asked).await {
        (options.say)(format!("leading, epoch {epoch}"));
        term.serve(epoch, &mut asked, &mut stop).await;
        (options.say)("no longer leading".into());
    }
    rehearsals.abort();
    // The lease is given back before we are gone, so that the next leader need not wait for it to run out.
    for task in [election, serving].into_iter().flatten() {
        let _ = task.await;
    }
    Ok(())
}

async fn listen(
    options: &Options,
    sources: Sources,
    mut stop: channel::Receiver<bool>,
) -> Result<Option<JoinHandle<()>>, RunError> {
    let Some(address) = options.listen else { return Ok(None) };
    let cannot = |source| RunError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    (options.say)(format!("listening on {}", listener.local_addr().map_err(cannot)?));
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    let say = options.say.clone();
    Ok(Some(tokio::spawn(async move {
        if let Err(error) = serve(listener, sources, stopped).await {
            say(format!("no longer listening: {error}"));
        }
    })))
}

/// Whoever only observes needs no lead.
fn campaign(
    server: &Server,
    options: &Options,
    lead: &Lead,
    permission: &Permission,
    mut stop: channel::Receiver<bool>,
) -> Option<JoinHandle<()>> {
    if options.world.mode == Mode::Observe {
        return None;
    }
    let (settings, lead, permission) = (options.lead.clone(), lead.clone(), permission.clone());
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    let may_take = move |candidate: &lead::Candidate| permission.may_take(candidate);
    Some(tokio::spawn(lead::elect(server.clone(), settings, lead, may_take, stopped)))
}

/// The epoch in which we lead, once we do; nothing if we are to stop before.
async fn next_lead(
    lead: &Lead,
    stop: &mut channel::Receiver<bool>,
    health: &Health,
    asked: &mut mpsc::Receiver<Question>,
) -> Option<u64> {
    let mut standing = lead.standing();
    // Whoever stands by has nothing to list before its time comes.
    health.ready();
    loop {
        // Whoever could tell us to stop may be gone; then we do.
        if *stop.borrow() || stop.has_changed().is_err() {
            return None;
        }
        if let Standing::Leading { epoch } = *standing.borrow_and_update() {
            return Some(epoch);
        }
        let holder = match &*standing.borrow() {
            Standing::Following { holder: Some(holder) } => format!("standing by: {holder} leads"),
            _ => "standing by: nobody is known to lead".into(),
        };
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return None,
            _ = standing.changed() => {}
            Some(question) = asked.recv() => question.refuse(holder),
            () = tokio::time::sleep(Duration::from_secs(1)) => health.beat(),
        }
    }
}
