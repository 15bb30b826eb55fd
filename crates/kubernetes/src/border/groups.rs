//! Groups of pods that rules count, under the ids the engine gave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::{GroupId, NodeId, PartitionId};

use super::Border;
use super::anchored::Anchored;
use super::kinds::{KindId, RoleOf};
use super::pool::{Hold, Pool};
use super::wire::Wire;
use crate::rules::division::Division;
use crate::rules::storage::ClaimKey;
use crate::rules::terms::Term;
use crate::rules::traits::{Question, Traits};

/// Pods for whom a question holds, counted per domain of a division.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) question: Question,
    pub(super) division: Division,
}

impl Group {
    /// Those who keep others away by this term.
    pub(super) fn of_carriers(term: Term) -> Self {
        let division = Division::Label(term.key.clone());
        Self { question: Question::Carries(term), division }
    }

    /// Those who use a claim, anywhere.
    pub(super) fn of_users(claim: ClaimKey) -> Self {
        Self { question: Question::Uses(claim), division: Division::Whole }
    }
}

/// Groups of carriers and users are found by what is carried or used.
fn asks_labels(question: &Question) -> bool {
    matches!(question, Question::Among(_) | Question::Spread { .. })
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    pool: Pool<GroupId, Group>,
    counted: BTreeMap<GroupId, Counted>,
    by_label: Anchored<GroupId>,
}

#[derive(Debug)]
struct Counted {
    over: Hold<PartitionId>,
    kinds: BTreeSet<KindId>,
    /// How many are on each node that are no jobs of the engine.
    others: BTreeMap<Arc<str>, u32>,
}

impl Groups {
    fn file(&mut self, id: GroupId, question: &Question) {
        if asks_labels(question) {
            self.by_label.insert(question.anchor(), &id);
        }
    }

    fn unfile(&mut self, id: GroupId, question: &Question) {
        if asks_labels(question) {
            self.by_label.remove(question.anchor(), &id);
        }
    }

    /// The groups that pods with these traits may belong to; the question is still to be asked.
    fn candidates(&self, traits: &Traits) -> Vec<GroupId> {
        let carries = traits.carries.iter().map(|term| Group::of_carriers(term.clone()));
        let uses = traits.claims.iter().map(|claim| Group::of_users(claim.clone()));
        let named = carries.chain(uses).filter_map(|group| self.pool.find(&group)).map(|hold| hold.id());
        self.by_label.candidates(&traits.labels).copied().chain(named).collect()
    }

    pub(super) fn hold(&self, id: GroupId) -> Option<Hold<GroupId>> {
        self.pool.hold(id)
    }
}

impl Border {
    /// The engine's id of a group, new if need be: then whoever belongs to it is counted.
    pub(super) fn group(&mut self, wire: &mut Wire<'_>, group: Group) -> Hold<GroupId> {
        if let Some(hold) = self.groups.pool.find(&group) {
            return hold;
        }
        self.sweep_groups();
        let over = self.division(wire, group.division.clone());
        let kinds = self.who(&group.question);
        let others = self.where_others_are(&kinds);
        let roles = self.roles_of(&kinds);
        let id = match self.groups.pool.vacant() {
            Some(id) => id,
            None => wire.engine.add_group(wire.now, over.id(), Vec::new(), Vec::new()),
        };
        self.groups.file(id, &group.question);
        for kind in &kinds {
            self.kinds.kind_mut(*kind).groups.insert(id);
        }
        self.groups.counted.insert(id, Counted { over, kinds, others });
        let hold = self.groups.pool.put(id, Arc::new(group));
        self.enlist(wire, id, roles);
        hold
    }

    /// The kinds for which a question holds.
    fn who(&mut self, question: &Question) -> BTreeSet<KindId> {
        let candidates = self.kinds.candidates(question);
        candidates.into_iter().filter(|kind| self.holds(question, *kind)).collect()
    }

    pub(super) fn holds(&self, question: &Question, kind: KindId) -> bool {
        let traits = self.kinds.traits(kind);
        question.holds(traits, self.namespaces.get(&traits.namespace))
    }

    fn where_others_are(&self, kinds: &BTreeSet<KindId>) -> BTreeMap<Arc<str>, u32> {
        let mut others = BTreeMap::new();
        for (node, count) in kinds.iter().flat_map(|kind| &self.kinds.kind(*kind).others) {
            *others.entry(node.clone()).or_default() += count;
        }
        others
    }

    fn roles_of(&self, kinds: &BTreeSet<KindId>) -> BTreeSet<RoleOf> {
        kinds.iter().flat_map(|kind| &self.kinds.kind(*kind).roles).copied().collect()
    }

    /// Tells the engine who belongs to a group: others where they are, and roles of its jobs.
    pub(super) fn enlist(&mut self, wire: &mut Wire<'_>, group: GroupId, roles: BTreeSet<RoleOf>) {
        let counted = &self.groups.counted[&group];
        let known = |(name, count): (&Arc<str>, &u32)| Some((self.nodes.id(name)?, *count));
        let others: Vec<(NodeId, u32)> = counted.others.iter().filter_map(known).collect();
        let partition = counted.over.id();
        wire.tell(Event::Group { group, partition, others, members: roles.iter().copied().collect() });
        if let Some(hold) = self.groups.hold(group) {
            self.jobs.keep(roles.into_iter().map(|(job, _)| job), &hold);
        }
    }

    fn sweep_groups(&mut self) {
        for (id, group) in self.groups.pool.sweep() {
            self.groups.unfile(id, &group.question);
            let counted = self.groups.counted.remove(&id);
            for kind in counted.into_iter().flat_map(|counted| counted.kinds) {
                self.kinds.kind_mut(kind).groups.remove(&id);
            }
        }
    }

    /// A kind nobody has met before is put into the groups it belongs to.
    pub(super) fn sort_in(&mut self, kind: KindId) {
        let traits = self.kinds.traits(kind).clone();
        for id in self.groups.candidates(&traits) {
            let Some(group) = self.groups.pool.key(id).cloned() else { continue };
            if self.holds(&group.question, kind) {
                self.kinds.kind_mut(kind).groups.insert(id);
                self.groups.counted.get_mut(&id).expect("every group is counted").kinds.insert(kind);
            }
        }
    }

    /// Nobody of these kinds is left.
    pub(super) fn sweep_kinds(&mut self) {
        for (id, kind) in self.kinds.sweep() {
            for group in kind.groups {
                if let Some(counted) = self.groups.counted.get_mut(&group) {
                    counted.kinds.remove(&id);
                }
            }
        }
    }

    /// One more or one less of a kind is on a node, and is no job of the engine.
    pub(super) fn count_other(&mut self, wire: &mut Wire<'_>, kind: KindId, node: &Arc<str>, change: Change) {
        change.apply(&mut self.kinds.kind_mut(kind).others, node);
        let id = self.nodes.id(node);
        for group in &self.kinds.kind(kind).groups {
            let counted = self.groups.counted.get_mut(group).expect("every group is counted");
            let count = change.apply(&mut counted.others, node);
            if let Some(node) = id {
                wire.tell(Event::OthersChanged { group: *group, node, count });
            }
        }
    }

    /// A node has come on which there are pods already.
    pub(super) fn count_others_on(&mut self, wire: &mut Wire<'_>, name: &Arc<str>) {
        let Some(node) = self.nodes.id(name) else { return };
        for (group, counted) in &self.groups.counted {
            if let Some(count) = counted.others.get(name) {
                wire.tell(Event::OthersChanged { group: *group, node, count: *count });
            }
        }
    }

    /// A namespace has other labels: whoever asks for them asks again.
    pub(super) fn ask_again(&mut self, wire: &mut Wire<'_>) {
        let asking = self.groups.pool.iter().filter(|(_, group)| group.question.asks_namespaces());
        let asking: Vec<(GroupId, Arc<Group>)> = asking.map(|(id, group)| (id, group.clone())).collect();
        for (id, group) in asking {
            self.regroup(wire, id, &group.question);
        }
    }

    /// Roles that no longer belong are counted until their shapes are made anew.
    fn regroup(&mut self, wire: &mut Wire<'_>, id: GroupId, question: &Question) {
        let kinds = self.who(question);
        let others = self.where_others_are(&kinds);
        let counted = self.groups.counted.get_mut(&id).expect("every group is counted");
        let before = std::mem::replace(&mut counted.kinds, kinds.clone());
        counted.others = others;
        let (left, joined) = (&before - &kinds, &kinds - &before);
        for kind in &left {
            self.kinds.kind_mut(*kind).groups.remove(&id);
        }
        for kind in &joined {
            self.kinds.kind_mut(*kind).groups.insert(id);
        }
        self.jobs.outdated.extend(self.roles_of(&left).into_iter().map(|(job, _)| job));
        let roles = self.roles_of(&joined);
        self.enlist(wire, id, roles);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    More,
    Less,
}

impl Change {
    /// Returns how many there are now.
    fn apply(self, counts: &mut BTreeMap<Arc<str>, u32>, node: &Arc<str>) -> u32 {
        let count = counts.entry(node.clone()).or_default();
        match self {
            Self::More => *count += 1,
            Self::Less => *count = count.saturating_sub(1),
        }
        let now = *count;
        if now == 0 {
            counts.remove(node);
        }
        now
    }
}
