//! Whether new assignments keep the rules of their members, recounted from nothing.
//!
//! A rule is kept when a member is placed, and members of one amendment are placed in some order that a finished
//! amendment does not tell. What is derived here holds whatever that order was:
//!
//! - *Apart* from whoever is not part of the amendment, from the members of its own job, and from those who come with
//!   the amendment and must be apart from it in turn: of two such, the second broke its rule. Whoever the amendment
//!   takes out is gone before the member comes.
//! - *Together* with whoever was there before or is there at the end.
//! - *Spread* as far as what was there before, and the member itself, do not exceed by more than the skew the least
//!   count of all that were there or come: counts only grow while an amendment is made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Violation;
use crate::decide::snapshot::Snapshot;
use crate::model::groups::Domain;
use crate::model::id::{GroupId, JobId, NodeId};
use crate::model::job::{Job, Rule, Shape};
use crate::model::plan::{Amendment, Assignment, Part};

pub(super) fn keeps_rules(snapshot: &Snapshot<'_>, amendment: &Amendment) -> Result<(), Violation> {
    let new = amendment.assignments.iter().filter_map(|(id, change)| Some((*id, change.as_ref()?)));
    let ruled: Vec<(JobId, &Arc<Assignment>)> =
        new.filter(|(id, _)| has_rules(&snapshot.jobs[*id])).collect();
    if ruled.is_empty() {
        return Ok(());
    }
    let named = ruled.iter().flat_map(|(id, _)| rules(&snapshot.jobs[*id])).flat_map(Rule::groups);
    let counts = Counts::of(snapshot, amendment, &named.copied().collect());
    ruled.into_iter().try_for_each(|(id, assignment)| {
        let mut firsts = BTreeSet::new();
        assignment.parts().iter().try_for_each(|part| counts.judge(id, part, &mut firsts))
    })
}

fn has_rules(job: &Job) -> bool {
    rules(job).next().is_some()
}

fn rules(job: &Job) -> impl Iterator<Item = &Rule> {
    job.spec.roles.iter().flat_map(|role| &*role.shape.rules)
}

/// How many of a group are in one domain.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Members of jobs that the amendment does not change.
    before: u64,
    /// Members that were there or come.
    ever: u64,
}

/// When somebody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Throughout,
    /// Only before the amendment, or only after.
    Partly,
}

impl Count {
    fn add(&mut self, members: u64, when: When) {
        self.ever += members;
        self.before += if when == When::Throughout { members } else { 0 };
    }
}

struct Counts<'a> {
    snapshot: &'a Snapshot<'a>,
    /// Counts of the groups that matter, in every domain of their partition.
    counts: BTreeMap<GroupId, BTreeMap<Domain, Count>>,
    /// Members that the amendment adds to each domain of those.
    comers: BTreeMap<(GroupId, Domain), Vec<(JobId, Part)>>,
}

/// A role and one of its rules.
type RoleRule = (u8, usize);

impl<'a> Counts<'a> {
    fn of(snapshot: &'a Snapshot<'a>, amendment: &Amendment, named: &BTreeSet<GroupId>) -> Self {
        let mut counts = Self { snapshot, counts: BTreeMap::new(), comers: BTreeMap::new() };
        for (group, described) in named.iter().filter_map(|id| Some((*id, snapshot.groups.groups.get(*id)?)))
        {
            let domains = snapshot.groups.partitions[described.partition].iter();
            counts.counts.insert(group, domains.map(|(_, domain)| (domain, Count::default())).collect());
            for (node, others) in &described.others {
                counts.add(group, *node, *others, When::Throughout);
            }
        }
        for (id, job) in snapshot.jobs.iter() {
            let changes = amendment.assignments.contains_key(&id);
            let when = if changes { When::Partly } else { When::Throughout };
            is_at(snapshot, id, job).iter().for_each(|assignment| counts.add_all(job, assignment, when));
        }
        for (id, new) in amendment.assignments.iter().filter_map(|(id, change)| Some((*id, change.as_ref()?)))
        {
            counts.add_all(&snapshot.jobs[id], new, When::Partly);
            counts.note_comers(id, new);
        }
        counts
    }

    fn note_comers(&mut self, id: JobId, new: &Assignment) {
        for part in new.parts() {
            for group in self.shape(id, part).groups.iter().filter(|group| self.counts.contains_key(group)) {
                if let Some(domain) = self.snapshot.groups.domain(*group, part.node) {
                    self.comers.entry((*group, domain)).or_default().push((id, *part));
                }
            }
        }
    }

    fn shape(&self, id: JobId, part: &Part) -> &'a Shape {
        &self.snapshot.jobs[id].spec.roles[usize::from(part.role)].shape
    }

    fn add_all(&mut self, job: &Job, assignment: &Assignment, when: When) {
        for part in assignment.parts() {
            for group in &*job.spec.roles[usize::from(part.role)].shape.groups {
                self.add(*group, part.node, part.members, when);
            }
        }
    }

    fn add(&mut self, group: GroupId, node: NodeId, members: u32, when: When) {
        let domain = self.snapshot.groups.domain(group, node);
        let counts = self.counts.get_mut(&group);
        if let Some(count) = domain.zip(counts).and_then(|(domain, counts)| counts.get_mut(&domain)) {
            count.add(u64::from(members), when);
        }
    }

    /// The count in the domain of a node, if it has one.
    fn here(&self, group: GroupId, node: NodeId) -> Option<Count> {
        self.counts.get(&group)?.get(&self.snapshot.groups.domain(group, node)?).copied()
    }

    fn judge(&self, id: JobId, part: &Part, firsts: &mut BTreeSet<RoleRule>) -> Result<(), Violation> {
        let shape = self.shape(id, part);
        for (index, rule) in shape.rules.iter().enumerate() {
            match rule {
                Rule::Apart(group) if !self.is_alone(*group, id, part) => {
                    return Err(Violation::AntiAffinityBroken(id, part.node));
                }
                Rule::Spread { group, .. } if self.excess(rule, *group, part.node) != Some(0) => {
                    return Err(Violation::SpreadBroken(id, part.node));
                }
                Rule::Together { groups, or_first } if !self.leans(groups, part.node, shape) => {
                    // Only one member can be the first of what it belongs to itself; the others lean on it.
                    let belongs = groups.iter().any(|group| shape.groups.contains(group));
                    let first = *or_first && groups.iter().all(|group| self.is_first(*group, part.node));
                    if !first || belongs && !firsts.insert((part.role, index)) {
                        return Err(Violation::AffinityBroken(id, part.node));
                    }
                }
                Rule::Apart(_) | Rule::Spread { .. } | Rule::Together { .. } => {}
            }
        }
        Ok(())
    }

    fn is_alone(&self, group: GroupId, id: JobId, part: &Part) -> bool {
        let Some(domain) = self.snapshot.groups.domain(group, part.node) else { return true };
        let stood = self.here(group, part.node).is_some_and(|count| count.before > 0);
        let comers = self.comers.get(&(group, domain)).into_iter().flatten();
        let disturb =
            |(other, there): &&(JobId, Part)| *other == id || self.are_mutual(id, part, *other, there);
        let beside: u64 = comers.filter(disturb).map(|(_, there)| u64::from(there.members)).sum();
        !stood && beside <= itself(group, self.shape(id, part))
    }

    /// Whether the other must be apart from this one, too.
    fn are_mutual(&self, id: JobId, part: &Part, other: JobId, there: &Part) -> bool {
        self.shape(other, there).rules.iter().any(|rule| match rule {
            Rule::Apart(group) if self.shape(id, part).groups.contains(group) => {
                let domain = |part: &Part| self.snapshot.groups.domain(*group, part.node);
                domain(part).is_some_and(|here| domain(there) == Some(here))
            }
            _ => false,
        })
    }

    fn leans(&self, groups: &[GroupId], node: NodeId, shape: &Shape) -> bool {
        let beside =
            |group: GroupId| self.here(group, node).is_some_and(|count| count.ever > itself(group, shape));
        groups.iter().all(|group| beside(*group))
    }

    /// Whether nobody of the group was in any domain before, and this node has one.
    fn is_first(&self, group: GroupId, node: NodeId) -> bool {
        let nobody =
            self.counts.get(&group).is_some_and(|counts| counts.values().all(|count| count.before == 0));
        nobody && self.here(group, node).is_some()
    }

    /// By how many a domain exceeds what a spread allows at most; `None` for a node without a domain.
    fn excess(&self, rule: &Rule, group: GroupId, node: NodeId) -> Option<u64> {
        let Rule::Spread { skew, own, least_domains, .. } = rule else { return None };
        let (stood, counts) = (self.here(group, node)?.before, &self.counts[&group]);
        let least = counts.values().map(|count| count.ever).min().unwrap_or(0);
        let least = if counts.len() < *least_domains as usize { 0 } else { least };
        Some((stood + u64::from(*own)).saturating_sub(least + u64::from(*skew)))
    }
}

/// What a member itself adds to the count of a group.
fn itself(group: GroupId, shape: &Shape) -> u64 {
    u64::from(shape.groups.contains(&group))
}

/// Where a job is planned or still is.
fn is_at(snapshot: &Snapshot<'_>, id: JobId, job: &Job) -> Vec<Arc<Assignment>> {
    let mut places = job.life.holds();
    if let Some(planned) = snapshot.plan.get(id).filter(|planned| !places.contains(planned)) {
        places.push(planned.clone());
    }
    places
}
