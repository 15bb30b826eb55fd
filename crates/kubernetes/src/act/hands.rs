//! What every deed is done with: requests in lanes, sent only while the lead is held, and sent again with patience.

use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::Settings;
use super::explain::Memory;
use super::later::Later;
use super::promise::Result as Became;
use super::tell::Series;
use crate::backoff::Backoff;
use crate::bucket::{Bucket, Limit};
use crate::lead::Lead;
use crate::metrics::{Metrics, OfResource};
use crate::request::{Answer, Call, Server};

pub(super) struct Hands {
    pub(super) server: Server,
    pub(super) lead: Lead,
    pub(super) settings: Settings,
    /// For what the cluster waits for.
    pub(super) urgent: Lane,
    /// For what people read.
    pub(super) quiet: Lane,
    pub(super) later: Later,
    pub(super) memory: Memory,
    pub(super) series: Mutex<Series>,
}

/// Why no more is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    LeadLost,
    Unreachable(String),
}

impl From<Stop> for Became {
    fn from(stop: Stop) -> Self {
        Self::GivenUp(match stop {
            Stop::LeadLost => "the lead is lost".into(),
            Stop::Unreachable(why) => why,
        })
    }
}

impl Hands {
    pub(super) fn new(server: Server, lead: Lead, settings: Settings) -> Self {
        Self {
            urgent: Lane::new(settings.in_flight, settings.limit),
            quiet: Lane::new(settings.quiet_in_flight, settings.quiet_limit),
            later: Later::default(),
            memory: Memory::default(),
            series: Mutex::default(),
            server,
            lead,
            settings,
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        self.server.metrics()
    }

    /// Sends a request when it is its turn. The lead is looked at last: only then is nothing left to wait for.
    pub(super) async fn once(&self, lane: &Lane, call: &Call) -> Result<Answer, Stop> {
        let _turn = lane.turn().await;
        match self.lead.is_held() {
            true => Ok(self.server.ask(call).await),
            false => Err(Stop::LeadLost),
        }
    }

    /// Sends a request until there is an answer that stands. Only for what may be done twice.
    pub(super) async fn settle(&self, lane: &Lane, call: &Call) -> Result<Answer, Stop> {
        let mut tries = self.tries(call.resource, &call.path);
        loop {
            match self.once(lane, call).await? {
                Answer::Busy { after } => tries.pause(after, "the API server is busy").await?,
                Answer::Lost(why) => tries.pause(None, &why).await?,
                stands => return Ok(stands),
            }
        }
    }

    /// Patience for one deed on one object.
    pub(super) fn tries(&self, resource: &'static str, object: impl Hash) -> Tries<'_> {
        let Settings { instance, first_delay, longest_delay, retries, .. } = &self.settings;
        let backoff = Backoff::new(*first_delay, *longest_delay, (instance, object));
        Tries { hands: self, resource, backoff, left: *retries }
    }
}

pub(super) struct Tries<'a> {
    hands: &'a Hands,
    resource: &'static str,
    backoff: Backoff,
    left: u32,
}

impl Tries<'_> {
    /// Waits before the next attempt; ends at once where the lead is lost meanwhile.
    pub(super) async fn pause(&mut self, after: Option<Duration>, why: &str) -> Result<(), Stop> {
        self.count(why)?;
        let delay = self.backoff.next().max(after.unwrap_or_default());
        tokio::select! {
            () = tokio::time::sleep(delay) => Ok(()),
            () = self.hands.lead.lost() => Err(Stop::LeadLost),
        }
    }

    /// An attempt that needs no waiting, but not for ever.
    pub(super) fn count(&mut self, why: &str) -> Result<(), Stop> {
        self.hands.metrics().retries.get_or_create(&OfResource { resource: self.resource }).inc();
        self.left = self.left.checked_sub(1).ok_or_else(|| Stop::Unreachable(why.to_owned()))?;
        Ok(())
    }
}

/// So many requests at once and so many a second, first come, first served.
pub(super) struct Lane {
    permits: Semaphore,
    bucket: Mutex<Bucket>,
}

impl Lane {
    fn new(in_flight: usize, limit: Limit) -> Self {
        Self { permits: Semaphore::new(in_flight), bucket: Mutex::new(Bucket::new(limit, Instant::now())) }
    }

    /// Ends when a request may be sent, which is over when what is returned is dropped.
    async fn turn(&self) -> SemaphorePermit<'_> {
        let delay = self.bucket.lock().expect("nobody panics while holding it").reserve(Instant::now());
        tokio::time::sleep(delay).await;
        self.permits.acquire().await.expect("a lane is never closed")
    }
}
