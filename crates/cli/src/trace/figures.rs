//! Figures of a trace: how long iterations took, and what a job did when.

use std::fs;
use std::path::Path;

use metronome_agent::profile::{Sample, learn};
use metronome_core::model::units::Moment;

use super::document::{Counter, Iteration, Iterations, Job, Link, Part, Trace};

/// Nanoseconds from and to.
pub(super) type Span = (u64, u64);

/// A counter over time, to ask for the bytes of any span.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    at: &'a [u64],
    /// Bytes up to the end of each sample, from the first of the counter on.
    sums: Vec<u64>,
    first: usize,
}

impl<'a> Curve<'a> {
    pub(super) fn of(trace: &'a Trace, counter: &Counter) -> Self {
        let mut sum = 0;
        let add = |bytes: &u32| {
            sum += u64::from(*bytes);
            sum
        };
        Self { at: &trace.at_ns, sums: counter.sent.iter().map(add).collect(), first: counter.first_sample }
    }

    /// Bytes up to a moment. Within a sample, bytes are spread evenly.
    fn until(&self, at: u64) -> f64 {
        let next = self.at.partition_point(|end| *end <= at);
        let sum = |sample: usize| -> f64 {
            let known = sample.checked_sub(self.first).and_then(|index| self.sums.get(index));
            let end = if sample < self.first { 0 } else { self.sums.last().copied().unwrap_or(0) };
            known.copied().unwrap_or(end) as f64
        };
        let before = next.checked_sub(1).map_or(0.0, sum);
        let Some(end) = self.at.get(next) else { return before };
        let Some(begin) = next.checked_sub(1).map(|before| self.at[before]) else { return 0.0 };
        before + (sum(next) - before) * (at - begin) as f64 / (end - begin).max(1) as f64
    }

    pub(super) fn bytes(&self, (from, to): Span) -> f64 {
        (self.until(to) - self.until(from)).max(0.0)
    }

    /// Bits a second.
    pub(super) fn rate(&self, span: Span) -> f64 {
        self.bytes(span) * 8e9 / span.1.saturating_sub(span.0).max(1) as f64
    }

    /// From the first byte to the last.
    pub(super) fn active(&self) -> Option<Span> {
        let all = *self.sums.last().filter(|all| **all > 0)?;
        let end = |index: usize| self.at.get(self.first + index).copied();
        let first = self.sums.iter().position(|sum| *sum > 0)?;
        let last = self.sums.partition_point(|sum| *sum < all);
        Some((end(first.saturating_sub(1))?, end(last)?))
    }
}

/// Gaps between packets of one burst are shorter.
const BURST_GAP_NS: u64 = 8_000_000;

/// A job that sends at less than this part of its link sends acknowledgements and news, and no gradients.
const LEAST_PART: f64 = 0.02;

/// The link that carried most of a job, with the counter of the job's part there.
///
/// A member's counter on its host counts what reaches the queue of the link. Programs hand whole buffers to it, so that
/// counter says little of when bytes are on the wire; the counter of the job's leaves does.
pub(super) fn on_the_wire<'a>(trace: &'a Trace, job: &Job) -> Option<(&'a Link, &'a Counter)> {
    let is_of = |part: &&Part| part.job.as_ref() == Some(&job.name);
    let parts = trace.links.iter().filter_map(|link| Some((link, &link.parts.iter().find(is_of)?.bytes)));
    // Of links that carry the same, the first.
    parts.rev().max_by_key(|(_, counter)| counter.total())
}

/// When a job was sending: any of its members to its host, or its bytes over a link; with the gaps within a burst.
pub(super) fn sending(trace: &Trace, job: &Job) -> Vec<Span> {
    let rate = slowest_link(trace, job);
    let wire = on_the_wire(trace, job).map(|(_, counter)| counter);
    let mut spans: Vec<Span> = Vec::new();
    let mut begin = 0;
    for (sample, end) in trace.at_ns.iter().enumerate() {
        let sent = |counter: &Counter| {
            let index = sample.checked_sub(counter.first_sample);
            index.and_then(|index| counter.sent.get(index)).copied().unwrap_or(0)
        };
        let counters = job.members.iter().map(|member| &member.bytes).chain(wire);
        let most = counters.map(sent).max().unwrap_or(0);
        let could = rate / 8e9 * end.saturating_sub(begin) as f64;
        if f64::from(most) > LEAST_PART * could && most > 0 {
            match spans.last_mut() {
                Some((_, last)) if begin.saturating_sub(*last) <= BURST_GAP_NS => *last = *end,
                _ => spans.push((begin, *end)),
            }
        }
        begin = *end;
    }
    spans
}

/// The rate of the slowest link that a job crosses.
pub(super) fn slowest_link(trace: &Trace, job: &Job) -> f64 {
    let crossed = trace.links.iter().filter(|link| link.crossed_by.contains(&job.name));
    crossed.map(|link| link.rate_bps as f64).fold(f64::INFINITY, f64::min).min(1e12)
}

/// From its first burst to its last. The news by which members find each other are no burst.
pub(super) fn active(sending: &[Span]) -> Option<Span> {
    Some((sending.first()?.0, sending.last()?.1))
}

/// When at least one other job that shares a link with a job was active, while it was active itself.
pub(super) fn shared(trace: &Trace, index: usize) -> Vec<Span> {
    let job = &trace.jobs[index];
    let active = |job: &Job| active(&sending(trace, job));
    let Some(own) = active(job) else { return Vec::new() };
    let is_neighbour = |other: &Job| {
        let both = |name: &String| [&job.name, &other.name].contains(&name);
        other.name != job.name
            && trace.links.iter().any(|link| link.crossed_by.iter().filter(|name| both(name)).count() == 2)
    };
    let neighbours = trace.jobs.iter().filter(|other| is_neighbour(other));
    let overlap = neighbours.filter_map(active).map(|(from, to)| (from.max(own.0), to.min(own.1)));
    let mut spans: Vec<Span> = overlap.filter(|(from, to)| from < to).collect();
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// Iterations are counted by a profile that is at least so likely.
const LEAST_CONFIDENCE: f64 = 0.5;

/// More time tells nothing new of an iteration.
const MOST_LEARNED_NS: u64 = 20_000_000_000;

/// What a job sends in an iteration over the link that carries most of it, by the most likely of the profiles that this
/// trace shows: before its first directive, after it, and altogether.
pub(super) fn bytes_per_iteration(trace: &Trace, index: usize) -> Option<f64> {
    let job = &trace.jobs[index];
    let curve = Curve::of(trace, counted(trace, job)?);
    let (from, to) = curve.active()?;
    let change = job.first_directive_ns().unwrap_or(to).clamp(from, to);
    let spans = [(from, change), (change, to), (from, to)];
    let profiles = spans.into_iter().filter_map(|(from, to)| {
        let from = from.max(to.saturating_sub(MOST_LEARNED_NS));
        let samples = (from..to).step_by(5_000_000).map(|at| Sample { at, bytes: curve.until(at) as u64 });
        learn(&samples.collect::<Vec<_>>()).ok()
    });
    let best = profiles.max_by(|one, other| one.confidence.total_cmp(&other.confidence))?;
    (best.confidence >= LEAST_CONFIDENCE).then_some(best.bytes)
}

/// The counter that iterations are counted by.
fn counted<'a>(trace: &'a Trace, job: &'a Job) -> Option<&'a Counter> {
    let wire = on_the_wire(trace, job).map(|(_, counter)| counter).filter(|counter| counter.total() > 0);
    wire.or_else(|| job.leader().map(|leader| &leader.bytes))
}

/// Mean lengths of iterations before and after the first directive, while links were shared.
pub(super) fn iterations(trace: &Trace, index: usize) -> Iterations {
    let job = &trace.jobs[index];
    let change = job.first_directive_ns().unwrap_or(u64::MAX);
    let shared = shared(trace, index);
    let before: Vec<Span> = clip(&shared, (0, change));
    let after: Vec<Span> = clip(&shared, (change, u64::MAX));
    if !job.recorded.is_empty() {
        let mean = |spans: &[Span]| mean_recorded(&job.recorded, spans);
        let count = Some(job.recorded.len() as u64);
        return Iterations {
            before_ms: mean(&before),
            after_ms: mean(&after),
            count,
            source: Some("record"),
        };
    }
    let Some((volume, counter)) = job.bytes_per_iteration.zip(counted(trace, job)) else {
        return Iterations::default();
    };
    let curve = Curve::of(trace, counter);
    let mean = |spans: &[Span]| mean_by_bytes(&curve, volume, spans);
    let count = Some((counter.total() as f64 / volume).round() as u64);
    Iterations { before_ms: mean(&before), after_ms: mean(&after), count, source: Some("bytes") }
}

fn clip(spans: &[Span], (from, to): Span) -> Vec<Span> {
    let clipped = spans.iter().map(|span| (span.0.max(from), span.1.min(to)));
    clipped.filter(|(from, to)| from < to).collect()
}

/// Fewer iterations say nothing of a mean.
const LEAST_ITERATIONS: f64 = 3.0;

/// Every iteration sends the same bytes.
fn mean_by_bytes(curve: &Curve, volume: f64, spans: &[Span]) -> Option<f64> {
    let time: u64 = spans.iter().map(|(from, to)| to - from).sum();
    let count = spans.iter().map(|span| curve.bytes(*span)).sum::<f64>() / volume;
    (count >= LEAST_ITERATIONS).then(|| time as f64 / 1e6 / count)
}

/// From the beginning of an iteration to that of the next, where both are in one span.
fn mean_recorded(recorded: &[Iteration], spans: &[Span]) -> Option<f64> {
    let (mut time, mut count) = (0, 0.0);
    for (from, to) in spans {
        let within = |iteration: &&Iteration| (*from..*to).contains(&iteration.began_ns);
        let began: Vec<u64> = recorded.iter().filter(within).map(|iteration| iteration.began_ns).collect();
        if let [first, .., last] = began[..] {
            time += last.saturating_sub(first);
            count += (began.len() - 1) as f64;
        }
    }
    (count >= LEAST_ITERATIONS).then(|| time as f64 / 1e6 / count)
}

/// The table that a trainer writes. Lines of another form are left out.
pub(super) fn read_record(path: &Path, began: Moment) -> Vec<Iteration> {
    let table = fs::read_to_string(path).unwrap_or_default();
    let row = |line: &str| {
        let numbers: Vec<u64> = line.split(',').map_while(|column| column.parse().ok()).collect();
        let [_, at, held_ns, computed_ns, _, whole_ns] = numbers[..] else { return None };
        Some(Iteration { began_ns: Moment(at).since(began).0, held_ns, computed_ns, whole_ns })
    };
    table.lines().skip(1).filter_map(row).collect()
}
