//! One term as leader: rebuild, then turn whenever something comes in or is due.

use std::time::{Duration, SystemTime};

use kube::Client;
use tokio::sync::{mpsc, watch as channel};

use metronome_core::units::Instant;

use super::Options;
use crate::act::act;
use crate::deed::{Deed, Outcome};
use crate::lead::Lead;
use crate::metrics::Metrics;
use crate::request::Server;
use crate::serve::{Health, Question};
use crate::watch::{self, Change};
use crate::world::{Initial, World};

/// Changes taken in at once before the world turns.
const BATCH: usize = 4096;

pub(super) struct Term<'a> {
    pub(super) client: &'a Client,
    pub(super) server: &'a Server,
    pub(super) lead: &'a Lead,
    pub(super) metrics: &'a Metrics,
    pub(super) health: &'a Health,
    pub(super) options: &'a Options,
}

impl Term<'_> {
    /// Leads until the lead is lost or `stop` says so.
    pub(super) async fn serve(
        &self,
        epoch: u64,
        asked: &mut mpsc::Receiver<Question>,
        stop: &mut channel::Receiver<bool>,
    ) {
        let mut changes = observe(self.client.clone(), self.options.watch.clone(), self.metrics.clone());
        let initial = tokio::select! {
            initial = gather(&mut changes) => initial,
            () = self.over(stop) => return,
        };
        let settings = crate::world::Settings { epoch, ..self.options.world.clone() };
        let mut world = World::rebuild(settings, now(), initial);
        if let Some(journal) = &self.options.journal {
            world.keep_journal(journal());
        }
        self.health.ready();
        let (deeds, to_do) = mpsc::unbounded_channel::<Deed>();
        let (done, mut outcomes) = mpsc::unbounded_channel::<Outcome>();
        let acting =
            tokio::spawn(act(self.server.clone(), self.lead.clone(), self.options.act.clone(), to_do, done));
        self.turn_until_over(&mut world, &mut changes, &mut outcomes, asked, stop, &deeds).await;
        drop(deeds);
        // What is under way ends by itself or is given up; whoever leads next finds it recorded.
        let _ = acting.await;
    }

    async fn turn_until_over(
        &self,
        world: &mut World,
        changes: &mut mpsc::Receiver<Change>,
        outcomes: &mut mpsc::UnboundedReceiver<Outcome>,
        asked: &mut mpsc::Receiver<Question>,
        stop: &mut channel::Receiver<bool>,
        deeds: &mpsc::UnboundedSender<Deed>,
    ) {
        let (mut batch, mut heard) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
        loop {
            self.turn(world, deeds);
            let wake = tokio::time::sleep(until(world.next_wake()));
            tokio::select! {
                biased;
                () = self.over(stop) => return,
                _ = outcomes.recv_many(&mut heard, BATCH) => {}
                _ = changes.recv_many(&mut batch, BATCH) => {}
                Some(question) = asked.recv() => question.answer_from(world),
                () = wake => {}
            }
            let now = now();
            heard.drain(..).for_each(|outcome| world.heard(now, outcome));
            batch.drain(..).for_each(|change| world.apply(now, change));
        }
    }

    fn turn(&self, world: &mut World, deeds: &mpsc::UnboundedSender<Deed>) {
        let began = std::time::Instant::now();
        for deed in world.turn(now()) {
            // Nobody receives only when the term is over.
            let _ = deeds.send(deed);
        }
        self.metrics.cycle_seconds.observe(began.elapsed().as_secs_f64());
        self.health.beat();
        world.measure(self.metrics);
    }

    async fn over(&self, stop: &mut channel::Receiver<bool>) {
        tokio::select! {
            () = self.lead.lost() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}

/// Everything the API server says, from the first list on.
pub(super) fn observe(client: Client, settings: watch::Settings, metrics: Metrics) -> mpsc::Receiver<Change> {
    let (out, changes) = mpsc::channel(BATCH);
    tokio::spawn(watch::watch(client, settings, metrics, out));
    changes
}

/// The first full list of every kind, with what has changed since then folded in by whoever reads on.
pub(super) async fn gather(changes: &mut mpsc::Receiver<Change>) -> Initial {
    let mut initial = Initial::default();
    while let Some(change) = changes.recv().await {
        if matches!(change, Change::Synced) {
            break;
        }
        initial.lists.push(change);
    }
    initial
}

/// The engine counts from the epoch, so that a restart changes nobody's age.
pub(super) fn now() -> Instant {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Instant(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn until(at: Instant) -> Duration {
    Duration::from_nanos(at.since(now()).0)
}
