//! Compute and communication of one iteration, in the form that the network runs.

use crate::model::profile::{Exchange, Iteration, Traffic};
use crate::model::units::{Bytes, Duration};

/// One iteration of a training loop: compute, during which bytes become ready and leave in order, then the
/// optimiser's step when compute is over and all bytes are sent.
///
/// A traffic profile of phases on a period has the same form: the period is the compute time, and the bytes of a
/// phase become ready at its offset.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// Nanoseconds.
    pub(super) compute: u64,
    pub(super) finish: u64,
    pub(super) bursts: Vec<Burst>,
}

/// Bytes that become ready at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Burst {
    /// Nanoseconds since the beginning of the iteration; never before an earlier burst, because bursts leave in
    /// order.
    pub(super) ready: u64,
    pub(super) bytes: f64,
}

/// Why an iteration or traffic profile is not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the iteration must be longer than zero")]
    NoTime,
    #[error("there are no gradient buckets")]
    NoBuckets,
    #[error("bucket {0} is empty")]
    EmptyBucket(usize),
    #[error("phase {0} sends nothing")]
    EmptyPhase(usize),
    #[error("phase {0} begins after the period has ended")]
    PhaseOffset(usize),
    #[error("a pattern has at most {} phases", Traffic::MOST_PHASES)]
    TooManyPhases,
}

impl Pattern {
    /// Pattern of a job's exchange: of its gradient buckets or of its traffic phases.
    pub fn of(exchange: Exchange<'_>) -> Result<Self, PatternError> {
        match exchange {
            Exchange::Gradients(iteration) => Self::buckets(iteration),
            Exchange::Phases(traffic) => Self::traffic(traffic),
        }
    }

    /// Pattern of a data-parallel iteration whose gradients are reduced bucket by bucket.
    pub fn buckets(iteration: &Iteration) -> Result<Self, PatternError> {
        if iteration.buckets.is_empty() {
            return Err(PatternError::NoBuckets);
        }
        if let Some(empty) = iteration.buckets.iter().position(|bucket| bucket.bytes.is_zero()) {
            return Err(PatternError::EmptyBucket(empty));
        }
        let bursts = iteration.buckets.iter().map(|bucket| (bucket.ready, bucket.bytes));
        Self::new(iteration.compute, iteration.finish, bursts)
    }

    /// Pattern of a period with up to [`Traffic::MOST_PHASES`] phases, each with its offset and its bytes.
    pub fn phases(period: Duration, phases: &[(Duration, Bytes)]) -> Result<Self, PatternError> {
        if phases.len() > Traffic::MOST_PHASES {
            return Err(PatternError::TooManyPhases);
        }
        for (index, (offset, bytes)) in phases.iter().enumerate() {
            if *offset >= period && !period.is_zero() {
                return Err(PatternError::PhaseOffset(index));
            }
            if bytes.is_zero() {
                return Err(PatternError::EmptyPhase(index));
            }
        }
        let mut in_time: Vec<(Duration, Bytes)> = phases.to_vec();
        in_time.sort_by_key(|(offset, _)| *offset);
        Self::new(period, Duration::ZERO, in_time)
    }

    /// Pattern of a measured or declared traffic profile: each phase sends its rate times its length.
    pub fn traffic(traffic: &Traffic) -> Result<Self, PatternError> {
        let bytes = |bits: u128| Bytes(u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX));
        let phases: Vec<(Duration, Bytes)> = traffic
            .phases()
            .iter()
            .map(|phase| (phase.offset, bytes(u128::from(phase.rate.0) * u128::from(phase.length.0))))
            .collect();
        Self::phases(traffic.period(), &phases)
    }

    /// Pattern of an iteration that sends nothing.
    pub fn compute(time: Duration) -> Result<Self, PatternError> {
        Self::new(time, Duration::ZERO, [])
    }

    fn new(
        compute: Duration,
        finish: Duration,
        bursts: impl IntoIterator<Item = (Duration, Bytes)>,
    ) -> Result<Self, PatternError> {
        if (compute + finish).is_zero() {
            return Err(PatternError::NoTime);
        }
        let mut latest = 0;
        let in_order = |(ready, bytes): (Duration, Bytes)| {
            latest = ready.0.max(latest);
            Burst { ready: latest, bytes: bytes.0 as f64 }
        };
        Ok(Self { compute: compute.0, finish: finish.0, bursts: bursts.into_iter().map(in_order).collect() })
    }

    /// Returns the pattern with all compute times multiplied by `times`.
    #[must_use]
    pub fn slowed(&self, times: f64) -> Self {
        let longer = |nanos: u64| (nanos as f64 * times) as u64;
        let bursts = self.bursts.iter().map(|burst| Burst { ready: longer(burst.ready), ..*burst });
        Self { compute: longer(self.compute), finish: longer(self.finish), bursts: bursts.collect() }
    }

    /// Hash for caches: equal patterns have equal hashes; different patterns almost never do.
    pub fn fingerprint(&self) -> u64 {
        let bursts = self.bursts.iter().flat_map(|burst| [burst.ready, burst.bytes.to_bits()]);
        let all = [self.compute, self.finish].into_iter().chain(bursts);
        all.fold(0xcbf2_9ce4_8422_2325, |mixed, word| {
            (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        })
    }

    /// Bytes of gradient that one iteration sends.
    pub fn bytes(&self) -> f64 {
        self.bursts.iter().map(|burst| burst.bytes).sum()
    }

    /// Duration of an iteration in nanoseconds whose flow sends at `rate` bytes per nanosecond, with compute times
    /// multiplied by `factor`. Without a rate the iteration sends nothing.
    pub(super) fn time(&self, rate: Option<f64>, factor: f64) -> u64 {
        let sent = rate.map_or(0, |rate| self.last_byte_at(rate, factor));
        let computed = scaled(self.compute, factor).max(sent);
        computed.saturating_add(scaled(self.finish, factor)).max(1)
    }

    /// Intervals in which a flow sends that has `rate` bytes per nanosecond without contention, in order of time.
    pub fn sends(&self, rate: f64) -> Vec<(Duration, Duration)> {
        let mut spans: Vec<(Duration, Duration)> = Vec::new();
        for burst in &self.bursts {
            let ended = spans.last().map_or(0, |(_, to)| to.0);
            let from = Duration(burst.ready.max(ended));
            let to = Duration(after(from.0, burst.bytes, rate));
            match spans.last_mut() {
                Some(last) if last.1 == from => last.1 = to,
                _ => spans.push((from, to)),
            }
        }
        spans
    }

    /// Time in the iteration at which the last byte is sent.
    fn last_byte_at(&self, rate: f64, factor: f64) -> u64 {
        let (mut end, mut base, mut bytes) = (0, 0, 0.0);
        for burst in &self.bursts {
            let ready = scaled(burst.ready, factor);
            if ready > end || bytes == 0.0 {
                (base, bytes) = (ready, 0.0);
            }
            bytes += burst.bytes;
            end = after(base, bytes, rate);
        }
        end
    }
}

/// The time of an event that never occurs.
pub(super) const NEVER: u64 = u64::MAX;

/// Rounds to the nearest nanosecond. The argument is never negative, and `f64::round` is a function call where this
/// is two instructions.
fn nearest(nanos: f64) -> u64 {
    (nanos + 0.5) as u64
}

/// Multiplies a span by the jitter factor of its iteration.
pub(super) fn scaled(nanos: u64, factor: f64) -> u64 {
    if factor == 1.0 { nanos } else { nearest(nanos as f64 * factor) }
}

/// Time at which `bytes` bytes are sent that start at `base`.
pub(super) fn after(base: u64, bytes: f64, rate: f64) -> u64 {
    if rate > 0.0 { base.saturating_add(nearest(bytes / rate)) } else { NEVER }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::profile::Bucket;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn iteration(buckets: Vec<Bucket>) -> Iteration {
        Iteration { compute: ms(100), buckets, finish: ms(5) }
    }

    #[test]
    fn an_invalid_pattern_is_refused() {
        let empty = Bucket { ready: ms(1), bytes: Bytes(0) };
        assert_eq!(Pattern::buckets(&iteration(vec![])), Err(PatternError::NoBuckets));
        assert_eq!(Pattern::buckets(&iteration(vec![empty])), Err(PatternError::EmptyBucket(0)));
        assert_eq!(Pattern::compute(Duration::ZERO), Err(PatternError::NoTime));
        assert_eq!(Pattern::phases(Duration::ZERO, &[]), Err(PatternError::NoTime));
        assert_eq!(Pattern::phases(ms(10), &[(ms(10), Bytes(1))]), Err(PatternError::PhaseOffset(0)));
        assert_eq!(Pattern::phases(ms(10), &[(ms(1), Bytes(0))]), Err(PatternError::EmptyPhase(0)));
        assert_eq!(Pattern::phases(ms(100), &[(ms(1), Bytes(1)); 17]), Err(PatternError::TooManyPhases));
    }

    #[test]
    fn buckets_are_sent_in_order_even_if_a_later_one_is_ready_first() {
        let bucket = |ready, bytes| Bucket { ready: ms(ready), bytes: Bytes(bytes) };
        let given = iteration(vec![bucket(50, 10), bucket(40, 20)]);
        let pattern = Pattern::buckets(&given).unwrap();
        assert_eq!(pattern.bursts[1], Burst { ready: ms(50).0, bytes: 20.0 });
    }
}
