//! What is counted per node, under the ids the engine gave.

use std::collections::BTreeMap;

use metronome_core::model::id::CounterId;

use super::wire::Wire;
use crate::rules::Refusal;
use crate::rules::load::{Counter, Load};

/// A cluster counts some dozens of things; ports could make it any number.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Counters(BTreeMap<Counter, CounterId>);

impl Counters {
    /// The id of a counter, new if need be; none where there are too many.
    pub(super) fn intern(&mut self, wire: &mut Wire<'_>, counter: &Counter) -> Option<CounterId> {
        if let Some(id) = self.0.get(counter) {
            return Some(*id);
        }
        if self.0.len() >= MOST {
            return None;
        }
        let id = wire.engine.add_counter(wire.now, &counter.to_string(), counter.each());
        self.0.insert(counter.clone(), id);
        Some(id)
    }

    /// What a pod takes, in order of id.
    pub(super) fn wanted(
        &mut self,
        wire: &mut Wire<'_>,
        load: &Load,
    ) -> Result<Vec<(CounterId, u64)>, Refusal> {
        let mut wanted = Vec::with_capacity(load.counters.len());
        for (counter, amount) in &load.counters {
            let id = self.intern(wire, counter);
            let id = id.ok_or_else(|| Refusal::TooManyCounters { name: counter.to_string(), most: MOST })?;
            wanted.push((id, *amount));
        }
        wanted.sort_unstable();
        Ok(wanted)
    }

    /// What a node has left, where that is not what every node has. What could not be given an id can be asked for by
    /// nobody.
    pub(super) fn left(&mut self, wire: &mut Wire<'_>, supply: &Load, held: &Load) -> Vec<(CounterId, u64)> {
        let mut left = BTreeMap::new();
        for counter in supply.counters.keys().chain(held.counters.keys()) {
            let has = supply.counters.get(counter).copied().unwrap_or_else(|| counter.each());
            let taken = held.counters.get(counter).copied().unwrap_or(0);
            if let Some(id) = self.intern(wire, counter) {
                left.insert(id, has.saturating_sub(taken));
            }
        }
        left.into_iter().collect()
    }
}
