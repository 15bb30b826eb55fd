//! Finds who may be concerned by a label, without asking everybody.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::selector::Labels;

/// Things that select by labels, filed under one label that whatever they select must have. What has no such label is
/// always a candidate.
#[derive(Debug)]
pub(super) struct Anchored<T> {
    by_label: BTreeMap<String, BTreeMap<String, BTreeSet<T>>>,
    loose: BTreeSet<T>,
}

/// The label, and the values it may have.
pub(super) type Anchor<'a> = Option<(&'a str, &'a BTreeSet<String>)>;

impl<T> Default for Anchored<T> {
    fn default() -> Self {
        Self { by_label: BTreeMap::new(), loose: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> Anchored<T> {
    pub(super) fn insert(&mut self, anchor: Anchor<'_>, item: &T) {
        match anchor {
            None => drop(self.loose.insert(item.clone())),
            Some((key, values)) => {
                let filed = self.by_label.entry(key.to_owned()).or_default();
                for value in values {
                    filed.entry(value.clone()).or_default().insert(item.clone());
                }
            }
        }
    }

    pub(super) fn remove(&mut self, anchor: Anchor<'_>, item: &T) {
        let Some((key, values)) = anchor else {
            self.loose.remove(item);
            return;
        };
        let Some(filed) = self.by_label.get_mut(key) else { return };
        for value in values {
            if let Some(items) = filed.get_mut(value) {
                items.remove(item);
                if items.is_empty() {
                    filed.remove(value);
                }
            }
        }
        if filed.is_empty() {
            self.by_label.remove(key);
        }
    }

    /// Whatever may select something with these labels, in no order that means anything.
    pub(super) fn candidates<'a>(&'a self, labels: &'a Labels) -> impl Iterator<Item = &'a T> {
        let filed = labels.iter().filter_map(|(key, value)| self.by_label.get(key)?.get(value));
        filed.flatten().chain(&self.loose)
    }
}
