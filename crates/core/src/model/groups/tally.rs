//! Counts of groups: updated member by member, and recomputed when a state is restored.

use std::collections::BTreeMap;

use super::{Domain, Groups};
use crate::model::id::{GroupId, IdVec, JobId, NodeId, PartitionId};

/// Group, node, and number of a job's members in that group on that node.
pub(crate) type GroupMembership = (GroupId, NodeId, u32);

/// Counts of one group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    on: BTreeMap<NodeId, u32>,
    in_domain: BTreeMap<Domain, u32>,
    in_domains: u64,
    /// Number of domains with each nonzero count, which gives the smallest count without a scan of all domains.
    with_count: BTreeMap<u32, u32>,
    /// Number of changes.
    changes: u64,
}

impl Tally {
    pub fn count(&self, domain: Domain) -> u32 {
        self.in_domain.get(&domain).copied().unwrap_or(0)
    }

    /// Members in all domains together.
    pub fn in_domains(&self) -> u64 {
        self.in_domains
    }

    /// Nonzero counts, each with the number of domains that have it.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u32)> {
        self.with_count.iter().map(|(count, domains)| (*count, *domains))
    }

    pub fn domains_with(&self, count: u32) -> u32 {
        self.with_count.get(&count).copied().unwrap_or(0)
    }

    pub fn occupied_domains(&self) -> usize {
        self.in_domain.len()
    }

    fn change(&mut self, node: NodeId, domain: Option<Domain>, by: i64) {
        self.changes += 1;
        shift(&mut self.on, node, by);
        self.change_domain(domain, by);
    }

    fn change_domain(&mut self, domain: Option<Domain>, by: i64) {
        let Some(domain) = domain.filter(|_| by != 0) else { return };
        let (was, is) = shift(&mut self.in_domain, domain, by);
        self.in_domains = self.in_domains.saturating_add_signed(by);
        if was > 0 {
            shift(&mut self.with_count, was, -1);
        }
        if is > 0 {
            shift(&mut self.with_count, is, 1);
        }
    }
}

/// Adds to an entry of a map without zeros; returns the old and the new value.
fn shift<K: Ord>(counts: &mut BTreeMap<K, u32>, key: K, by: i64) -> (u32, u32) {
    let was = counts.get(&key).copied().unwrap_or(0);
    let is = u32::try_from(i64::from(was) + by).expect("a member is counted out at most once");
    match is {
        0 => counts.remove(&key),
        _ => counts.insert(key, is),
    };
    (was, is)
}

/// Counts of all groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    tallies: IdVec<GroupId, Tally>,
    /// Nodes per domain of each partition.
    domains: IdVec<PartitionId, BTreeMap<Domain, u32>>,
    /// Counted members of each job.
    belongs: BTreeMap<JobId, Vec<GroupMembership>>,
}

impl Tallies {
    /// Counts of members that are not jobs of this engine.
    pub(crate) fn of(groups: &Groups) -> Self {
        let mut tallies = Self::default();
        groups.partitions.ids().for_each(|partition| tallies.partition_changed(groups, partition));
        groups.groups.ids().for_each(|group| tallies.group_changed(groups, group));
        tallies
    }

    pub fn get(&self, group: GroupId) -> Option<&Tally> {
        self.tallies.get(group)
    }

    /// Number of domains of a partition.
    pub fn domains(&self, partition: PartitionId) -> usize {
        self.domains.get(partition).map_or(0, BTreeMap::len)
    }

    /// Sum of the changes of these groups; it grows with each change.
    pub fn changes(&self, groups: &[GroupId]) -> u64 {
        groups.iter().filter_map(|group| self.tallies.get(*group)).map(|tally| tally.changes).sum()
    }

    /// Recounts after a partition was added or replaced.
    pub(crate) fn partition_changed(&mut self, groups: &Groups, id: PartitionId) {
        let mut domains = BTreeMap::new();
        for (_, domain) in groups.partitions[id].iter() {
            *domains.entry(domain).or_default() += 1;
        }
        self.domains.put(id, domains).expect("the partition was put under the same id");
        let known: Vec<GroupId> =
            groups.over(id).filter(|group| self.tallies.get(*group).is_some()).collect();
        known.into_iter().for_each(|group| self.recount_group(groups, group));
    }

    /// Updates the counts after a node moved to another domain, or to none.
    pub(crate) fn node_moved(
        &mut self,
        groups: &Groups,
        id: PartitionId,
        node: NodeId,
        from: Option<Domain>,
        to: Option<Domain>,
    ) {
        if let Some(from) = from {
            shift(&mut self.domains[id], from, -1);
        }
        if let Some(to) = to {
            shift(&mut self.domains[id], to, 1);
        }
        for group in groups.over(id) {
            let tally = &mut self.tallies[group];
            let here = i64::from(tally.on.get(&node).copied().unwrap_or(0));
            tally.change_domain(from, -here);
            tally.change_domain(to, here);
            // A group without members on the node may still compare with the smallest count of all domains.
            tally.changes += 1;
        }
    }

    /// Recounts after a group was added or replaced.
    pub(crate) fn group_changed(&mut self, groups: &Groups, id: GroupId) {
        if self.tallies.get(id).is_none() {
            self.tallies.push(Tally::default());
        }
        self.recount_group(groups, id);
    }

    fn recount_group(&mut self, groups: &Groups, id: GroupId) {
        let mut tally = Tally { changes: self.tallies[id].changes + 1, ..Tally::default() };
        let ours = self.belongs.values().flatten().filter(|(group, _, _)| *group == id);
        let ours = ours.map(|(_, node, count)| (*node, *count));
        for (node, count) in groups.groups[id].others.iter().copied().chain(ours) {
            tally.change(node, groups.domain(id, node), i64::from(count));
        }
        self.tallies[id] = tally;
    }

    pub(crate) fn others_changed(&mut self, groups: &Groups, id: GroupId, node: NodeId, by: i64) {
        self.tallies[id].change(node, groups.domain(id, node), by);
    }

    /// Replaces the counted members of a job; returns whether they changed.
    pub(crate) fn recount(&mut self, groups: &Groups, job: JobId, belongs: Vec<GroupMembership>) -> bool {
        let before = self.belongs.remove(&job).unwrap_or_default();
        if before == belongs {
            if !before.is_empty() {
                self.belongs.insert(job, before);
            }
            return false;
        }
        for (group, node, count) in before {
            self.count(groups, group, node, -i64::from(count));
        }
        for (group, node, count) in &belongs {
            self.count(groups, *group, *node, i64::from(*count));
        }
        if !belongs.is_empty() {
            self.belongs.insert(job, belongs);
        }
        true
    }

    /// Changes a count. A job may name a group before the world describes it; the description triggers a recount.
    fn count(&mut self, groups: &Groups, group: GroupId, node: NodeId, by: i64) {
        if let Some(tally) = self.tallies.get_mut(group) {
            tally.change(node, groups.domain(group, node), by);
        }
    }

    /// Whether the counts equal those of `other`; the numbers of changes may differ.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let counts =
            |tallies: &Self| tallies.tallies.values().map(|tally| tally.on.clone()).collect::<Vec<_>>();
        let domains = |tallies: &Self| {
            tallies.tallies.values().map(|tally| tally.in_domain.clone()).collect::<Vec<_>>()
        };
        counts(self) == counts(other) && domains(self) == domains(other) && self.domains == other.domains
    }
}
