//! What another size is worth where jobs meet on links.
//!
//! A gang that grows onto more nodes sends over links what it kept inside a node before. It has fewer iterations to
//! do, but each takes longer, and so do those of the jobs that it meets there. All that is predicted as it is for
//! places (`link_cost`); sizes are compared by the seconds that the gang takes and the other jobs lose until it ends,
//! each weighted by its priority.

use super::draft::Draft;
use super::elastic_gang::ElasticGang;
use super::link_cost::{self, priority_weight, seconds_left, stretch};
use super::view::View;
use crate::decide::snapshot::Snapshot;
use crate::model::id::JobId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::policy::Slowdowns;
use crate::model::units::Duration;
use crate::observe::scaling::Speed;
use crate::traffic::contention_graph::{Flow, pattern_of};
use crate::traffic::slowdown_model::Care;

/// Whether a gang at another place, with more members, is worth it to all jobs. True where nothing is known of links.
pub(super) fn pays(
    view: &View<'_>,
    draft: &Draft<'_>,
    gang: &ElasticGang<'_>,
    before: &Assignment,
    after: &Assignment,
    cost: Duration,
) -> bool {
    if !is_weighed(view, draft, gang) {
        return true;
    }
    let flow = |place: &Assignment| {
        let pattern = pattern_of(&gang.job.spec)?;
        draft.contention.flow_at(&gang.job.spec, &pattern, place)
    };
    let (Some(here), Some(there)) = (flow(before), flow(after)) else { return true };
    if here.route.links() == there.route.links() {
        return true;
    }
    let met_jobs = MetJobs::of(draft, gang, met_at_either(draft, gang.id, &here, &there));
    let cost = priority_weight(draft.snapshot, gang.job)
        * cost.times(draft.snapshot.tuning.decide.min_resize_gain).as_secs_f64();
    let before = met_jobs.costs(&here, gang.members(before));
    met_jobs.costs(&there, gang.members(after)) + cost < before
}

/// Whether links decide about the size of a gang.
pub(super) fn is_weighed(view: &View<'_>, draft: &Draft<'_>, gang: &ElasticGang<'_>) -> bool {
    let weighs = matches!(view.policy.slowdowns, Slowdowns::Weighed | Slowdowns::WaitedOut);
    weighs && link_cost::is_weighed(view, draft, gang.job)
}

fn met_at_either(draft: &Draft<'_>, id: JobId, here: &Flow, there: &Flow) -> Vec<JobId> {
    let contention = &*draft.contention;
    let mut met = contention.jobs_sharing_links_nearby(&here.route, |other| other == id);
    met.extend(contention.jobs_sharing_links_nearby(&there.route, |other| other == id));
    met.into_iter().collect()
}

/// The jobs that a gang meets, and how much slower each is by the others alone.
struct MetJobs<'d, 'a> {
    draft: &'d Draft<'a>,
    gang: &'d ElasticGang<'a>,
    met: Vec<JobId>,
    flows: Vec<&'d Flow>,
    without: Vec<f64>,
}

impl<'d, 'a> MetJobs<'d, 'a> {
    fn of(draft: &'d Draft<'a>, gang: &'d ElasticGang<'a>, met: Vec<JobId>) -> Self {
        let flows: Vec<&Flow> = met.iter().filter_map(|other| draft.contention.flow(*other)).collect();
        let met_jobs = Self { draft, gang, met, flows, without: Vec::new() };
        let without = met_jobs.slowdowns(&met_jobs.flows);
        Self { without, ..met_jobs }
    }

    fn slowdowns(&self, flows: &[&Flow]) -> Vec<f64> {
        let care = if flows.len() < self.draft.snapshot.tuning.traffic.crowd_size {
            Care::Glance
        } else {
            Care::Estimate
        };
        self.draft.link_predictions.set(self.draft.link_predictions.get() + flows.len() as u64);
        self.draft.contention.slowdowns(flows, care)
    }

    /// The seconds that the gang takes with these members and this flow, and those that other jobs lose by it, each
    /// weighted by its priority.
    fn costs(&self, flow: &Flow, members: u32) -> f64 {
        let (snapshot, job) = (self.draft.snapshot, self.gang.job);
        let slowdowns = self.slowdowns(&[&self.flows[..], &[flow]].concat());
        let own = slowdowns.last().copied().unwrap_or(1.0);
        let in_proportion = f64::from(self.gang.least().max(1)) / f64::from(members.max(1));
        let takes = seconds_left(snapshot, job) * in_proportion * stretch(job, flow) * own;
        let others = self.met.iter().zip(slowdowns.iter().zip(&self.without));
        let lost = others.map(|(other, (with, without))| {
            let other = &snapshot.jobs[*other];
            priority_weight(snapshot, other)
                * lost(time_left(snapshot, other) * without, with / without, takes)
        });
        priority_weight(snapshot, job) * takes + lost.sum::<f64>()
    }
}

/// The seconds that a job loses if it is `slower` times slower for `time`, and would end after `would_take`.
fn lost(would_take: f64, slower: f64, time: f64) -> f64 {
    let slower = slower.max(1.0);
    (would_take * (slower - 1.0)).min(time * (1.0 - 1.0 / slower))
}

/// Seconds that a job takes alone with the members it has.
fn time_left(snapshot: &Snapshot<'_>, job: &Job) -> f64 {
    seconds_left(snapshot, job) * Speed::PLAIN.0 as f64 / job.progress.pace().speed().0 as f64
}
