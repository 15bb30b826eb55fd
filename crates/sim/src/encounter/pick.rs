//! What is looked at: which link, who crosses it, for how long.

use std::collections::BTreeMap;

use metronome_core::model::id::{Id, IdVec, LinkId};
use metronome_core::model::units::{Bandwidth, Duration, Share};
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::phase_solver::harmonise::{APPEARANCES, Harmony, Rhythm, Terms, harmonise};
use metronome_core::tuning::TrafficTuning;

use super::course::Crossing;
use super::{Circle, Links, Moment, Sharer};

/// The link that several cross of which most is asked, on average; of equals, the first.
pub(super) fn busiest(moment: &Moment, links: &Links) -> Option<LinkId> {
    let mut asked: BTreeMap<LinkId, (usize, f64)> = BTreeMap::new();
    for (_, flow, _) in &moment.jobs {
        let duty = duty(flow, links.rates);
        for (link, demand) in flow.demands(links.rates) {
            let (users, sum) = asked.entry(link).or_default();
            (*users, *sum) = (*users + 1, *sum + duty * demand);
        }
    }
    let shared = asked.into_iter().filter(|(link, (users, _))| *users > 1 && link.index() < links.named);
    shared.rev().max_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other)).map(|(link, _)| link)
}

fn duty(flow: &Flow, rates: &IdVec<LinkId, Bandwidth>) -> f64 {
    let sends: u64 = flow.sends(rates).iter().map(|(from, to)| to.0.saturating_sub(from.0)).sum();
    sends as f64 / flow.alone.0.max(1) as f64
}

/// Who crosses a link, those first who ask most of it.
pub(super) fn crossings(moment: &Moment, link: LinkId, rates: &IdVec<LinkId, Bandwidth>) -> Vec<Crossing> {
    let crossing = |(place, (job, flow, lane)): (usize, &(usize, Flow, _))| {
        let demand = flow.demands(rates).into_iter().find(|(crossed, _)| *crossed == link)?.1;
        let duty = duty(flow, rates);
        let sharer = Sharer { job: *job, period: flow.alone, duty, demand, lane: *lane };
        Some(Crossing { place, sharer })
    };
    let mut crossings: Vec<Crossing> = moment.jobs.iter().enumerate().filter_map(crossing).collect();
    crossings.sort_by(|one, other| other.sharer.asks().total_cmp(&one.sharer.asks()));
    crossings
}

/// A circle on which the longest goes around more often than this has no room for the shortest.
const MOST_ROUNDS: u64 = 3;

pub(super) fn circle(crossings: &[Crossing], tuning: &TrafficTuning) -> Circle {
    let rhythm = |crossing: &Crossing| Rhythm {
        period: crossing.sharer.period,
        noise: Duration::ZERO,
        weight: 1,
        loss: Share::WHOLE,
    };
    let rhythms: Vec<Rhythm> = crossings.iter().map(rhythm).collect();
    let common = harmonise(&rhythms, &Terms::of(tuning)).ok().map(|harmony| shortest(&harmony));
    let longest = longest(crossings);
    let near = common.filter(|common| common.0 / longest.0.max(1) <= MOST_ROUNDS);
    near.map_or(Circle::Longest(longest), Circle::Common)
}

/// A harmony is found on circles of certain lengths; where all go around them several times, a part will do.
fn shortest(harmony: &Harmony) -> Duration {
    let divides = |part: &u64| harmony.beats.iter().all(|beat| beat.appearances.is_multiple_of(*part));
    let parts = APPEARANCES.into_iter().filter(divides).max().unwrap_or(1);
    Duration(harmony.circle.0 / parts)
}

fn longest(crossings: &[Crossing]) -> Duration {
    crossings.iter().map(|crossing| crossing.sharer.period).max().unwrap_or_default()
}

/// Three iterations of the longest, and once around the circle at least.
pub(super) fn span(circle: Circle, crossings: &[Crossing]) -> Duration {
    longest(crossings).times(3).max(circle.time())
}
