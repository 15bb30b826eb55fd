//! A new version does not take the lead unasked if its first plan would disturb running jobs: it decides once without
//! acting, says what it would do, and waits for a word.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use tokio::sync::Notify;

use super::Options;
use super::term::{gather, now, observe};
use crate::lead::Candidate;
use crate::metrics::Metrics;
use crate::watch::Change;
use crate::world::World;

/// How long a version that may not lead waits before it looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Whether this version may take the lead from another.
#[derive(Clone, Debug)]
pub(super) struct Permission {
    version: Arc<str>,
    granted: Arc<AtomicBool>,
    wanted: Arc<Notify>,
}

impl Permission {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            version: Arc::from(options.lead.version.as_str()),
            granted: Arc::new(AtomicBool::new(options.accepts_first_plan)),
            wanted: Arc::default(),
        }
    }

    /// The same version goes on as the last leader would have; another asks for a rehearsal first.
    pub(super) fn may_take(&self, candidate: &Candidate) -> bool {
        let same = candidate.previous_version.as_deref().is_none_or(|version| *version == *self.version);
        let may = same || self.granted.load(Ordering::Acquire);
        if !may {
            self.wanted.notify_one();
        }
        may
    }
}

/// Rehearses whenever the lead could be taken from another version, until the permission is given.
pub(super) async fn on_demand(
    client: Client,
    metrics: Metrics,
    permission: Permission,
    options: Arc<Options>,
) {
    loop {
        permission.wanted.notified().await;
        let mut changes = observe(client.clone(), options.watch.clone(), metrics.clone());
        let initial = gather(&mut changes).await;
        drop(changes);
        let accepted = initial.lists.iter().any(|change| accepts(change, &permission.version));
        let disturbed = World::rebuild(options.world.clone(), now(), initial).would_disturb(now());
        if accepted || disturbed.is_empty() {
            permission.granted.store(true, Ordering::Release);
            return;
        }
        (options.say)(format!(
            "not taking the lead: the first plan of version {} would disturb {}; \
             annotate the policy with metronome.dev/accept-first-plan={} to let it",
            permission.version,
            disturbed.join(", "),
            permission.version,
        ));
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn accepts(change: &Change, version: &str) -> bool {
    matches!(change, Change::Policy(Some(policy)) if policy.accepts.as_deref() == Some(version))
}
