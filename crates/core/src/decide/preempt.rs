//! Whose place a job may take.
//!
//! Victims are running jobs of strictly lower priority that allow it, whole gangs only. Those of the lowest priority
//! are thought away first, level by level, until the job fits; of those on whose nodes it then lies, each is given
//! back whom it can do without, the highest priority first. What is left is as few as will do: with any one of them
//! back, the job would not fit. Strictly lower priority is why two jobs never take each other's place in turn.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::admit::Rules;
use super::draft::{Draft, Reach};
use super::place::too_little_room;
use crate::id::{BudgetId, IdVec, JobId};
use crate::job::{Job, Life, Priority, Rule, Shape, Topology};
use crate::plan::Assignment;
use crate::snapshot::Snapshot;

/// A cycle gives up after so many searches that found nobody: each looks at every node.
const MOST_SEARCHES_IN_VAIN: usize = 100;

/// How often victims are chosen anew because those chosen share a budget that allows fewer.
const MOST_CHOICES: usize = 8;

pub(super) struct Victims<'a> {
    /// The lowest priority first.
    running: Vec<Victim<'a>>,
    /// How many members may still be evicted on account of each budget.
    left: IdVec<BudgetId, u32>,
    /// The draft without everybody below a priority: what does not fit there needs no closer look.
    without_all: Option<(Priority, Draft<'a>)>,
    in_vain: usize,
}

#[derive(Clone, Copy)]
struct Victim<'a> {
    priority: Priority,
    id: JobId,
    job: &'a Job,
    assignment: &'a Arc<Assignment>,
}

impl<'a> Victims<'a> {
    pub(super) fn of(snapshot: &'a Snapshot<'a>) -> Self {
        let planned = snapshot.plan.iter().map(|(id, assignment)| (id, &snapshot.jobs[id], assignment));
        let settled = planned.filter(|(_, job, assignment)| may_be_stopped(snapshot, job, assignment));
        let mut running: Vec<Victim<'a>> = settled
            .map(|(id, job, assignment)| Victim { priority: job.spec.priority, id, job, assignment })
            .collect();
        running.sort_unstable_by_key(|victim| (victim.priority, victim.id));
        let mut left = snapshot.budgets.clone();
        for job in snapshot.displaced.keys().filter_map(|id| snapshot.jobs.get(*id)) {
            let members = job.life.holds().iter().map(|held| held.members()).sum();
            spend(&mut left, job, members);
        }
        Self { running, left, without_all: None, in_vain: 0 }
    }

    /// Tells those to leave whose place a job may take, and gives it to it; false if there are none.
    pub(super) fn make_room(&mut self, rules: &Rules<'a>, draft: &mut Draft<'a>, id: JobId) -> bool {
        let job = &rules.snapshot.jobs[id];
        // Those who left for it already may yet be enough.
        let awaited = rules.snapshot.displaced.values().any(|beneficiary| *beneficiary == id);
        if !job.spec.preempts || awaited || rules.quota_allows(draft, job).is_err() {
            return false;
        }
        let Some((victims, assignment)) = self.choose(rules, draft, job) else { return false };
        for victim in &victims {
            draft.evict(victim.id, victim.job.spec.queue, victim.assignment);
            draft.report.displaced.push((victim.id, id));
            spend(&mut self.left, victim.job, victim.assignment.members());
        }
        let gone: BTreeSet<JobId> = victims.iter().map(|victim| victim.id).collect();
        self.running.retain(|victim| !gone.contains(&victim.id));
        self.without_all = None;
        draft.settle(id, job, assignment);
        true
    }

    fn choose(
        &mut self,
        rules: &Rules<'a>,
        draft: &Draft<'a>,
        job: &'a Job,
    ) -> Option<(Vec<Victim<'a>>, Assignment)> {
        if !self.would_all_do(rules, draft, job) {
            return None;
        }
        let mut spared = BTreeSet::new();
        for _ in 0..MOST_CHOICES {
            let search = Search { rules, draft, job };
            let wide = search.widen(&self.candidates(job, &spared))?;
            let (victims, assignment) = search.prune(wide)?;
            match self.past_budget(&victims) {
                Some(id) => spared.insert(id),
                None => return Some((victims, assignment)),
            };
        }
        None
    }

    /// Whether the job would fit if everybody left who might. Jobs of one priority share the answer's costly part.
    fn would_all_do(&mut self, rules: &Rules<'a>, draft: &Draft<'a>, job: &'a Job) -> bool {
        let priority = job.spec.priority;
        if self.in_vain >= MOST_SEARCHES_IN_VAIN
            || self.running.first().is_none_or(|one| one.priority >= priority)
        {
            return false;
        }
        if self.without_all.as_ref().is_none_or(|(shared, _)| *shared != priority) {
            let mut trial = draft.trial();
            let candidates = self.candidates(job, &BTreeSet::new());
            candidates.iter().for_each(|victim| trial.release(victim.job, victim.assignment));
            self.without_all = Some((priority, trial));
        }
        let (_, trial) = self.without_all.as_mut().expect("it was just made");
        if too_little_room(trial, job, rules.sizes).is_some() {
            return false;
        }
        let mark = trial.mark();
        let fits = rules.placer.place(trial, job, rules.sizes, Reach::Claimed).is_ok();
        trial.rollback(mark);
        self.in_vain += usize::from(!fits);
        fits
    }

    /// Those below the job's priority whom no budget protects, but for the spared.
    fn candidates(&self, job: &Job, spared: &BTreeSet<JobId>) -> Vec<Victim<'a>> {
        let below = self.running.iter().take_while(|victim| victim.priority < job.spec.priority);
        let allowed = |victim: &&Victim<'_>| {
            let members = victim.assignment.members();
            let budgets = victim.job.spec.budgets.iter();
            budgets.map(|budget| self.left(*budget)).all(|left| members <= left)
        };
        below.filter(|victim| !spared.contains(&victim.id)).filter(allowed).copied().collect()
    }

    fn left(&self, budget: BudgetId) -> u32 {
        self.left.get(budget).copied().unwrap_or(0)
    }

    /// Somebody among the victims who is one too many for a budget they share; the last of them.
    fn past_budget(&self, victims: &[Victim<'_>]) -> Option<JobId> {
        let mut left = self.left.clone();
        victims.iter().find_map(|victim| {
            let members = victim.assignment.members();
            let budgets = victim.job.spec.budgets.iter();
            let short = budgets.filter_map(|budget| left.get(*budget)).any(|left| *left < members);
            spend(&mut left, victim.job, members);
            short.then_some(victim.id)
        })
    }
}

/// Whether a planned job runs where it is planned, has done so long enough, and lets itself be stopped.
fn may_be_stopped(snapshot: &Snapshot<'_>, job: &Job, assignment: &Arc<Assignment>) -> bool {
    let runs = matches!(&job.life, Life::Running(held) if held == assignment);
    let ripe = job.ripe(snapshot.min_run).is_none_or(|ripe| ripe <= snapshot.now);
    runs && ripe && job.spec.capabilities.makes_room() && job.not_before <= snapshot.now
}

fn spend(left: &mut IdVec<BudgetId, u32>, job: &Job, members: u32) {
    for budget in &job.spec.budgets {
        if let Some(left) = left.get_mut(*budget) {
            *left = left.saturating_sub(members);
        }
    }
}

/// One job looking for whose place to take.
struct Search<'s, 'a> {
    rules: &'s Rules<'a>,
    draft: &'s Draft<'a>,
    job: &'a Job,
}

impl<'a> Search<'_, 'a> {
    /// Thinks victims away, one level of priority after another, until the job fits; returns those among them that
    /// lie in its way there.
    fn widen(&self, candidates: &[Victim<'a>]) -> Option<Vec<Victim<'a>>> {
        let mut trial = self.draft.trial();
        for level in candidates.chunk_by(|one, next| one.priority == next.priority) {
            level.iter().for_each(|victim| trial.release(victim.job, victim.assignment));
            if let Some(assignment) = self.place(&mut trial) {
                let last = level.last().map(|victim| victim.priority);
                let gone = candidates.iter().filter(|victim| Some(victim.priority) <= last);
                return Some(
                    gone.filter(|victim| self.is_in_the_way(victim, &assignment)).copied().collect(),
                );
            }
        }
        None
    }

    /// Where the job fits in a trial, which stays as it was.
    fn place(&self, trial: &mut Draft<'a>) -> Option<Assignment> {
        trial.forget_fits();
        let mark = trial.mark();
        let placed = self.rules.placer.place(trial, self.job, self.rules.sizes, Reach::Claimed).ok();
        trial.rollback(mark);
        placed
    }

    /// Whether a victim lies on one of the nodes, or counts in a group that the job's rules look at.
    fn is_in_the_way(&self, victim: &Victim<'_>, assignment: &Assignment) -> bool {
        let watched = self.job.spec.roles.iter().flat_map(|role| &*role.shape.rules).flat_map(Rule::groups);
        let counts = |group| victim.job.spec.roles.iter().any(|role| role.shape.groups.contains(group));
        victim.assignment.nodes().any(|node| assignment.touches(node)) || watched.into_iter().any(counts)
    }

    /// Gives back whom the job can do without, and places it with the rest gone.
    fn prune(&self, mut victims: Vec<Victim<'a>>) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let mut trial = self.draft.trial();
        victims.iter().for_each(|victim| trial.release(victim.job, victim.assignment));
        // Few large gangs are left rather than many small ones, and those that have run shortest.
        victims.sort_unstable_by_key(|victim| {
            (Reverse(victim.priority), victim.assignment.members(), victim.job.runs_since, victim.id)
        });
        let mut fit = self.fit(&trial);
        victims.retain(|victim| {
            let before = self.fit_around(&trial, victim);
            trial.reclaim(victim.job, victim.assignment);
            let after = self.fit_around(&trial, victim);
            let needed = match fit {
                Some(fit) => fit - before + after < u64::from(self.job.spec.members()),
                None => self.place(&mut trial).is_none(),
            };
            if needed {
                trial.release(victim.job, victim.assignment);
            } else {
                fit = fit.map(|fit| fit - before + after);
            }
            needed
        });
        Some((victims, self.place(&mut trial)?))
    }

    /// How many members fit in all, where that alone decides whether the job does.
    fn fit(&self, trial: &Draft<'a>) -> Option<u64> {
        let shape = self.counted_shape()?;
        let nodes = self.rules.snapshot.cluster.nodes().ids();
        Some(nodes.map(|node| u64::from(trial.fit_on(node, shape, Reach::Claimed))).sum())
    }

    /// The same, on the nodes of one victim.
    fn fit_around(&self, trial: &Draft<'a>, victim: &Victim<'_>) -> u64 {
        let fit = |shape| {
            let nodes = victim.assignment.nodes();
            nodes.map(|node| u64::from(trial.fit_on(node, shape, Reach::Claimed))).sum()
        };
        self.counted_shape().map_or(0, fit)
    }

    fn counted_shape(&self) -> Option<&'a Shape> {
        let [role] = &self.job.spec.roles[..] else { return None };
        let anywhere = !matches!(self.job.spec.topology, Topology::Required(_));
        (anywhere && role.shape.rules.is_empty()).then_some(&role.shape)
    }
}
