//! What can be counted while the world runs, in the names that dashboards rely on.

use std::sync::Arc;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

/// One word that tells apart what is counted under one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Ended {
    pub result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Request {
    pub verb: &'static str,
    pub resource: &'static str,
    /// The HTTP status, 0 where no answer came.
    pub code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfResource {
    pub resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    pub kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Waiting {
    pub reason: String,
}

/// Every metric; clones share their counts.
#[derive(Clone, Debug)]
pub struct Metrics {
    pub binds: Family<Ended, Counter>,
    pub bind_seconds: Histogram,
    pub gangs: Family<Ended, Counter>,
    pub evictions: Family<Ended, Counter>,
    pub requests: Family<Request, Counter>,
    pub retries: Family<OfResource, Counter>,
    pub watch_restarts: Family<OfKind, Counter>,
    pub watch_relists: Family<OfKind, Counter>,
    pub cycle_seconds: Histogram,
    pub pending_jobs: Family<Waiting, Gauge>,
    pub pending_gangs: Family<Waiting, Gauge>,
    pub stalled_jobs: Gauge,
    pub avoided_nodes: Gauge,
    pub intents_open: Gauge,
    pub oldest_intent_seconds: Gauge,
    pub alarms: Gauge,
    pub leader: Gauge,
    pub binding_enabled: Gauge,
    pub events_dropped: Counter,
    pub bad_objects: Family<OfKind, Counter>,
    registry: Arc<Registry>,
    described: Arc<[(String, &'static str)]>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut book = Book::default();
        let metrics = Self {
            binds: book.enter(
                "binds",
                "Pods bound, by what became of each: here, elsewhere, gone, refused, unknown",
            ),
            bind_seconds: book.times("bind_seconds", "From the order to bind a pod to its outcome"),
            gangs: book.enter(
                "gangs",
                "Gangs whose binds were ordered: bound whole, or abandoned in part or in full",
            ),
            evictions: book.enter("evictions", "Orders to evict: evicted, refused, partial, given_up"),
            requests: book.enter(
                "api_requests",
                "Requests to the API server by verb, resource and status; 0: no answer",
            ),
            retries: book.enter("api_retries", "Requests sent again after a transient failure"),
            watch_restarts: book.enter("watch_restarts", "Watches that broke and were taken up again"),
            watch_relists: book.enter("watch_relists", "Full lists of a kind, the first included"),
            cycle_seconds: book.times("cycle_seconds", "Time one decision took"),
            pending_jobs: book.enter("pending_jobs", "Jobs that wait, by reason"),
            pending_gangs: book.enter("pending_gangs", "Gangs that wait, by reason"),
            stalled_jobs: book
                .enter("stalled_jobs", "Jobs that run and seem to hang: nothing is heard of them"),
            avoided_nodes: book
                .enter("avoided_nodes", "Nodes that take nothing new because several jobs failed there"),
            intents_open: book
                .enter("intents_open", "Gangs whose intent is recorded and not yet carried out"),
            oldest_intent_seconds: book
                .enter("oldest_intent_seconds", "How long ago the oldest of these was recorded"),
            alarms: book.enter(
                "alarms",
                "Decisions thrown away because they broke a rule, and counts found astray, since this replica leads",
            ),
            leader: book.enter("leader", "1 where this replica leads"),
            binding_enabled: book.enter("binding_enabled", "0 where the policy has switched all binding off"),
            events_dropped: book.enter("events_dropped", "Events not written because there were too many"),
            bad_objects: book
                .enter("bad_objects", "Objects that came with values that make no sense, by kind"),
            registry: Arc::default(),
            described: Arc::default(),
        };
        Self { registry: Arc::new(book.registry), described: book.described.into(), ..metrics }
    }
}

impl Metrics {
    /// The state of all metrics as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        text::encode(&mut text, &self.registry).expect("a string takes whatever is written to it");
        text
    }

    /// Says how many jobs and gangs wait for each reason now; reasons not named have none.
    pub fn waiting<'a>(&self, reasons: impl Iterator<Item = (&'a str, usize, usize)>) {
        self.pending_jobs.clear();
        self.pending_gangs.clear();
        for (reason, jobs, gangs) in reasons {
            let waiting = Waiting { reason: reason.to_owned() };
            self.pending_jobs.get_or_create(&waiting).set(jobs.try_into().unwrap_or(i64::MAX));
            self.pending_gangs.get_or_create(&waiting).set(gangs.try_into().unwrap_or(i64::MAX));
        }
    }

    pub(crate) fn asked(&self, verb: &'static str, resource: &'static str, code: u16) {
        self.requests.get_or_create(&Request { verb, resource, code }).inc();
    }
}

/// Name and meaning of every metric, for the reference.
pub fn describe() -> Vec<(String, &'static str)> {
    Metrics::default().described.to_vec()
}

/// Registers metrics and remembers what was said about each.
struct Book {
    registry: Registry,
    described: Vec<(String, &'static str)>,
}

impl Default for Book {
    fn default() -> Self {
        Self { registry: Registry::with_prefix("metronome"), described: Vec::new() }
    }
}

impl Book {
    fn enter<M: Metric + Clone + Default>(&mut self, name: &str, help: &'static str) -> M {
        self.register(name, help, M::default())
    }

    /// From half a millisecond to half a minute.
    fn times(&mut self, name: &str, help: &'static str) -> Histogram {
        self.register(name, help, Histogram::new(exponential_buckets(0.0005, 2.0, 17)))
    }

    fn register<M: Metric + Clone>(&mut self, name: &str, help: &'static str, metric: M) -> M {
        self.registry.register(name, help, metric.clone());
        self.described.push((format!("metronome_{name}"), help));
        metric
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_that_is_written_is_described() {
        let metrics = Metrics::default();
        metrics.asked("create", "pods/binding", 201);
        let text = metrics.text();
        let written: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# HELP ")).collect();
        let described: Vec<_> = describe().iter().map(|(name, help)| format!("{name} {help}.")).collect();
        assert!(written.iter().all(|line| described.iter().any(|known| known == line)), "{written:?}");
        assert!(
            text.contains(
                r#"metronome_api_requests_total{verb="create",resource="pods/binding",code="201"} 1"#
            )
        );
    }

    #[test]
    fn reasons_nobody_waits_for_any_more_are_forgotten() {
        let metrics = Metrics::default();
        metrics.waiting([("quota", 2, 1)].into_iter());
        metrics.waiting([("capacity", 1, 1)].into_iter());
        assert!(!metrics.text().contains("quota"));
        assert!(metrics.text().contains(r#"metronome_pending_jobs{reason="capacity"} 1"#));
    }
}
