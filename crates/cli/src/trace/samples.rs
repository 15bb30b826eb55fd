//! Bytes per interval of many counters, in bounded memory.

use std::collections::BTreeMap;

/// Whose bytes they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counted {
    /// What a member hands to its host.
    Member { job: String, member: String },
    /// What the sending end of a link has sent.
    Link { link: u32 },
    /// The part of it that members of a job have sent; of senders that no job is known for, without one.
    Part { link: u32, job: Option<String> },
}

/// Bytes of one counter. Sample `n` counts from sample `n - 1` to its own moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// The first sample that it has.
    pub(super) first: usize,
    /// What the counter said when it was first read.
    pub(super) before: u64,
    pub(super) sent: Vec<u32>,
    /// Since the last sample.
    fresh: u64,
}

#[derive(Debug)]
pub(super) struct Samples {
    /// The end of each interval.
    pub(super) at: Vec<u64>,
    slots: BTreeMap<Counted, usize>,
    series: Vec<Series>,
    /// Looks in a sample, and those that the next sample has so far.
    pub(super) merged: u32,
    pending: u32,
    most_values: usize,
}

/// Bytes of memory for samples: ten minutes of a look every 2 ms at 28 counters, before looks are merged.
const MOST_MEMORY: usize = 32 << 20;

impl Default for Samples {
    fn default() -> Self {
        Self::within(MOST_MEMORY / size_of::<u32>())
    }
}

impl Samples {
    fn within(most_values: usize) -> Self {
        Self {
            at: Vec::new(),
            slots: BTreeMap::new(),
            series: Vec::new(),
            merged: 1,
            pending: 0,
            most_values,
        }
    }

    /// Where bytes of a counter are added. A counter that is new has said `before` already.
    pub(super) fn slot(&mut self, of: Counted, before: u64) -> usize {
        let (next, first) = (self.series.len(), self.at.len());
        let slot = *self.slots.entry(of).or_insert(next);
        if slot == next {
            self.series.push(Series { first, before, ..Series::default() });
        }
        slot
    }

    pub(super) fn add(&mut self, slot: usize, bytes: u64) {
        self.series[slot].fresh += bytes;
    }

    /// A look is over: what was added since the last one belongs to it.
    pub(super) fn close(&mut self, at: u64) {
        self.pending += 1;
        if self.pending < self.merged {
            return;
        }
        self.pending = 0;
        self.at.push(at);
        for series in &mut self.series {
            series.sent.push(u32::try_from(std::mem::take(&mut series.fresh)).unwrap_or(u32::MAX));
        }
        if self.at.len() * (self.series.len() + 2) > self.most_values {
            self.halve();
        }
    }

    /// Merges pairs of samples: no byte is lost, and intervals are twice as long.
    fn halve(&mut self) {
        self.merged *= 2;
        for series in &mut self.series {
            // A series that begins with the second of a pair had nothing in the first.
            let padding = series.first % 2;
            let all: Vec<u32> = std::iter::repeat_n(0, padding).chain(series.sent.drain(..)).collect();
            series.sent = all.chunks_exact(2).map(|pair| pair[0].saturating_add(pair[1])).collect();
            series.fresh += all.chunks_exact(2).remainder().iter().map(|left| u64::from(*left)).sum::<u64>();
            series.first /= 2;
        }
        self.pending = if self.at.len().is_multiple_of(2) { 0 } else { self.merged / 2 };
        self.at = self.at.chunks_exact(2).map(|pair| pair[1]).collect();
    }

    pub(super) fn into_series(self) -> (Vec<u64>, BTreeMap<Counted, Series>) {
        let Self { at, slots, mut series, .. } = self;
        let all = slots.into_iter().map(|(of, slot)| (of, std::mem::take(&mut series[slot])));
        (at, all.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_merged_when_memory_is_used_up_and_no_byte_is_lost() {
        let mut samples = Samples::within(400);
        let one = samples.slot(Counted::Link { link: 0 }, 5);
        let mut late = None;
        for look in 0..1001_u64 {
            if look == 333 {
                late = Some(samples.slot(Counted::Link { link: 1 }, 0));
            }
            samples.add(one, look);
            late.iter().for_each(|late| samples.add(*late, 1));
            samples.close(10 * look);
        }
        let merged = u64::from(samples.merged);
        let pending = u64::from(samples.pending);
        assert!(merged >= 8 && samples.at.len() * 4 <= 400, "{merged}");
        let steps = samples.at.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.clone().all(|step| step == 10 * merged), "{:?}", steps.collect::<Vec<_>>());
        let (at, series) = samples.into_series();
        let whole = 1001 - pending;
        let sum = |link: u32| {
            let series = &series[&Counted::Link { link }];
            assert_eq!(series.first + series.sent.len(), at.len());
            series.sent.iter().map(|bytes| u64::from(*bytes)).sum::<u64>()
        };
        assert_eq!((sum(0), sum(1)), ((0..whole).sum(), whole - 333));
        assert_eq!(series[&Counted::Link { link: 0 }].before, 5);
    }
}
