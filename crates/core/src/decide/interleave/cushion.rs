//! Shifts in the order of priorities: each job finds its place on the circle among those before it, and a cushion after
//! each burst keeps what comes a little late from colliding.
//!
//! Where a job is follows from those of higher priority, and of equal priority that came before, and from nobody else:
//! so nobody is shifted for the sake of a lower priority. Everybody who sends over links has a turn from its start, with
//! or without others, so that it need not be held when they come; it is watched where there is somebody to collide with.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::rotate::watched;
use crate::decide::draft::Draft;
use crate::id::{JobId, LinkId};
use crate::lane::circle::{Circle, Pulse};
use crate::lane::{Lane, Turn};
use crate::meetings::Flow;
use crate::units::Duration;

pub(super) fn turns(draft: &Draft<'_>) -> BTreeMap<JobId, Lane> {
    let mut jobs: Vec<(JobId, &Flow)> = draft.meetings.flows().filter(|(_, flow)| !flow.is_local()).collect();
    jobs.sort_by_key(|(job, _)| (Reverse(draft.snapshot.jobs[*job].spec.priority), *job));
    let mut placed: BTreeMap<JobId, (Pulse, Duration)> = BTreeMap::new();
    for (job, flow) in &jobs {
        let pulse = draft.meetings.pulse(flow).cushioned();
        let offset = among(draft, &placed, flow, &pulse);
        placed.insert(*job, (pulse, offset));
    }
    let lane = |(job, flow): (JobId, &Flow)| (job, lane(draft, job, flow, placed[&job].1));
    jobs.into_iter().map(lane).collect()
}

/// Where a job collides least with those who have a place and share a link with it.
fn among(
    draft: &Draft<'_>,
    placed: &BTreeMap<JobId, (Pulse, Duration)>,
    flow: &Flow,
    pulse: &Pulse,
) -> Duration {
    let mut met: BTreeSet<JobId> = BTreeSet::new();
    let mut shared: Vec<LinkId> = Vec::new();
    for (link, _) in flow.route.links() {
        let users = draft.meetings.users(*link).iter();
        let others: Vec<JobId> = users.copied().filter(|user| placed.contains_key(user)).collect();
        shared.extend((!others.is_empty()).then_some(*link));
        met.extend(others);
    }
    let met: Vec<&(Pulse, Duration)> = met.iter().map(|job| &placed[job]).collect();
    let mut circle = Circle::of(met.iter().map(|(other, _)| other).chain([pulse]));
    for (other, offset) in met {
        circle.put(other, *offset);
    }
    circle.best(&pulse.over(&shared))
}

fn lane(draft: &Draft<'_>, job: JobId, flow: &Flow, offset: Duration) -> Lane {
    let mut crossed = flow.route.links().iter();
    if crossed.any(|(link, _)| draft.meetings.users(*link).iter().any(|user| *user != job)) {
        return watched(flow.alone, offset);
    }
    Lane { turn: Some(Turn { period: flow.alone, offset, watch: None }), ..Lane::default() }
}
