//! Members of groups per domain in a draft: the counts of the snapshot, and what was placed since.

use std::collections::BTreeMap;

use crate::decide::snapshot::Snapshot;
use crate::model::groups::Domain;
use crate::model::id::{GroupId, NodeId};
use crate::model::job::{Rule, Shape};

/// Counts kept as differences, so that a draft costs nothing where no shape belongs to a group.
#[derive(Clone, Debug)]
pub(super) struct Counts<'a> {
    snapshot: &'a Snapshot<'a>,
    placed: BTreeMap<(GroupId, Domain), i64>,
    /// By how much the number of domains with a count has changed.
    with_count: BTreeMap<(GroupId, u32), i64>,
    in_all: BTreeMap<GroupId, i64>,
}

/// A kind of rule that forbids a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleKind {
    Together,
    Apart,
    Spread,
}

impl<'a> Counts<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>) -> Self {
        Self { snapshot, placed: BTreeMap::new(), with_count: BTreeMap::new(), in_all: BTreeMap::new() }
    }

    /// Counts members in, or out again where the number is negative.
    pub(super) fn add(&mut self, groups: &[GroupId], node: NodeId, members: i64) {
        for group in groups {
            if let Some(domain) = self.snapshot.groups.domain(*group, node) {
                self.change(*group, domain, members);
            }
        }
    }

    fn change(&mut self, group: GroupId, domain: Domain, by: i64) {
        let before = self.count(group, domain);
        *self.placed.entry((group, domain)).or_default() += by;
        *self.in_all.entry(group).or_default() += by;
        *self.with_count.entry((group, before)).or_default() -= 1;
        *self.with_count.entry((group, self.count(group, domain))).or_default() += 1;
    }

    /// Grows whenever members of one of these groups are placed.
    pub(super) fn changes(&self, groups: &[GroupId]) -> u64 {
        groups.iter().filter_map(|group| self.in_all.get(group)).map(|placed| placed.unsigned_abs()).sum()
    }

    pub(super) fn have_changed(&self) -> bool {
        self.in_all.values().any(|placed| *placed != 0)
    }

    pub(super) fn is_empty(&self, group: GroupId) -> bool {
        let before = self.snapshot.tallies.get(group).map_or(0, |tally| tally.in_domains());
        before as i64 + self.in_all.get(&group).copied().unwrap_or(0) == 0
    }

    fn count(&self, group: GroupId, domain: Domain) -> u32 {
        let before = self.snapshot.tallies.get(group).map_or(0, |tally| tally.count(domain));
        let placed = self.placed.get(&(group, domain)).copied().unwrap_or(0);
        (i64::from(before) + placed) as u32
    }

    /// The least count over all domains of the group's partition.
    fn least(&self, group: GroupId) -> u32 {
        let Some(tally) = self.snapshot.tallies.get(group) else { return 0 };
        let shift = |count| self.with_count.get(&(group, count)).copied().unwrap_or(0);
        let vacant = self.domains(group) as i64 - tally.occupied_domains() as i64;
        if vacant + shift(0) > 0 {
            return 0;
        }
        let stood = tally.counts().find(|(count, domains)| i64::from(*domains) + shift(*count) > 0);
        let grown = self.with_count.range((group, 1)..=(group, u32::MAX));
        let grown = grown.map(|((_, count), shift)| (*count, i64::from(tally.domains_with(*count)) + shift));
        let grown = grown.into_iter().find(|(_, domains)| *domains > 0);
        [stood.map(|(count, _)| count), grown.map(|(count, _)| count)]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(0)
    }

    fn domains(&self, group: GroupId) -> usize {
        let group = self.snapshot.groups.groups.get(group);
        group.map_or(0, |group| self.snapshot.tallies.domains(group.partition))
    }

    /// The kind of rule that keeps one more member of a shape off a node, if any does.
    pub(super) fn forbid(&self, shape: &Shape, node: NodeId) -> Option<RuleKind> {
        shape.rules.iter().find_map(|rule| self.broken(rule, node))
    }

    fn broken(&self, rule: &Rule, node: NodeId) -> Option<RuleKind> {
        let here =
            |group: GroupId| self.snapshot.groups.domain(group, node).map(|domain| self.count(group, domain));
        match rule {
            Rule::Together { groups, or_first } => {
                let joins = groups.iter().all(|group| here(*group).is_some_and(|count| count > 0));
                let may_be_first = |group: &GroupId| self.is_empty(*group) && here(*group).is_some();
                let first = *or_first && groups.iter().all(may_be_first);
                (!joins && !first).then_some(RuleKind::Together)
            }
            Rule::Apart(group) => here(*group).filter(|count| *count > 0).map(|_| RuleKind::Apart),
            Rule::Spread { group, skew, own, least_domains } => {
                let few = self.domains(*group) < *least_domains as usize;
                let least = if few { 0 } else { self.least(*group) };
                let crowded =
                    |count: u32| u64::from(count) + u64::from(*own) > u64::from(least) + u64::from(*skew);
                here(*group).is_none_or(crowded).then_some(RuleKind::Spread)
            }
        }
    }
}
