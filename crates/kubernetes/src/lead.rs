//! Who leads: one replica at a time, by a Lease that it renews. Whoever fails to renew in time stops by itself,
//! before anybody else may begin.
//!
//! Safety rests on two spans measured on each replica's own clock. The holder counts from the *start* of its last
//! successful request and stops after `renew_deadline`; another counts from when it *saw* the lease change and takes
//! over after `duration`, which is longer. No replica ever compares its time with a time that another wrote.

mod elect;
mod lease;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub use elect::{Candidate, elect};

#[derive(Clone, Debug)]
pub struct Settings {
    pub namespace: String,
    /// The name of the Lease.
    pub lease: String,
    /// Who we are; no two processes may say the same.
    pub identity: String,
    /// Our version, left on the lease for whoever comes next.
    pub version: String,
    /// How long others wait after the last renewal they saw.
    pub duration: Duration,
    /// How long we act after our last renewal.
    pub renew_deadline: Duration,
    /// How often we renew, or look whether we could take over.
    pub retry: Duration,
}

impl Settings {
    pub fn new(namespace: &str, identity: &str, version: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            lease: "metronome".to_owned(),
            identity: identity.to_owned(),
            version: version.to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Where this replica stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Leading {
        epoch: u64,
    },
    /// Somebody else leads, or nobody: then we may not, or have not yet seen the lease run out.
    Following {
        holder: Option<String>,
    },
    /// We led, and could not renew in time or were overtaken. What follows is `Following`, or `Leading` in a new epoch.
    Lost,
}

/// The lead, as those ask for it who are about to write.
#[derive(Clone, Debug)]
pub struct Lead(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The instant that `valid_until` counts from.
    origin: Instant,
    /// Nanoseconds since `origin` until which the lead is ours; 0 where it is not.
    valid_until: AtomicU64,
    epoch: AtomicU64,
    /// The latest epoch that anybody is known to have led in.
    latest: AtomicU64,
    standing: watch::Sender<Standing>,
}

impl Lead {
    /// Not held until the election says so.
    pub fn open() -> Self {
        Self::starting(Standing::Following { holder: None }, 0, 0)
    }

    /// Held for ever: for those who run one replica and no election.
    pub fn alone() -> Self {
        Self::starting(Standing::Leading { epoch: 0 }, u64::MAX, 0)
    }

    fn starting(standing: Standing, valid_until: u64, epoch: u64) -> Self {
        Self(Arc::new(Shared {
            origin: Instant::now(),
            valid_until: AtomicU64::new(valid_until),
            epoch: AtomicU64::new(epoch),
            latest: AtomicU64::new(epoch),
            standing: watch::Sender::new(standing),
        }))
    }

    /// Whether a write may be made now. It is for the clock to say, not for a task that may be starved or frozen.
    pub fn is_held(&self) -> bool {
        self.since_origin(Instant::now()) < self.0.valid_until.load(Ordering::Acquire)
    }

    /// The number of times the lead had changed hands when we took it.
    pub fn epoch(&self) -> u64 {
        self.0.epoch.load(Ordering::Acquire)
    }

    /// Something was recorded in that epoch: whatever we take from now on is later, even if the lease was deleted
    /// and its count with it.
    pub fn heard_of(&self, epoch: u64) {
        self.0.latest.fetch_max(epoch, Ordering::AcqRel);
    }

    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.0.standing.subscribe()
    }

    /// Returns once the lead is not held.
    pub async fn lost(&self) {
        let mut standing = self.standing();
        // The sender lives in `self`, so that waiting cannot fail.
        let _ = standing.wait_for(|now| !matches!(now, Standing::Leading { .. })).await;
    }

    /// One later than all that is known.
    fn next_epoch(&self, transitions: u64) -> u64 {
        self.0.latest.load(Ordering::Acquire).max(transitions).saturating_add(1)
    }

    /// While we lead: until when, if nothing is renewed.
    fn held_until(&self) -> Option<Instant> {
        let leads = matches!(*self.0.standing.borrow(), Standing::Leading { .. });
        let valid = Duration::from_nanos(self.0.valid_until.load(Ordering::Acquire));
        leads.then(|| self.0.origin + valid)
    }

    fn hold(&self, until: Instant, epoch: u64) {
        self.0.epoch.store(epoch, Ordering::Release);
        self.heard_of(epoch);
        self.0.valid_until.store(self.since_origin(until), Ordering::Release);
        self.say(Standing::Leading { epoch });
    }

    fn let_go(&self, standing: Standing) {
        self.0.valid_until.store(0, Ordering::Release);
        self.say(standing);
    }

    fn say(&self, standing: Standing) {
        self.0.standing.send_if_modified(|now| {
            let changed = *now != standing;
            *now = standing;
            changed
        });
    }

    fn since_origin(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.0.origin).as_nanos().try_into().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_lead_ends_by_the_clock_alone() {
        let lead = Lead::open();
        assert!(!lead.is_held());
        lead.hold(Instant::now() + Duration::from_secs(10), 3);
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(lead.is_held());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!lead.is_held(), "nobody had to run for this");
        assert_eq!(lead.epoch(), 3);
    }

    #[tokio::test]
    async fn letting_go_wakes_those_who_wait() {
        let lead = Lead::alone();
        let waiting = tokio::spawn({
            let lead = lead.clone();
            async move { lead.lost().await }
        });
        lead.let_go(Standing::Lost);
        waiting.await.expect("it ends");
        assert!(!lead.is_held());
    }
}
