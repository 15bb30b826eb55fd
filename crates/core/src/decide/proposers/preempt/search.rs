//! The victims of one job: enough victims first, then only those that it cannot do without.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::victim::Victim;
use crate::decide::draft::Draft;
use crate::decide::member_fits::Fits;
use crate::decide::placement;
use crate::decide::preemption_rules::loss;
use crate::decide::view::View;
use crate::model::id::NodeId;
use crate::model::job::{Job, Rule};
use crate::model::plan::Assignment;
use crate::model::units::Resources;

/// The search for victims of one job.
pub(super) struct Search<'s, 'a> {
    pub(super) view: &'s View<'a>,
    pub(super) draft: &'s Draft<'a>,
    pub(super) job: &'a Job,
}

impl<'a> Search<'_, 'a> {
    /// Releases victims until the job fits, one level of priority after another, and those that yield for gain one by
    /// one; returns those that lie in its way there.
    pub(super) fn widen(&self, candidates: &[Victim<'a>]) -> Option<Vec<Victim<'a>>> {
        let mut trial = self.draft.trial();
        let counted = Fits::of(self.job);
        let mut fit = counted.map(|fits| fits.everywhere(&trial));
        let mut gone = 0;
        for level in candidates.chunk_by(|one, next| !next.for_gain && one.priority == next.priority) {
            for victim in level {
                let before = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
                trial.release(victim.job, &victim.assignment);
                let after = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
                fit = fit.map(|fit| fit - before + after);
            }
            gone += level.len();
            let may_fit = counted.is_none_or(|fits| fit.is_some_and(|fit| fit >= fits.wanted));
            if let Some(assignment) = may_fit.then(|| self.place(&mut trial)).flatten() {
                // Where the unused quotas of other queues are what is lacking, nodes do not matter.
                let lacks_a_place = self.leaves_unlent_quota(self.draft);
                let in_the_way =
                    |victim: &&Victim<'a>| !lacks_a_place || self.is_in_the_way(victim, &assignment);
                return Some(candidates[..gone].iter().filter(in_the_way).cloned().collect());
            }
        }
        None
    }

    /// Where the job fits in a trial, which stays as it was.
    fn place(&self, trial: &mut Draft<'a>) -> Option<Assignment> {
        if !self.leaves_unlent_quota(trial) {
            return None;
        }
        placement::fit_released(self.view, trial, self.job)
    }

    fn leaves_unlent_quota(&self, trial: &Draft<'_>) -> bool {
        let spec = &self.job.spec;
        self.view.leaves_unlent_quota(self.draft, spec.queue, spec.least(), trial.total())
    }

    /// Whether a victim lies on one of the nodes, or counts in a group that the job's rules look at.
    fn is_in_the_way(&self, victim: &Victim<'_>, assignment: &Assignment) -> bool {
        let watched = self.job.spec.roles.iter().flat_map(|role| &*role.shape.rules).flat_map(Rule::groups);
        let counts = |group| victim.job.spec.roles.iter().any(|role| role.shape.groups.contains(group));
        victim.assignment.nodes().any(|node| assignment.touches(node)) || watched.into_iter().any(counts)
    }

    /// Gives back the victims that the job can do without, and places it without the rest.
    pub(super) fn prune(&self, mut victims: Vec<Victim<'a>>) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let mut trial = self.draft.trial();
        victims.iter().for_each(|victim| trial.release(victim.job, &victim.assignment));
        // The victims that remain lose least: few large gangs rather than many small ones, those with most left to do.
        let snapshot = self.view.snapshot;
        victims.sort_unstable_by_key(|victim| {
            let left = victim.job.remaining(snapshot.now);
            let cost = (Reverse(victim.priority), Reverse(loss(victim.job, snapshot.now)));
            (cost, !victim.for_gain, victim.assignment.members(), left, victim.job.runs_since, victim.id)
        });
        let counted = Fits::of(self.job);
        let mut fit = counted.map(|fits| fits.everywhere(&trial));
        victims.retain(|victim| {
            let before = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
            trial.reclaim(victim.job, &victim.assignment);
            let after = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
            let needed = match (fit, counted) {
                _ if !self.leaves_unlent_quota(&trial) => true,
                (Some(fit), Some(fits)) => fit - before + after < fits.wanted,
                _ => self.place(&mut trial).is_none(),
            };
            if needed {
                trial.release(victim.job, &victim.assignment);
            } else {
                fit = fit.map(|fit| fit - before + after);
            }
            needed
        });
        Some((victims, self.place(&mut trial)?))
    }
}

/// Whether the nodes of these victims, once they have left, take too few members: told by amounts alone, without a
/// trial.
pub(super) fn has_too_few_places(draft: &Draft<'_>, job: &Job, gone: &[Victim<'_>]) -> bool {
    let (Some(fits), Some(shape)) = (Fits::of(job), job.shapes.first()) else { return false };
    let mut freed: BTreeMap<NodeId, Resources> = BTreeMap::new();
    for (node, held) in gone.iter().flat_map(|victim| victim.assignment.takes()) {
        let sum = freed.entry(*node).or_default();
        *sum = *sum + *held;
    }
    let more = freed.into_iter().map(|(node, freed)| fits.at_most_more(draft, node, freed));
    draft.fits(*shape).saturating_add(more.sum()) < fits.wanted
}
