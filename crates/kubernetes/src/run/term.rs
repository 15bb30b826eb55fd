//! One term as leader: rebuild, then turn whenever something comes in or is due.

use std::time::{Duration, SystemTime};

use futures::FutureExt;
use kube::Client;
use tokio::sync::{mpsc, watch as channel};
use tokio::task::JoinHandle;

use metronome_core::model::units::Instant;

use super::Options;
use super::outlook::Lookout;
use crate::act::act;
use crate::controller::Controller;
use crate::deed::{Deed, Outcome};
use crate::lead::Lead;
use crate::metrics::Metrics;
use crate::request::Server;
use crate::serve::{Health, Question};
use crate::watch::{self, Change};
use crate::world::{Initial, Mode, World};

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

/// Both who decide, what comes in for them, and the hands that each of them has.
struct Desk {
    world: World,
    /// Nobody's jobs are seen to by who only observes.
    controller: Option<Controller>,
    changes: mpsc::Receiver<Change>,
    lookout: Lookout,
    scheduling: Hired,
    /// Apart from the others, so that a thousand jobs that cannot be made slow no bind.
    making: Hired,
}

/// Why a world came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The lead is lost, or somebody said to stop.
    Over,
    /// Nodes lie elsewhere than it was built for.
    Outdated,
}

/// Somebody who carries out deeds.
struct Hired {
    deeds: mpsc::UnboundedSender<Deed>,
    outcomes: mpsc::UnboundedReceiver<Outcome>,
    acting: JoinHandle<()>,
}

impl Term<'_> {
    /// Leads until the lead is lost or `stop` says so. Where the levels of the topology change meanwhile, everything begins
    /// anew.
    pub(super) async fn serve(
        &self,
        epoch: u64,
        asked: &mut mpsc::Receiver<Question>,
        stop: &mut channel::Receiver<bool>,
    ) {
        while self.lead_in_one_world(epoch, asked, stop).await == Ended::Outdated {
            (self.options.say)("the fabric has changed: beginning anew".into());
        }
    }

    async fn lead_in_one_world(
        &self,
        epoch: u64,
        asked: &mut mpsc::Receiver<Question>,
        stop: &mut channel::Receiver<bool>,
    ) -> Ended {
        let mut changes = observe(self.client.clone(), self.options.watch.clone(), self.metrics.clone());
        let initial = tokio::select! {
            initial = gather(&mut changes) => initial,
            () = self.over(stop) => return Ended::Over,
        };
        let mut controller = self.controller();
        let (for_the_controller, lists) = initial.lists.into_iter().partition(Controller::heeds);
        take_in(controller.as_mut(), for_the_controller);
        let settings = crate::world::Settings { epoch, ..self.options.world.clone() };
        let mut world = World::rebuild(settings, now(), Initial { lists });
        if let Some(journal) = &self.options.journal {
            world.keep_journal(journal());
        }
        self.health.ready();
        let mut desk = Desk {
            world,
            controller,
            changes,
            lookout: Lookout::new(),
            scheduling: self.hire(),
            making: self.hire(),
        };
        let ended = self.turn_until_over(&mut desk, asked, stop).await;
        // What is under way ends by itself or is given up; whoever leads next finds it recorded.
        for Hired { deeds, acting, .. } in [desk.scheduling, desk.making] {
            drop(deeds);
            let _ = acting.await;
        }
        ended
    }

    fn controller(&self) -> Option<Controller> {
        let world = &self.options.world;
        (world.mode == Mode::Bind).then(|| Controller::new(&world.scheduler))
    }

    fn hire(&self) -> Hired {
        let (deeds, to_do) = mpsc::unbounded_channel();
        let (done, outcomes) = mpsc::unbounded_channel();
        let acting =
            tokio::spawn(act(self.server.clone(), self.lead.clone(), self.options.act.clone(), to_do, done));
        Hired { deeds, outcomes, acting }
    }

    async fn turn_until_over(
        &self,
        desk: &mut Desk,
        asked: &mut mpsc::Receiver<Question>,
        stop: &mut channel::Receiver<bool>,
    ) -> Ended {
        let mut batch = Vec::with_capacity(BATCH);
        let (mut heard, mut heard_of_jobs) = (Vec::with_capacity(BATCH), Vec::new());
        while !desk.world.is_outdated() {
            self.turn(desk);
            desk.lookout.look(&desk.world);
            let mut seen = None;
            let wake = tokio::time::sleep(until(desk.next_wake()));
            tokio::select! {
                biased;
                () = self.over(stop) => return Ended::Over,
                _ = desk.scheduling.outcomes.recv_many(&mut heard, BATCH) => {}
                _ = desk.making.outcomes.recv_many(&mut heard_of_jobs, BATCH) => {}
                _ = desk.changes.recv_many(&mut batch, BATCH) => {}
                Some(question) = asked.recv() => question.answer_from(&desk.world),
                outlook = desk.lookout.due() => seen = outlook,
                () = wake => {}
            }
            // In a rush one of them always has something to say: whoever woke us, the others are heard as well.
            let _ = desk.scheduling.outcomes.recv_many(&mut heard, BATCH).now_or_never();
            let _ = desk.making.outcomes.recv_many(&mut heard_of_jobs, BATCH).now_or_never();
            let _ = desk.changes.recv_many(&mut batch, BATCH).now_or_never();
            let now = now();
            heard.drain(..).for_each(|outcome| desk.world.heard(now, outcome));
            let (for_the_controller, rest) = batch.drain(..).partition::<Vec<_>, _>(Controller::heeds);
            rest.into_iter().for_each(|change| desk.world.apply(now, change));
            take_in(desk.controller.as_mut(), for_the_controller);
            if let Some((outlook, controller)) = seen.zip(desk.controller.as_mut()) {
                controller.foresee(desk.world.foreseen(&outlook));
            }
            for outcome in heard_of_jobs.drain(..) {
                if let Some(controller) = &mut desk.controller {
                    controller.heard(now, &outcome);
                }
            }
        }
        Ended::Outdated
    }

    fn turn(&self, desk: &mut Desk) {
        let began = std::time::Instant::now();
        for deed in desk.world.turn(now()) {
            // Nobody receives only when the term is over.
            let _ = desk.scheduling.deeds.send(deed);
        }
        self.metrics.cycle_seconds.observe(began.elapsed().as_secs_f64());
        if let Some((stand, controller)) = desk.world.interleaved().zip(desk.controller.as_mut()) {
            controller.interleave(stand);
        }
        if let Some(controller) = desk.controller.as_mut().filter(|_| desk.world.binds()) {
            controller.resize(desk.world.sizes());
            for deed in controller.turn(now()) {
                let _ = desk.making.deeds.send(deed);
            }
        }
        self.health.beat();
        desk.world.measure(self.metrics);
    }

    async fn over(&self, stop: &mut channel::Receiver<bool>) {
        tokio::select! {
            () = self.lead.lost() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}

impl Desk {
    fn next_wake(&self) -> Instant {
        let jobs = self.controller.as_ref().filter(|_| self.world.binds()).and_then(Controller::next_wake);
        jobs.map_or(self.world.next_wake(), |at| at.min(self.world.next_wake()))
    }
}

fn take_in(controller: Option<&mut Controller>, changes: Vec<Change>) {
    if let Some(controller) = controller {
        changes.into_iter().for_each(|change| controller.apply(change));
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
