//! Cache of flow rates. The flows of a component meet in the same sets again and again; their rates follow from the
//! set of senders and, where classes or weights depend on sent bytes, from the number of thresholds that each flow
//! has passed.
//!
//! The cache is direct-mapped: it has one entry per set for components of fewer than 12 flows, and otherwise a fixed
//! number of entries, where a new set evicts the one with the same hash.

/// Entries of a cache for 12 or more flows: 4,096 of 64 flows take 2 MiB.
const MAX_ENTRIES: usize = 1 << 12;

/// Entries of a cache whose keys include thresholds: keys that recur do so soon.
const ENTRIES_WITH_THRESHOLDS: usize = 1 << 9;

/// Rates of each cached set of senders.
#[derive(Debug, Default)]
pub(super) struct RateCache {
    flows: usize,
    /// Key of each entry; the default key, of no sender, marks an empty entry.
    keys: Vec<CacheKey>,
    contents: KeyContents,
    rates: Vec<f64>,
}

/// Whether the cache key includes the thresholds that flows have passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum KeyContents {
    #[default]
    Senders,
    SendersAndThresholds,
}

/// Cache key: the set of senders, one bit each, and the number of thresholds that each has passed, four bits each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheKey {
    pub(super) set: u64,
    pub(super) passed: u128,
}

impl CacheKey {
    /// Adds the number of thresholds that a flow has passed.
    pub(super) fn add_passed(&mut self, flow: u32, passed: u8) {
        self.passed |= u128::from(passed) << (4 * flow);
    }
}

impl RateCache {
    /// Creates a cache, or `None` for one flow or for more flows than a key has bits for.
    pub(super) fn new(flows: usize, contents: KeyContents) -> Option<Self> {
        let (max_flows, entries) = match contents {
            KeyContents::Senders => (64, if flows < 12 { 1 << flows } else { MAX_ENTRIES }),
            KeyContents::SendersAndThresholds => (32, ENTRIES_WITH_THRESHOLDS),
        };
        (2..=max_flows).contains(&flows).then(|| Self {
            flows,
            keys: vec![CacheKey::default(); entries],
            contents,
            rates: vec![0.0; entries * flows],
        })
    }

    /// Rates of a set of senders, by `compute` if they are not cached.
    pub(super) fn rates(&mut self, key: CacheKey, compute: impl FnOnce(&mut [f64])) -> &[f64] {
        let index = self.index(key);
        let here = &mut self.rates[index * self.flows..][..self.flows];
        if self.keys[index] != key {
            compute(here);
            self.keys[index] = key;
        }
        here
    }

    /// Index of a key's entry: the set itself where every set has an entry, a multiplicative hash otherwise.
    fn index(&self, key: CacheKey) -> usize {
        let entries = self.keys.len();
        if self.contents == KeyContents::Senders && entries < MAX_ENTRIES {
            return key.set as usize;
        }
        let CacheKey { set, passed } = key;
        let mixed = [passed as u64, (passed >> 64) as u64]
            .into_iter()
            .fold(set, |mixed, word| (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
        // The upper bits of a product depend on all bits of the key.
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - entries.trailing_zeros())) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(set: u64) -> CacheKey {
        CacheKey { set, passed: 0 }
    }

    #[test]
    fn rates_are_computed_once_for_each_set() {
        let mut cache = RateCache::new(3, KeyContents::Senders).unwrap();
        assert_eq!(cache.rates(key(0b101), |rates| rates.copy_from_slice(&[1.0, 0.0, 2.0])), [1.0, 0.0, 2.0]);
        assert_eq!(cache.rates(key(0b101), |_| panic!("keys")), [1.0, 0.0, 2.0]);
        assert_eq!(cache.rates(key(0b111), |rates| rates.fill(7.0)), [7.0; 3]);
    }

    #[test]
    fn sets_with_the_same_entry_evict_each_other() {
        let mut cache = RateCache::new(64, KeyContents::Senders).unwrap();
        for set in 1..20_000_u64 {
            assert_eq!(cache.rates(key(set), |rates| rates.fill(set as f64))[5], set as f64);
        }
    }
}
