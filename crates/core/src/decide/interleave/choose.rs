//! The lanes in which jobs that meet are predicted to lose least.
//!
//! For each set of jobs that share links, a few ways to share them are tried on the predictor: nothing, weights by what
//! each has sent, classes by what each has left, the same inside priorities, and priorities alone. The one is taken in
//! which they lose least together, each counted by its priority, if
//!
//! - that is noticeably less than if nothing is done;
//! - nobody is slowed down beyond a bound who would not be so anyhow: whoever is, is promoted first; and
//! - nobody of the highest priority loses by it.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::decide::foresee::{counts, is_first};
use crate::id::JobId;
use crate::job::Job;
use crate::lane::{Lane, Rule};
use crate::meetings::Flow;

/// What is to be won by lanes, as a part of what is lost without, for it to be worth the while.
const LEAST_GAIN: f64 = 0.05;

/// Nobody is to be slowed down further than this for the sake of others.
const MOST_SLOWDOWN: f64 = 1.3;

/// How often somebody is promoted before a way to share is given up.
const PROMOTIONS: usize = 2;

/// Predictions are not better than this.
const BLUR: f64 = 0.005;

/// Classes that are left above for those who are promoted.
const ABOVE: u8 = PROMOTIONS as u8;

pub(super) fn lanes(draft: &Draft<'_>) -> BTreeMap<JobId, Lane> {
    let mut lanes = BTreeMap::new();
    for jobs in draft.meetings.components() {
        let chosen = Choice::among(draft, &jobs).best();
        let named = jobs.into_iter().zip(chosen);
        lanes.extend(named.filter(|(_, lane)| !lane.is_default()));
    }
    lanes
}

struct Choice<'d> {
    draft: &'d Draft<'d>,
    jobs: Vec<&'d Job>,
    flows: Vec<&'d Flow>,
}

/// Lanes, and how much slower than alone each is in them.
struct Tried {
    lanes: Vec<Lane>,
    slowdowns: Vec<f64>,
}

impl<'d> Choice<'d> {
    fn among(draft: &'d Draft<'d>, jobs: &[JobId]) -> Self {
        let flows = jobs.iter().filter_map(|job| draft.meetings.flow(*job)).collect();
        let jobs = jobs.iter().map(|job| &draft.snapshot.jobs[*job]).collect();
        Self { draft, jobs, flows }
    }

    fn best(&self) -> Vec<Lane> {
        let fair = self.attempt(|_| Lane::default());
        if self.loss(&fair) <= BLUR * self.jobs.len() as f64 {
            return fair.lanes;
        }
        let ways = [weighted, classes, tiers, tiers_of_classes];
        let tried = ways.into_iter().map(|way| self.promote(self.attempt(|job| way(self.tier(job))), &fair));
        let sound = tried.filter(|tried| self.is_sound(tried, &fair));
        let best = sound.min_by(|one, other| self.loss(one).total_cmp(&self.loss(other)));
        let pays = |tried: &Tried| self.loss(tried) < (1.0 - LEAST_GAIN) * self.loss(&fair);
        best.filter(pays).unwrap_or(fair).lanes
    }

    fn attempt(&self, lane: impl Fn(&Job) -> Lane) -> Tried {
        self.predict(self.jobs.iter().map(|job| lane(job)).collect())
    }

    fn predict(&self, lanes: Vec<Lane>) -> Tried {
        let in_lanes: Vec<(&Flow, Lane)> = self.flows.iter().copied().zip(lanes.iter().copied()).collect();
        Tried { slowdowns: self.draft.meetings.slowdowns_in_lanes(&in_lanes), lanes }
    }

    /// Moves whoever suffers most one class up, until nobody suffers too much.
    fn promote(&self, mut tried: Tried, fair: &Tried) -> Tried {
        for _ in 0..PROMOTIONS {
            let suffers = (0..self.jobs.len()).filter(|job| tried.suffers(*job, fair));
            let most = suffers.max_by(|one, other| tried.slowdowns[*one].total_cmp(&tried.slowdowns[*other]));
            let Some(job) = most.filter(|job| tried.lanes[*job].class > 0) else { return tried };
            let mut lanes = tried.lanes;
            lanes[job].class -= 1;
            tried = self.predict(lanes);
        }
        tried
    }

    fn is_sound(&self, tried: &Tried, fair: &Tried) -> bool {
        let spares = |at: usize| !is_first(self.draft.snapshot, self.jobs[at]) || !tried.is_slower(at, fair);
        (0..self.jobs.len()).all(|at| !tried.suffers(at, fair) && spares(at))
    }

    /// What all lose, each counted by its priority.
    fn loss(&self, tried: &Tried) -> f64 {
        let each = self.jobs.iter().zip(&tried.slowdowns);
        each.map(|(job, slowdown)| counts(self.draft.snapshot, job) * (slowdown - 1.0)).sum()
    }

    /// How many priorities that are present are higher than a job's.
    fn tier(&self, job: &Job) -> u8 {
        let higher = self.draft.snapshot.priorities.keys().filter(|other| **other > job.spec.priority);
        u8::try_from(higher.count()).unwrap_or(u8::MAX)
    }
}

impl Tried {
    fn is_slower(&self, at: usize, than: &Self) -> bool {
        self.slowdowns[at] > than.slowdowns[at] + BLUR
    }

    fn suffers(&self, at: usize, without: &Self) -> bool {
        self.slowdowns[at] > MOST_SLOWDOWN && self.is_slower(at, without)
    }
}

fn weighted(_tier: u8) -> Lane {
    Lane { rule: Rule::BytesSent, ..Lane::default() }
}

fn classes(_tier: u8) -> Lane {
    Lane { class: ABOVE, rule: Rule::FewestLeft, ..Lane::default() }
}

fn tiers(tier: u8) -> Lane {
    Lane { class: ABOVE.saturating_add(tier), ..Lane::default() }
}

/// The highest priority before all others, and in each of the two whoever has least left to send.
fn tiers_of_classes(tier: u8) -> Lane {
    Lane { class: ABOVE + 3 * tier.min(1), ..classes(tier) }
}
