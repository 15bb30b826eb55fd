//! What a decision about traffic policies depends on, and how that differs from the last decision.

use super::draft::Draft;
use super::link_cost::{is_first, priority_weight};
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::units::Instant;
use crate::traffic::choose::Stake;
use crate::traffic::contention_graph::ContentionGraph;
use crate::traffic::decision_inputs::{DecisionInputs, Party, Why};

/// Sets of jobs that share links; a job that shares none is a set of its own.
pub(super) fn groups(contention: &ContentionGraph) -> Vec<Vec<JobId>> {
    let mut groups = contention.components();
    let mut met: Vec<JobId> = groups.iter().flatten().copied().collect();
    met.sort_unstable();
    let alone = |job: &JobId| met.binary_search(job).is_err();
    let flows = contention.flows().filter(|(_, flow)| !flow.is_local()).map(|(job, _)| job);
    groups.extend(flows.filter(alone).map(|job| vec![job]));
    groups
}

/// The inputs of a decision about a set of jobs.
pub(super) fn ground(draft: &Draft<'_>, jobs: &[JobId]) -> DecisionInputs {
    let party = |job: &JobId| {
        let stake = stake(draft, &draft.snapshot.jobs[*job]);
        Party {
            job: *job,
            does: draft.contention.flow(*job).map_or(0, |flow| flow.fingerprint),
            counts: (stake.counts * 1e3) as u32,
            tier: stake.tier,
            is_harmed: draft.snapshot.jobs[*job].slower_than_fair.is_some(),
        }
    };
    let flows = jobs.iter().filter_map(|job| draft.contention.flow(*job));
    let links = flows.flat_map(|flow| flow.route.links());
    let mut rates: Vec<_> = links.map(|(link, _)| (*link, draft.contention.rate(*link))).collect();
    rates.sort_unstable();
    rates.dedup();
    DecisionInputs { jobs: jobs.iter().map(party).collect(), rates, changed: None }
}

/// What a job has at stake on links, for the choice of traffic policies.
pub(super) fn stake(draft: &Draft<'_>, job: &Job) -> Stake {
    let snapshot = draft.snapshot;
    let higher = snapshot.priorities.keys().filter(|other| **other > job.spec.priority).count();
    Stake {
        counts: priority_weight(snapshot, job),
        tier: u8::try_from(higher).unwrap_or(u8::MAX),
        is_first: is_first(snapshot, job),
    }
}

/// The inputs of the last decision, by job.
pub(super) struct Last<'a> {
    decision_inputs: &'a [DecisionInputs],
    /// The index of the inputs of each job, in order of job.
    about: Vec<(JobId, usize)>,
}

impl<'a> Last<'a> {
    pub(super) fn of(decision_inputs: &'a [DecisionInputs]) -> Self {
        let each = decision_inputs.iter().enumerate();
        let mut about: Vec<(JobId, usize)> =
            each.flat_map(|(at, ground)| ground.jobs.iter().map(move |party| (party.job, at))).collect();
        about.sort_unstable();
        Self { decision_inputs, about }
    }

    pub(super) fn about(&self, jobs: &[JobId]) -> Before<'a> {
        let mut found: Vec<usize> = jobs.iter().flat_map(|job| self.places(*job)).collect();
        found.sort_unstable();
        found.dedup();
        Before(found.into_iter().map(|at| &self.decision_inputs[at]).collect())
    }

    fn places(&self, job: JobId) -> impl Iterator<Item = usize> {
        let from = self.about.partition_point(|(other, _)| *other < job);
        self.about[from..].iter().take_while(move |(other, _)| *other == job).map(|(_, at)| *at)
    }
}

/// The inputs of the last decision about the jobs that meet now.
pub(super) struct Before<'a>(Vec<&'a DecisionInputs>);

impl<'a> Before<'a> {
    pub(super) fn decision_inputs(&self) -> &[&'a DecisionInputs] {
        &self.0
    }

    /// When traffic policies among them were last changed.
    pub(super) fn changed(&self) -> Option<Instant> {
        self.0.iter().filter_map(|ground| ground.changed).max()
    }

    pub(super) fn is_still(&self, now: &DecisionInputs) -> bool {
        matches!(self.0[..], [before] if before.is_still(now))
    }

    fn party(&self, job: JobId) -> Option<&'a Party> {
        self.0.iter().find_map(|ground| ground.party(job))
    }
}

/// The first difference: links, then harm, then profiles, then arrivals, then departures.
pub(super) fn why(draft: &Draft<'_>, before: &Before<'_>, now: &DecisionInputs) -> Why {
    link(before, now)
        .or_else(|| harmed(before, now))
        .or_else(|| measured(draft, before, now))
        .or_else(|| came(draft, before, now))
        .or_else(|| left(draft, before, now))
        .unwrap_or(Why::Priorities)
}

fn link(before: &Before<'_>, now: &DecisionInputs) -> Option<Why> {
    now.rates.iter().find_map(|(link, is)| {
        let was = before.0.iter().find_map(|ground| ground.rate(*link)).filter(|was| was != is)?;
        Some(Why::Link { link: *link, was, is: *is })
    })
}

fn harmed(before: &Before<'_>, now: &DecisionInputs) -> Option<Why> {
    let is_new =
        |party: &&Party| party.is_harmed && !before.party(party.job).is_some_and(|was| was.is_harmed);
    now.jobs.iter().find(is_new).map(|party| Why::SlowerThanFair { job: party.job })
}

fn measured(draft: &Draft<'_>, before: &Before<'_>, now: &DecisionInputs) -> Option<Why> {
    let other = |party: &&Party| before.party(party.job).is_some_and(|was| was.does != party.does);
    let job = now.jobs.iter().find(other)?.job;
    Some(match draft.snapshot.jobs[job].times_measured {
        0 | 1 => Why::Profile { job },
        _ => Why::Drift { job },
    })
}

/// A job that was not among them before, or comes from another place.
fn came(draft: &Draft<'_>, before: &Before<'_>, now: &DecisionInputs) -> Option<Why> {
    let new = |job: &JobId| before.party(*job).is_none() || draft.assigned(*job).is_some();
    let mut jobs = now.jobs.iter().map(|party| party.job).rev();
    jobs.find(new).map(|job| Why::Arrival { job })
}

/// A job that is no longer among them; its departure may also have separated other jobs.
fn left(draft: &Draft<'_>, before: &Before<'_>, now: &DecisionInputs) -> Option<Why> {
    let gone = before.0.iter().flat_map(|ground| &ground.jobs).map(|party| party.job);
    let gone = gone.filter(|job| !now.has(*job));
    gone.min_by_key(|job| (draft.contention.flow(*job).is_some(), *job)).map(|job| Why::Departure { job })
}

/// Why a job is moved: what has changed on its route, or else that a better place is free.
pub(super) fn why_moved(draft: &Draft<'_>, job: JobId) -> Why {
    let decision_inputs = draft.snapshot.decision_inputs.iter();
    let before = Before(decision_inputs.filter(|ground| ground.has(job)).collect());
    let now = ground(draft, &[job]);
    link(&before, &now).or_else(|| measured(draft, &before, &now)).unwrap_or(Why::Room)
}
