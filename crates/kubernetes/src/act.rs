//! Carries out deeds. It chooses nothing: where to bind and whom to evict is said in full; what remains is to do it
//! once, in spite of lost answers, and never after the lead is gone.
//!
//! Binds, evictions and deletions go first and in parallel. What is said to people (conditions, events) waits in a
//! lane of its own, with few requests at a time, and is dropped or merged rather than piled up.

mod annotate;
mod bind;
mod budget;
mod delete;
mod evict;
mod explain;
mod foretell;
mod hands;
mod intent;
mod later;
mod make;
mod promise;
mod resize;
mod seen;
mod status;
mod tell;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bucket::Limit;
use crate::deed::{Deed, Kind, Outcome};
use crate::lead::Lead;
use crate::request::Server;
use hands::Hands;
use promise::Promise;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Metronome's own, where intents are recorded.
    pub namespace: String,
    /// Who writes events, as people see it.
    pub instance: String,
    /// Requests under way at once to bind, evict and delete.
    pub in_flight: usize,
    pub limit: Limit,
    /// Requests under way at once to write conditions and events.
    pub quiet_in_flight: usize,
    pub quiet_limit: Limit,
    /// How often one request is sent again before it is given up.
    pub retries: u32,
    pub first_delay: Duration,
    pub longest_delay: Duration,
    /// How long what is under way may go on once no more is asked for.
    pub grace: Duration,
}

impl Settings {
    pub fn new(namespace: &str, instance: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            instance: instance.to_owned(),
            in_flight: 64,
            limit: Limit { per_second: 2_000.0, burst: 4_000 },
            quiet_in_flight: 8,
            quiet_limit: Limit { per_second: 500.0, burst: 1_000 },
            retries: 10,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(10),
            grace: Duration::from_secs(5),
        }
    }

    /// Deeds a second, at most, and a quarter as many words about them.
    #[must_use]
    pub fn per_second(mut self, deeds: f64) -> Self {
        self.limit.per_second = deeds;
        self.quiet_limit.per_second = deeds / 4.0;
        self
    }
}

/// Carries out deeds until there are no more to come. Every bind, eviction and deletion has its outcome sent exactly
/// once, even where the future is dropped. Deeds are taken as fast as they come; nothing here waits for `outcomes`.
pub async fn act(
    server: Server,
    lead: Lead,
    settings: Settings,
    mut deeds: mpsc::UnboundedReceiver<Deed>,
    outcomes: mpsc::UnboundedSender<Outcome>,
) {
    let hands = Arc::new(Hands::new(server, lead, settings));
    let _quiet = later::work_off(&hands);
    let mut under_way = JoinSet::new();
    while let Some(deed) = deeds.recv().await {
        begin(&hands, deed, &outcomes, &mut under_way);
        while under_way.try_join_next().is_some() {}
    }
    let finished = async { while under_way.join_next().await.is_some() {} };
    // What is not finished by then is dropped, and its promise kept by saying so: before this is over.
    let _ = tokio::time::timeout(hands.settings.grace, finished).await;
    under_way.shutdown().await;
}

fn begin(
    hands: &Arc<Hands>,
    deed: Deed,
    outcomes: &mpsc::UnboundedSender<Outcome>,
    under_way: &mut JoinSet<()>,
) {
    let hands = hands.clone();
    let promise = || Promise::new(deed.ticket, outcomes.clone());
    match deed.kind {
        Kind::Bind { members, intent } => {
            hands.later.leave_unsaid(&members);
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.bind(members, intent).await) });
        }
        Kind::Evict { victims, why, intent } => {
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.evict(victims, &why, intent).await) });
        }
        Kind::Delete { pods, why } => {
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.delete(&pods, &why).await) });
        }
        Kind::Resize { pod, to } => {
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.resize(&pod, &to).await) });
        }
        Kind::Forget { intent, generation } => {
            under_way.spawn(async move { hands.forget(&intent, generation).await });
        }
        Kind::Status { object, status } => {
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.write_status(&object, &status).await) });
        }
        Kind::Make(object) => {
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.make(&object).await) });
        }
        Kind::Remove { object } => {
            let promise = promise();
            under_way.spawn(async move { promise.keep(hands.remove(&object).await) });
        }
        Kind::Annotate { pod, key, value } => {
            under_way.spawn(async move { hands.annotate(&pod, key, value.as_deref()).await });
        }
        Kind::Foretell { pod, foretold } => {
            under_way.spawn(async move { hands.foretell(&pod, &foretold).await });
        }
        Kind::Explain { pod, verdict } => hands.later.explain(pod, verdict),
        Kind::Tell(telling) => hands.tell(telling),
    }
}
