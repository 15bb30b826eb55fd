//! Rates of the flows that send at one moment.
//!
//! **Within a class: weighted max-min fair sharing.** A flow of rate *r* (bytes of gradient per second) puts *c·r* on
//! each link of its route, where *c* is the link's load. Traffic is shared fairly, not gradient: the *level* of a
//! flow is the traffic on its busiest link over its weight, *r · max c / w*, so that two rings of different length
//! get equal parts of a common link, as two connections would. All levels rise together; a flow stops rising when a
//! link of its route is full. In the end every flow crosses a full link on which no flow of its class has a higher
//! level. This makes the rates unique.
//!
//! **Between classes: strict priority with a floor.** Class 0 has the highest priority. Where *m* classes want a link
//! at once, each but the highest of them is guaranteed *φ = min(floor, 1/m)* of its capacity:
//!
//! 1. *Guarantees.* For each class separately: max-min fair sharing of links that offer it *φ* of their capacity
//!    where a higher class wants them too, and otherwise everything but the guarantees of other classes. The traffic
//!    that its flows then put on each link is guaranteed; the part of the floor that they cannot use, because another
//!    link limits them, is not.
//! 2. *Allocation.* From the highest class down: max-min fair sharing of the capacity that higher classes leave,
//!    minus the guarantees of lower classes.
//!
//! A class that is alone on its links gets their full capacity, a class that higher classes would starve gets its
//! floor, and capacity is never exceeded: the guarantee of a class always fits into the capacity that is left for it.

use crate::model::cluster::Keeping;
use crate::model::id::LinkId;
use crate::model::units::Share;

use super::class_and_weight::{CLASS_COUNT, ClassAndWeight};
use super::running::RunningLoop;

/// Parameters of link sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub contention: Contention,
    /// Part of a link that is guaranteed to each lower class that wants it.
    pub floor: Share,
    pub keeping: Keeping,
}

/// Whether flows contend for links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    Shared,
    /// Every flow runs as if it were alone: the upper bound of any sharing.
    None,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { contention: Contention::Shared, floor: Share(50_000), keeping: Keeping::Exactly }
    }
}

/// Relative tolerance of equal levels: identical flows get the same rate to the last bit.
const LEVEL_TOLERANCE_FACTOR: f64 = 1.0 + 1e-12;

/// Solver for the rates of one component: its links, routes and preallocated scratch memory.
#[derive(Debug)]
pub(super) struct RateSolver {
    floor: f64,
    links: Vec<LinkId>,
    /// Bytes per nanosecond.
    capacity: Vec<f64>,
    flows: Vec<SolverFlow>,
    /// Hops of all routes one after the other: the link's index in `links` and its load.
    hops: Vec<(u32, f64)>,
    rates: Vec<f64>,
    scratch: SolverScratch,
}

/// A flow as the solver needs it.
#[derive(Clone, Copy, Debug)]
struct SolverFlow {
    class: u8,
    /// Rate at level one.
    rate_per_level: f64,
    peak: f64,
    hops: (u32, u32),
}

/// Scratch memory of the solver, per link.
#[derive(Debug, Default)]
struct SolverScratch {
    left_capacity: Vec<f64>,
    /// Traffic per level, and number of flows whose rate still rises.
    traffic_per_level: Vec<f64>,
    rising_flows: Vec<u32>,
    is_full: Vec<bool>,
    /// Bit set of the classes that want each link.
    wanting_classes: Vec<u8>,
    allocated: Vec<f64>,
    guaranteed: [Vec<f64>; CLASS_COUNT as usize],
    /// Flows whose rate still rises.
    rising: Vec<u32>,
}

impl RateSolver {
    pub(super) fn new(jobs: &[RunningLoop], floor: Share, capacity: impl Fn(LinkId) -> f64) -> Self {
        let mut links: Vec<LinkId> =
            jobs.iter().flat_map(|job| job.links().iter().map(|(link, _)| *link)).collect();
        links.sort_unstable();
        links.dedup();
        let (mut flows, mut hops) = (Vec::new(), Vec::new());
        for job in jobs {
            let first = hops.len() as u32;
            let place = |link: &LinkId| links.binary_search(link).expect("every link is listed") as u32;
            hops.extend(job.links().iter().map(|(link, load)| (place(link), *load)));
            flows.push(SolverFlow {
                class: 0,
                rate_per_level: 1.0,
                peak: job.peak(),
                hops: (first, hops.len() as u32),
            });
        }
        let capacity = links.iter().map(|link| capacity(*link)).collect();
        let rates = vec![0.0; jobs.len()];
        Self {
            floor: floor.as_f64(),
            scratch: SolverScratch::new(links.len()),
            links,
            capacity,
            flows,
            hops,
            rates,
        }
    }

    /// Whether two flows cross a common link.
    pub(super) fn share_link(&self, one: usize, other: usize) -> bool {
        let crossed = |flow: usize| hops(&self.hops, &self.flows[flow]).map(|(link, _)| *link);
        crossed(one).any(|link| crossed(other).any(|crossed| crossed == link))
    }

    /// Sets the class and weight of a flow.
    pub(super) fn set_class(&mut self, flow: usize, standing: ClassAndWeight) {
        let flow = &mut self.flows[flow];
        (flow.class, flow.rate_per_level) = (standing.class, f64::from(standing.weight) / flow.peak);
    }

    /// Rates of the sending flows in bytes per nanosecond, at their index among all flows. Entries of other flows are
    /// stale.
    pub(super) fn rates(&mut self, senders: &[u32]) -> &[f64] {
        let classes = self.collect_classes(senders);
        self.scratch.allocated.fill(0.0);
        if classes.count_ones() > 1 {
            self.compute_guarantees(senders, classes);
        }
        for class in classes_in(classes) {
            for link in 0..self.links.len() {
                let below = classes_in(classes).filter(|lower| *lower > class);
                let guaranteed: f64 = below.map(|lower| self.scratch.guaranteed[lower as usize][link]).sum();
                self.scratch.left_capacity[link] =
                    (self.capacity[link] - self.scratch.allocated[link] - guaranteed).max(0.0);
            }
            self.fill_progressively(senders, class);
            for flow in
                senders.iter().map(|flow| *flow as usize).filter(|flow| self.flows[*flow].class == class)
            {
                for (link, load) in hops(&self.hops, &self.flows[flow]) {
                    self.scratch.allocated[*link as usize] += load * self.rates[flow];
                }
            }
        }
        &self.rates
    }

    /// Records which classes want each link; returns the set of all classes.
    fn collect_classes(&mut self, senders: &[u32]) -> u8 {
        self.scratch.wanting_classes.fill(0);
        let mut classes = 0;
        for flow in senders {
            let flow = &self.flows[*flow as usize];
            classes |= 1 << flow.class;
            for (link, _) in hops(&self.hops, flow) {
                self.scratch.wanting_classes[*link as usize] |= 1 << flow.class;
            }
        }
        classes
    }

    /// Computes the guarantee of each class but the highest on each link.
    fn compute_guarantees(&mut self, senders: &[u32], classes: u8) {
        for class in classes_in(classes).skip(1) {
            for link in 0..self.links.len() {
                self.scratch.left_capacity[link] =
                    self.capacity[link] * self.offered_part(self.scratch.wanting_classes[link], class);
            }
            self.fill_progressively(senders, class);
            let guaranteed = &mut self.scratch.guaranteed[class as usize];
            guaranteed.clear();
            guaranteed.resize(self.links.len(), 0.0);
            for flow in
                senders.iter().map(|flow| *flow as usize).filter(|flow| self.flows[*flow].class == class)
            {
                for (link, load) in hops(&self.hops, &self.flows[flow]) {
                    guaranteed[*link as usize] += load * self.rates[flow];
                }
            }
        }
    }

    /// Part of a link that step 1 offers to `class` where the classes `wanting_classes` contend.
    fn offered_part(&self, wanting_classes: u8, class: u8) -> f64 {
        let many = f64::from(wanting_classes.count_ones().max(1));
        let floor = self.floor.min(1.0 / many);
        if wanting_classes.trailing_zeros() == u32::from(class) { 1.0 - (many - 1.0) * floor } else { floor }
    }

    /// Progressive filling of `scratch.left_capacity` by the flows of one class. Each round finds the lowest level at which a
    /// link is full and fixes the rates of the flows that cross it, so there are at most as many rounds as flows.
    fn fill_progressively(&mut self, senders: &[u32], class: u8) {
        let Self { flows, hops: all, rates, scratch, .. } = self;
        scratch.traffic_per_level.fill(0.0);
        scratch.rising_flows.fill(0);
        scratch.rising.clear();
        scratch.rising.extend(senders.iter().filter(|flow| flows[**flow as usize].class == class));
        for flow in &scratch.rising {
            let flow = &flows[*flow as usize];
            for (link, load) in hops(all, flow) {
                let place = *link as usize;
                scratch.traffic_per_level[place] += load * flow.rate_per_level;
                scratch.rising_flows[place] += 1;
            }
        }
        while !scratch.rising.is_empty() {
            let level = scratch.find_next_level();
            let SolverScratch { rising, is_full, left_capacity, traffic_per_level, rising_flows, .. } =
                scratch;
            rising.retain(|index| {
                let flow = &flows[*index as usize];
                if !hops(all, flow).any(|(link, _)| is_full[*link as usize]) {
                    return true;
                }
                let rate = level * flow.rate_per_level;
                rates[*index as usize] = rate;
                for (link, load) in hops(all, flow) {
                    let link = *link as usize;
                    left_capacity[link] = (left_capacity[link] - load * rate).max(0.0);
                    traffic_per_level[link] -= load * flow.rate_per_level;
                    rising_flows[link] -= 1;
                }
                false
            });
        }
    }

    pub(super) fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// Rate of a flow without contention; `None` if it crosses no link.
    pub(super) fn rate_without_contention(&self, flow: usize) -> Option<f64> {
        let slowest = |(link, load): &(u32, f64)| self.capacity[*link as usize] / load;
        hops(&self.hops, &self.flows[flow]).map(slowest).min_by(f64::total_cmp)
    }
}

fn hops<'a>(all: &'a [(u32, f64)], flow: &SolverFlow) -> std::slice::Iter<'a, (u32, f64)> {
    all[flow.hops.0 as usize..flow.hops.1 as usize].iter()
}

/// Classes in a bit set, highest priority first.
fn classes_in(classes: u8) -> impl Iterator<Item = u8> {
    (0..CLASS_COUNT).filter(move |class| classes & (1 << class) != 0)
}

impl SolverScratch {
    fn new(links: usize) -> Self {
        Self {
            left_capacity: vec![0.0; links],
            traffic_per_level: vec![0.0; links],
            rising_flows: vec![0; links],
            is_full: vec![false; links],
            wanting_classes: vec![0; links],
            allocated: vec![0.0; links],
            ..Self::default()
        }
    }

    /// Lowest level at which a link is full; marks the links that are full at this level.
    fn find_next_level(&mut self) -> f64 {
        let mut lowest = f64::INFINITY;
        for link in 0..self.left_capacity.len() {
            if self.rising_flows[link] > 0 {
                lowest = lowest.min(self.left_capacity[link] / self.traffic_per_level[link]);
            }
        }
        for link in 0..self.left_capacity.len() {
            let level = self.left_capacity[link] / self.traffic_per_level[link];
            self.is_full[link] = self.rising_flows[link] > 0 && level <= lowest * LEVEL_TOLERANCE_FACTOR;
        }
        lowest
    }
}
