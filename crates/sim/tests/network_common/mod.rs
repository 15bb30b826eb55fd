//! Networks and loops with round numbers: a link of 8 Gbps carries a byte a nanosecond, a megabyte a millisecond.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::profile::{Bucket, Iteration};
use metronome_core::model::units::{Bandwidth, Bytes, Duration, Instant, Share};
use metronome_core::network::{Completion, Network, Pattern, Route, Sharing, Training};
use metronome_core::traffic::TrafficPolicy;

pub(crate) const LINK: LinkId = LinkId(0);
pub(crate) const RATE: Bandwidth = Bandwidth(8_000_000_000);
pub(crate) const END: Instant = Instant(u64::MAX);

pub(crate) fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub(crate) fn at_ms(count: u64) -> Instant {
    Instant::START + ms(count)
}

pub(crate) fn rates(links: usize) -> IdVec<LinkId, Bandwidth> {
    IdVec::filled(RATE, links)
}

pub(crate) fn sharing(floor: Share) -> Sharing {
    Sharing { floor, ..Sharing::default() }
}

/// So many links of a megabyte a millisecond, shared.
pub(crate) fn network(links: usize) -> Network {
    Network::new(&rates(links), Sharing::default())
}

/// Computes, then sends for as long as a link takes alone.
pub(crate) fn burst(compute: Duration, sends: Duration) -> Arc<Pattern> {
    let buckets = vec![Bucket { ready: compute, bytes: Bytes(sends.0) }];
    Arc::new(Pattern::buckets(&Iteration { compute, buckets, finish: Duration::ZERO }).unwrap())
}

/// Without noise, over one link, in class 0 and of weight 1.
pub(crate) fn training(pattern: &Arc<Pattern>, iterations: u64) -> Training {
    Training {
        pattern: pattern.clone(),
        route: Route::over(&[(LINK, 1.0)]),
        iterations,
        jitter: None,
        traffic: TrafficPolicy::default(),
    }
}

/// In another class.
pub(crate) fn in_class(class: u8) -> TrafficPolicy {
    TrafficPolicy { class, ..TrafficPolicy::default() }
}

pub(crate) fn run(network: &mut Network) -> Vec<Completion> {
    std::iter::from_fn(|| network.run_until(END)).collect()
}

/// Key and time of every completion, in microseconds.
pub(crate) fn ends(network: &mut Network) -> Vec<(usize, f64)> {
    run(network).into_iter().map(|completion| (completion.key, completion.at.0 as f64 / 1e3)).collect()
}
