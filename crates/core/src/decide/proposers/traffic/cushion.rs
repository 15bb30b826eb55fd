//! Shifts in the order of priorities: each job finds its place on the circle among the jobs before it, and a cushion
//! after each burst keeps late bytes from colliding.
//!
//! The place of a job follows from jobs of higher priority, and of equal priority that came before, and from no
//! others: so no job is shifted for the sake of a lower priority. Every job that sends over links has a phase offset
//! from its start, so that it need not be held when others come; it is watched where it may collide with another job.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::rotate::watched;
use crate::decide::draft::Draft;
use crate::model::id::{JobId, LinkId};
use crate::model::units::Duration;
use crate::traffic::circle::{Circle, Pulse};
use crate::traffic::contention_graph::Flow;
use crate::traffic::{TrafficPolicy, Turn};

pub(super) fn turns(draft: &Draft<'_>) -> BTreeMap<JobId, TrafficPolicy> {
    let mut jobs: Vec<(JobId, &Flow)> =
        draft.contention.flows().filter(|(_, flow)| !flow.is_local()).collect();
    jobs.sort_by_key(|(job, _)| (Reverse(draft.snapshot.jobs[*job].spec.priority), *job));
    let mut placed: BTreeMap<JobId, (Pulse, Duration)> = BTreeMap::new();
    for (job, flow) in &jobs {
        let pulse = draft.contention.pulse(flow).cushioned(&draft.snapshot.tuning.traffic);
        let offset = among(draft, &placed, flow, &pulse);
        placed.insert(*job, (pulse, offset));
    }
    let traffic = |(job, flow): (JobId, &Flow)| (job, traffic(draft, job, flow, placed[&job].1));
    jobs.into_iter().map(traffic).collect()
}

/// The offset at which a job collides least with the jobs that have a place and share a link with it.
fn among(
    draft: &Draft<'_>,
    placed: &BTreeMap<JobId, (Pulse, Duration)>,
    flow: &Flow,
    pulse: &Pulse,
) -> Duration {
    let mut met: BTreeSet<JobId> = BTreeSet::new();
    let mut shared: Vec<LinkId> = Vec::new();
    for (link, _) in flow.route.links() {
        let users = draft.contention.users(*link).iter();
        let others: Vec<JobId> = users.copied().filter(|user| placed.contains_key(user)).collect();
        shared.extend((!others.is_empty()).then_some(*link));
        met.extend(others);
    }
    let met: Vec<&(Pulse, Duration)> = met.iter().map(|job| &placed[job]).collect();
    let mut circle =
        Circle::of(&draft.snapshot.tuning.traffic, met.iter().map(|(other, _)| other).chain([pulse]));
    for (other, offset) in met {
        circle.put(other, *offset);
    }
    circle.best(&pulse.over(&shared))
}

fn traffic(draft: &Draft<'_>, job: JobId, flow: &Flow, offset: Duration) -> TrafficPolicy {
    let mut crossed = flow.route.links().iter();
    if crossed.any(|(link, _)| draft.contention.users(*link).iter().any(|user| *user != job)) {
        return watched(draft, flow.alone, offset);
    }
    TrafficPolicy { turn: Some(Turn { period: flow.alone, offset, watch: None }), ..TrafficPolicy::default() }
}
