//! Places whose links are compatible: where bursts can be shifted so that they exceed links least.
//!
//! Places come in the order of topology and are judged by the circle (`traffic::circle`): the score of a link is one,
//! less the part of traffic that exceeds it on average over the circle when its jobs are shifted as well as possible.
//! Links that no place in question crosses are the same for all.

use std::collections::BTreeSet;

use super::draft::Draft;
use crate::decide::snapshot::Snapshot;
use crate::model::id::LinkId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::traffic::affinity::Affinity;
use crate::traffic::circle::{Pulse, rotations};
use crate::traffic::contention_graph::{Flow, pattern_of};

/// A score at least this near to one means that bursts do not overlap.
const APART: f64 = 1.0 - 1e-6;

/// Of the places as near as the first, the one with the best mean score; a place without a loop in its affinity graph
/// goes before all others.
pub(super) fn most_compatible(draft: &Draft<'_>, job: &Job, mut places: Vec<Assignment>) -> Assignment {
    let nearest = nearness(draft.snapshot, &places[0]);
    places.retain(|place| nearness(draft.snapshot, place) == nearest);
    places.truncate(draft.snapshot.tuning.decide.max_compatible_places);
    let judge = CompatibilityScores::of(draft, job, &places);
    places.swap_remove(judge.best(|at| (judge.is_loop_free(at), judge.score(at))))
}

/// The nearest place at which bursts can be kept apart; where there is none, the one with the best mean score.
pub(super) fn nearest_compatible(draft: &Draft<'_>, job: &Job, mut places: Vec<Assignment>) -> Assignment {
    let judge = CompatibilityScores::of(draft, job, &places);
    let apart = (0..places.len()).find(|at| judge.lowest_score(*at) >= APART);
    let chosen = apart.unwrap_or_else(|| judge.best(|at| (true, judge.score(at))));
    places.swap_remove(chosen)
}

/// How many domains of each level a place spans, from the outermost inwards, and how many nodes: fewer is nearer.
fn nearness(snapshot: &Snapshot<'_>, place: &Assignment) -> Vec<usize> {
    let nodes: BTreeSet<_> = place.nodes().collect();
    let on = |level: usize| {
        let domains = nodes.iter().map(|node| snapshot.cluster.node(*node).domains[level]);
        domains.collect::<BTreeSet<_>>().len()
    };
    (0..usize::from(snapshot.cluster.depth().0)).map(on).chain([nodes.len()]).collect()
}

/// A job with its flow at each of several places.
struct CompatibilityScores<'d, 'a> {
    draft: &'d Draft<'a>,
    /// `None` where it sends nothing over links.
    flows: Vec<Option<Flow>>,
    /// All links that it would cross at some place.
    links: BTreeSet<LinkId>,
}

impl<'d, 'a> CompatibilityScores<'d, 'a> {
    fn of(draft: &'d Draft<'a>, job: &Job, places: &[Assignment]) -> Self {
        let pattern = pattern_of(&job.spec);
        let flow = |place: &Assignment| draft.contention.flow_at(&job.spec, pattern.as_ref()?, place);
        let flows: Vec<Option<Flow>> = places.iter().map(flow).collect();
        let routes = flows.iter().flatten().flat_map(|flow| flow.route.links());
        let links = routes.map(|(link, _)| *link).collect();
        Self { draft, flows, links }
    }

    /// The first place that none surpasses.
    fn best(&self, merit: impl Fn(usize) -> (bool, f64)) -> usize {
        let mut best = (0, merit(0));
        for at in 1..self.flows.len() {
            let (free, score) = merit(at);
            let (was_free, highest) = best.1;
            if free && !was_free || free == was_free && score > highest + 1e-9 {
                best = (at, (free, score));
            }
        }
        best.0
    }

    /// The mean score of all links in question, with the job at a place.
    fn score(&self, at: usize) -> f64 {
        let scores = self.links.iter().map(|link| self.score_of(*link, self.flows[at].as_ref()));
        scores.sum::<f64>() / self.links.len().max(1) as f64
    }

    /// The lowest score of a link that the job would cross at a place.
    fn lowest_score(&self, at: usize) -> f64 {
        let Some(flow) = &self.flows[at] else { return 1.0 };
        let crossed = flow.route.links().iter();
        crossed.map(|(link, _)| self.score_of(*link, Some(flow))).fold(1.0, f64::min)
    }

    fn score_of(&self, link: LinkId, newcomer: Option<&Flow>) -> f64 {
        let contention = &*self.draft.contention;
        let crosses = |flow: &&Flow| flow.route.load_on(link) > 0.0;
        let there = contention.users(link).iter().filter_map(|user| contention.flow(*user));
        let sharing = there.chain(newcomer.filter(crosses));
        let pulses: Vec<Pulse> = sharing.map(|flow| contention.pulse(flow).over(&[link])).collect();
        if pulses.len() < 2 {
            return 1.0;
        }
        rotations(&self.draft.snapshot.tuning.traffic, &pulses).1.score(link)
    }

    /// Whether all jobs that it would meet at a place, directly or through others, can be shifted without a conflict.
    fn is_loop_free(&self, at: usize) -> bool {
        let Some(flow) = &self.flows[at] else { return true };
        let contention = &*self.draft.contention;
        let met = contention.jobs_sharing_links(&flow.route, |_| false);
        let others = met.iter().filter_map(|other| contention.flow(*other));
        let pulses: Vec<Pulse> = others.chain([flow]).map(|flow| contention.pulse(flow)).collect();
        Affinity::of(&pulses).is_loop_free()
    }
}
