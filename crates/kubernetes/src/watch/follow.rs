//! One kind, listed and watched for ever.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::{Change, Delta};
use crate::backoff::Backoff;
use crate::metrics::{Metrics, OfKind};

/// Where the changes of one kind go.
#[derive(Clone)]
pub(super) struct Outlet {
    out: mpsc::Sender<Change>,
    /// Held until the kind's first reset has been sent: whoever waits hears when the last has let go.
    first_reset: Option<mpsc::Sender<()>>,
    metrics: Metrics,
    kind: &'static str,
}

/// Nobody listens any more.
pub(super) struct Closed;

impl Outlet {
    /// The receiver ends once every outlet made of this one, and itself, has had its first reset or was dropped.
    pub(super) fn new(out: mpsc::Sender<Change>, metrics: Metrics) -> (Self, mpsc::Receiver<()>) {
        let (first_reset, first_resets) = mpsc::channel(1);
        (Self { out, first_reset: Some(first_reset), metrics, kind: "" }, first_resets)
    }

    pub(super) fn of(&self, kind: &'static str) -> Self {
        Self { kind, ..self.clone() }
    }

    /// Whatever is followed from now on is not waited for.
    pub(super) fn stop_waiting(&mut self) {
        self.first_reset = None;
    }

    pub(super) async fn send(&self, change: Change) -> Result<(), Closed> {
        self.out.send(change).await.map_err(|_| Closed)
    }

    fn was_reset(&mut self) {
        self.metrics.watch_relists.get_or_create(&OfKind { kind: self.kind }).inc();
        self.stop_waiting();
    }

    fn broke(&self, error: &watcher::Error) {
        tracing::warn!(kind = self.kind, %error, "watch broke");
        self.metrics.watch_restarts.get_or_create(&OfKind { kind: self.kind }).inc();
    }
}

/// Sends on what happens to the objects of one kind, until nobody listens.
pub(super) async fn follow<K, C>(
    api: Api<K>,
    config: watcher::Config,
    outlet: Outlet,
    changes: impl Fn(Delta<K>) -> C,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    C: IntoIterator<Item = Change>,
{
    let mut follower = Follower::new(outlet, changes);
    loop {
        let mut events = pin!(watcher(api.clone(), config.clone()));
        while let Some(event) = events.next().await {
            match follower.take(event).await {
                Ok(Next::Event) => {}
                Ok(Next::StartOver) => break,
                Err(Closed) => return,
            }
        }
    }
}

/// How to go on after an event.
enum Next {
    Event,
    /// The watcher would resume from a version that the API server no longer knows.
    StartOver,
}

struct Follower<K, F> {
    outlet: Outlet,
    changes: F,
    listing: Vec<K>,
    backoff: Backoff,
}

impl<K, C: IntoIterator<Item = Change>, F: Fn(Delta<K>) -> C> Follower<K, F> {
    fn new(outlet: Outlet, changes: F) -> Self {
        let backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30), outlet.kind);
        Self { outlet, changes, listing: Vec::new(), backoff }
    }

    async fn take(&mut self, event: watcher::Result<Event<K>>) -> Result<Next, Closed> {
        match event {
            Ok(Event::Init) => self.listing.clear(),
            Ok(Event::InitApply(object)) => self.listing.push(object),
            Ok(Event::InitDone) => self.reset().await?,
            Ok(Event::Apply(object)) => self.pass_on(Delta::Applied(object)).await?,
            Ok(Event::Delete(object)) => self.pass_on(Delta::Deleted(object)).await?,
            Err(error) => return Ok(self.recover(&error).await),
        }
        Ok(Next::Event)
    }

    async fn reset(&mut self) -> Result<(), Closed> {
        let all = std::mem::take(&mut self.listing);
        self.pass_on(Delta::Reset(all)).await?;
        self.outlet.was_reset();
        Ok(())
    }

    async fn pass_on(&mut self, delta: Delta<K>) -> Result<(), Closed> {
        self.backoff.reset();
        for change in (self.changes)(delta) {
            self.outlet.send(change).await?;
        }
        Ok(())
    }

    async fn recover(&mut self, error: &watcher::Error) -> Next {
        self.outlet.broke(error);
        tokio::time::sleep(self.backoff.next()).await;
        match error {
            watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
                Next::StartOver
            }
            _ => Next::Event,
        }
    }
}
