//! Kinds of pods: those that no rule can tell apart. What is found out about one is known of all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::model::id::{GroupId, JobId};

use super::anchored::Anchored;
use super::pool::{Hold, Pool};
use crate::rules::storage::ClaimKey;
use crate::rules::terms::Term;
use crate::rules::traits::{Question, Traits};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct KindId(u32);

/// A role of a job.
pub(super) type RoleOf = (JobId, u8);

#[derive(Debug, Default)]
pub(super) struct Kind {
    /// The groups that its pods belong to.
    pub(super) groups: BTreeSet<GroupId>,
    /// How many are on each node that are no jobs of the engine.
    pub(super) others: BTreeMap<Arc<str>, u32>,
    /// The roles that have such pods.
    pub(super) roles: BTreeSet<RoleOf>,
}

/// Labels come and go with those who ask for them; so many are kept filed, and filed anew when there are more.
const MOST_INDEXES: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Kinds {
    pool: Pool<KindId, Traits>,
    kinds: BTreeMap<KindId, Kind>,
    by_namespace: BTreeMap<String, BTreeSet<KindId>>,
    /// Only for labels that somebody asked for.
    by_label: BTreeMap<String, BTreeMap<String, BTreeSet<KindId>>>,
    carriers: BTreeMap<Term, BTreeSet<KindId>>,
    carried: Anchored<Term>,
    users: BTreeMap<ClaimKey, BTreeSet<KindId>>,
}

/// A kind that was there already, or a new one with the terms that nobody has carried before.
pub(super) enum Met {
    Known(Hold<KindId>),
    New(Hold<KindId>, Vec<Term>),
}

impl Kinds {
    pub(super) fn meet(&mut self, traits: Traits) -> Met {
        if let Some(hold) = self.pool.find(&traits) {
            return Met::Known(hold);
        }
        let id = self.pool.vacant().unwrap_or(KindId(self.kinds.len() as u32));
        let traits = Arc::new(traits);
        let new_terms = self.file(id, &traits);
        self.kinds.insert(id, Kind::default());
        Met::New(self.pool.put(id, traits), new_terms)
    }

    fn file(&mut self, id: KindId, traits: &Traits) -> Vec<Term> {
        self.by_namespace.entry(traits.namespace.clone()).or_default().insert(id);
        for (key, values) in &mut self.by_label {
            if let Some(value) = traits.labels.get(key) {
                values.entry(value.clone()).or_default().insert(id);
            }
        }
        for claim in &traits.claims {
            self.users.entry(claim.clone()).or_default().insert(id);
        }
        let mut new = Vec::new();
        for term in &traits.carries {
            let carriers = self.carriers.entry(term.clone()).or_default();
            if carriers.is_empty() {
                self.carried.insert(term.pods.like.anchor(), term);
                new.push(term.clone());
            }
            carriers.insert(id);
        }
        new
    }

    /// Sweeps up kinds of which there is nobody left, and says which and to what groups they belonged.
    pub(super) fn sweep(&mut self) -> Vec<(KindId, Kind)> {
        let swept = self.pool.sweep();
        for (id, traits) in &swept {
            self.unfile(*id, traits);
        }
        swept.into_iter().filter_map(|(id, _)| Some((id, self.kinds.remove(&id)?))).collect()
    }

    fn unfile(&mut self, id: KindId, traits: &Traits) {
        remove(&mut self.by_namespace, &traits.namespace, id);
        for (key, values) in &mut self.by_label {
            if let Some(value) = traits.labels.get(key) {
                remove(values, value, id);
            }
        }
        for claim in &traits.claims {
            remove(&mut self.users, claim, id);
        }
        for term in &traits.carries {
            remove(&mut self.carriers, term, id);
            if !self.carriers.contains_key(term) {
                self.carried.remove(term.pods.like.anchor(), term);
            }
        }
    }

    pub(super) fn traits(&self, id: KindId) -> &Traits {
        self.pool.key(id).expect("a kind that is here")
    }

    pub(super) fn kind(&self, id: KindId) -> &Kind {
        &self.kinds[&id]
    }

    pub(super) fn kind_mut(&mut self, id: KindId) -> &mut Kind {
        self.kinds.get_mut(&id).expect("a kind that is here")
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = KindId> {
        self.by_namespace.get(namespace).into_iter().flatten().copied()
    }

    /// Terms that some pod carries and that may be about a pod with such traits.
    pub(super) fn carried_against<'a>(&'a self, traits: &'a Traits) -> impl Iterator<Item = &'a Term> {
        self.carried.candidates(&traits.labels)
    }

    /// The kinds for which a question may hold; it is still to be asked of each.
    pub(super) fn candidates(&mut self, question: &Question) -> Vec<KindId> {
        let found = match question {
            Question::Carries(term) => self.carriers.get(term),
            Question::Uses(claim) => self.users.get(claim),
            Question::Among(_) | Question::Spread { .. } => return self.labelled(question),
        };
        found.into_iter().flatten().copied().collect()
    }

    fn labelled(&mut self, question: &Question) -> Vec<KindId> {
        let Some((key, values)) = question.anchor() else { return self.kinds.keys().copied().collect() };
        self.index(key);
        let filed = &self.by_label[key];
        values.iter().filter_map(|value| filed.get(value)).flatten().copied().collect()
    }

    /// Files all kinds by a label, the first time somebody asks for it.
    fn index(&mut self, key: &str) {
        if self.by_label.contains_key(key) {
            return;
        }
        if self.by_label.len() >= MOST_INDEXES {
            self.by_label.clear();
        }
        let mut values: BTreeMap<String, BTreeSet<KindId>> = BTreeMap::new();
        for (id, traits) in self.pool.iter() {
            if let Some(value) = traits.labels.get(key) {
                values.entry(value.clone()).or_default().insert(id);
            }
        }
        self.by_label.insert(key.to_owned(), values);
    }
}

fn remove<K: Ord + Clone>(filed: &mut BTreeMap<K, BTreeSet<KindId>>, key: &K, id: KindId) {
    if let Some(ids) = filed.get_mut(key) {
        ids.remove(&id);
        if ids.is_empty() {
            filed.remove(key);
        }
    }
}
