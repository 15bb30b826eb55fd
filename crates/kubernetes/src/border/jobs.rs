//! The engine's jobs as far as rules see them: of which kinds their roles are, and what they keep in use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::model::id::{GroupId, JobId};
use metronome_core::model::job::Shape;

use super::Border;
use super::kinds::{KindId, RoleOf};
use super::pool::Hold;
use super::shape::Facts;
use super::wire::Wire;
use crate::rules::storage::ClaimKey;
use crate::rules::terms::Term;
use crate::rules::traits::Question;

/// What the members of a role ask for, as of when it was asked. It keeps the groups it names in use.
#[derive(Clone, Debug)]
pub struct Shaped {
    pub shape: Shape,
    pub(super) holds: Vec<Hold<GroupId>>,
}

/// A role of a job: what its members ask for, and the pods they are.
#[derive(Clone, Debug)]
pub struct Cast {
    pub shaped: Shaped,
    pub members: Vec<Arc<Facts>>,
}

impl Cast {
    /// A role that is no pod of its own: what one may be given beside what it takes anyhow.
    pub fn of_no_pod(shape: Shape) -> Self {
        Self { shaped: Shaped { shape, holds: Vec::new() }, members: Vec::new() }
    }
}

#[derive(Debug, Default)]
pub(super) struct Jobs {
    jobs: BTreeMap<JobId, Joined>,
    /// Jobs whose shapes say no longer all they should.
    pub(super) outdated: BTreeSet<JobId>,
}

#[derive(Debug)]
struct Joined {
    roles: Vec<Vec<Arc<Facts>>>,
    holds: Vec<Hold<GroupId>>,
}

impl Joined {
    /// The kinds of pods in each role.
    fn kinds(&self) -> impl Iterator<Item = (u8, KindId)> {
        let roles = (0u8..).zip(&self.roles);
        let kinds = |members: &Vec<Arc<Facts>>| members.iter().map(|facts| facts.kind.id()).collect();
        roles.flat_map(move |(role, members)| {
            let kinds: BTreeSet<KindId> = kinds(members);
            kinds.into_iter().map(move |kind| (role, kind))
        })
    }

    fn claims(&self) -> Vec<ClaimKey> {
        self.roles.iter().flatten().flat_map(|facts| &facts.uses).map(|used| used.claim.clone()).collect()
    }
}

impl Jobs {
    /// These jobs belong to the group, and so it stays.
    pub(super) fn keep(&mut self, jobs: impl Iterator<Item = JobId>, hold: &Hold<GroupId>) {
        for job in jobs {
            if let Some(joined) = self.jobs.get_mut(&job) {
                joined.holds.push(hold.clone());
            }
        }
    }
}

impl Border {
    pub(super) fn joined(&mut self, wire: &mut Wire<'_>, job: JobId, roles: Vec<Cast>) {
        self.left(wire, job);
        let mut joined = Joined { roles: Vec::new(), holds: Vec::new() };
        for cast in roles {
            joined.roles.push(cast.members);
            joined.holds.extend(cast.shaped.holds);
        }
        let kinds: Vec<(u8, KindId)> = joined.kinds().collect();
        let claims = joined.claims();
        self.jobs.jobs.insert(job, joined);
        for (role, kind) in kinds {
            self.kinds.kind_mut(kind).roles.insert((job, role));
            self.catch_up(wire, (job, role), kind);
        }
        for claim in claims {
            self.find_where_jobs_use(wire, &claim);
        }
    }

    /// What is attached for a job where it is placed counts once, with the job.
    pub(super) fn find_where_jobs_use(&mut self, wire: &Wire<'_>, claim: &ClaimKey) {
        let kinds = self.kinds.candidates(&Question::Uses(claim.clone()));
        let jobs = kinds.iter().flat_map(|kind| &self.kinds.kind(*kind).roles).map(|(job, _)| *job);
        let placed = jobs.filter_map(|job| wire.engine.plan().get(job));
        let nodes = placed.flat_map(|held| held.nodes().map(|node| self.nodes.name(node).to_string()));
        let nodes = nodes.collect();
        self.storage.used_by_jobs(claim, nodes);
    }

    /// Groups may have come up since the shape of a role was made.
    fn catch_up(&mut self, wire: &mut Wire<'_>, (job, role): RoleOf, kind: KindId) {
        let spec = wire.engine.job(job).and_then(|job| job.spec.roles.get(usize::from(role)));
        let Some(known) = spec.map(|role| role.shape.groups.clone()) else { return };
        let all = self.kinds.kind(kind).groups.iter();
        let missing: Vec<GroupId> = all.filter(|group| !known.contains(group)).copied().collect();
        for group in missing {
            self.enlist(wire, group, BTreeSet::from([(job, role)]));
        }
    }

    pub(super) fn left(&mut self, wire: &Wire<'_>, job: JobId) {
        self.jobs.outdated.remove(&job);
        let Some(joined) = self.jobs.jobs.remove(&job) else { return };
        for (role, kind) in joined.kinds() {
            self.kinds.kind_mut(kind).roles.remove(&(job, role));
        }
        for claim in joined.claims() {
            self.find_where_jobs_use(wire, &claim);
        }
    }

    /// A term is carried by somebody for the first time: the jobs it is about do not know yet.
    pub(super) fn repelled(&mut self, term: &Term) {
        let question = Question::among([term.pods.clone()]);
        for kind in self.kinds.candidates(&question) {
            if self.holds(&question, kind) {
                self.jobs.outdated.extend(self.kinds.kind(kind).roles.iter().map(|(job, _)| *job));
            }
        }
    }

    /// A claim means something else now to those who use it.
    pub(super) fn used_otherwise(&mut self, claim: &ClaimKey) {
        for kind in self.kinds.candidates(&Question::Uses(claim.clone())) {
            self.jobs.outdated.extend(self.kinds.kind(kind).roles.iter().map(|(job, _)| *job));
        }
    }

    /// Jobs with pods in this namespace.
    pub(super) fn jobs_in(&self, namespace: &str) -> BTreeSet<JobId> {
        let kinds = self.kinds.in_namespace(namespace);
        kinds.flat_map(|kind| &self.kinds.kind(kind).roles).map(|(job, _)| *job).collect()
    }
}
