//! For each set of jobs that share links, the lanes in which they are predicted to lose least.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::decide::foresee::{counts, is_first};
use crate::id::JobId;
use crate::job::Job;
use crate::lane::Lane;
use crate::lane::choose::{Stake, choose_with};
use crate::lane::pace::{Beating, paced};
use crate::meetings::Flow;

pub(super) fn lanes(draft: &Draft<'_>) -> BTreeMap<JobId, Lane> {
    let mut lanes = BTreeMap::new();
    for jobs in draft.meetings.components() {
        let chosen = lanes_of(draft, &jobs);
        let named = jobs.into_iter().zip(chosen);
        lanes.extend(named.filter(|(_, lane)| !lane.is_default()));
    }
    lanes
}

fn lanes_of(draft: &Draft<'_>, jobs: &[JobId]) -> Vec<Lane> {
    let flows: Vec<&Flow> = jobs.iter().filter_map(|job| draft.meetings.flow(*job)).collect();
    let stakes: Vec<Stake> = jobs.iter().map(|job| stake(draft, &draft.snapshot.jobs[*job])).collect();
    let turns = |slowdowns: &[f64]| {
        let all = flows.iter().zip(&stakes).zip(slowdowns);
        let beating = |((flow, stake), slowdown): ((&&Flow, &Stake), &f64)| Beating {
            period: flow.alone,
            sends: draft.meetings.sends(flow),
            links: draft.meetings.demands(flow),
            tier: stake.tier,
            slowdown: *slowdown,
        };
        paced(&all.map(beating).collect::<Vec<Beating>>())
    };
    choose_with(&stakes, turns, |lanes| {
        let in_lanes: Vec<(&Flow, Lane)> = flows.iter().copied().zip(lanes.iter().copied()).collect();
        draft.meetings.slowdowns_in_lanes(&in_lanes)
    })
}

fn stake(draft: &Draft<'_>, job: &Job) -> Stake {
    let snapshot = draft.snapshot;
    let higher = snapshot.priorities.keys().filter(|other| **other > job.spec.priority).count();
    Stake {
        counts: counts(snapshot, job),
        tier: u8::try_from(higher).unwrap_or(u8::MAX),
        is_first: is_first(snapshot, job),
    }
}
