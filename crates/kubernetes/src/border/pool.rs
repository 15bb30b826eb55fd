//! Things that have an id as long as somebody holds them. What nobody holds any more is swept up now and then, and
//! its id is given to the next: so nothing grows over months but with what is there.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Keeps a thing in its pool.
#[derive(Clone, Debug)]
pub(super) struct Hold<I>(Arc<I>);

impl<I: Copy> Hold<I> {
    pub(super) fn id(&self) -> I {
        *self.0
    }

    /// The pool itself holds everything in it.
    fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

#[derive(Debug)]
pub(super) struct Pool<I, K> {
    holds: BTreeMap<Arc<K>, Hold<I>>,
    keys: BTreeMap<I, Arc<K>>,
    free: Vec<I>,
    sweep_at: usize,
}

/// Below this there is nothing to be gained from sweeping.
const FEW: usize = 64;

impl<I, K> Default for Pool<I, K> {
    fn default() -> Self {
        Self { holds: BTreeMap::new(), keys: BTreeMap::new(), free: Vec::new(), sweep_at: FEW }
    }
}

impl<I: Copy + Ord, K: Ord> Pool<I, K> {
    pub(super) fn find(&self, key: &K) -> Option<Hold<I>> {
        self.holds.get(key).cloned()
    }

    pub(super) fn hold(&self, id: I) -> Option<Hold<I>> {
        self.holds.get(self.keys.get(&id)?).cloned()
    }

    pub(super) fn key(&self, id: I) -> Option<&Arc<K>> {
        self.keys.get(&id)
    }

    /// An id that belonged to something swept up.
    pub(super) fn vacant(&mut self) -> Option<I> {
        self.free.pop()
    }

    pub(super) fn put(&mut self, id: I, key: Arc<K>) -> Hold<I> {
        let hold = Hold(Arc::new(id));
        self.keys.insert(id, key.clone());
        self.holds.insert(key, hold.clone());
        hold
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (I, &Arc<K>)> {
        self.keys.iter().map(|(id, key)| (*id, key))
    }

    /// Sweeps up what nobody holds, once there is twice as much as after the last time. Returns what it was.
    pub(super) fn sweep(&mut self) -> Vec<(I, Arc<K>)> {
        if self.keys.len() < self.sweep_at {
            return Vec::new();
        }
        let unheld = self.holds.iter().filter(|(_, hold)| hold.is_last());
        let swept: Vec<(I, Arc<K>)> = unheld.map(|(key, hold)| (hold.id(), key.clone())).collect();
        for (id, key) in &swept {
            self.holds.remove(key);
            self.keys.remove(id);
            self.free.push(*id);
        }
        self.sweep_at = FEW.max(2 * self.keys.len());
        swept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_swept_up_and_its_id_given_away() {
        let mut pool: Pool<u32, u32> = Pool::default();
        let kept: Vec<_> =
            (0..FEW as u32).map(|n| pool.put(n, Arc::new(n))).filter(|hold| hold.id() % 2 == 0).collect();
        let swept = pool.sweep();
        assert_eq!((swept.len(), kept.len()), (FEW / 2, FEW / 2));
        assert!(pool.find(&1).is_none() && pool.find(&2).is_some());
        assert!(pool.vacant().is_some_and(|id| id % 2 == 1));
    }

    #[test]
    fn a_small_pool_is_left_alone() {
        let mut pool: Pool<u32, u32> = Pool::default();
        drop(pool.put(0, Arc::new(0)));
        assert!(pool.sweep().is_empty() && pool.find(&0).is_some());
    }
}
