//! How flows that are sending at one moment share the links.
//!
//! **Within a class: weighted max-min.** A flow of rate *r* (bytes of gradient a second) puts *c·r* on each link of
//! its route. What is shared fairly is traffic, not gradient: the *level* of a flow is the traffic on its busiest
//! link over its weight, *r · max c / w*, so that two rings of different length get equal parts of a link they share,
//! as two connections would. All levels rise together; a flow stops rising when a link of its route is full. In the
//! end every flow crosses a full link on which no flow of its class has a higher level, and that makes the rates
//! unique.
//!
//! **Between classes: strict, with a floor.** Class 0 goes first. Where *m* classes want a link at once, each but the
//! highest of them is kept *φ = min(floor, 1/m)* of its capacity:
//!
//! 1. *Kept.* For each class by itself: max-min on links that offer it *φ* of their capacity where a higher class
//!    wants them too, and otherwise all but what is kept there for others. What its flows then put on each link is
//!    kept for it; what of the floor they cannot use, because they are held up elsewhere, is not.
//! 2. *Given.* From the highest class down: max-min on what the classes above have left and no class below is kept.
//!
//! A class that is alone on its links gets all of them, a class that is starved by those above gets its floor, and
//! capacity is never exceeded: what is kept for a class always fits into what is left when its turn comes.

use crate::model::cluster::Keeping;
use crate::model::id::LinkId;
use crate::model::units::Share;

use super::class_and_weight::Standing;
use super::running::Running;

/// How flows share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub contention: Contention,
    /// The part of a link that is kept for each lower class that wants it.
    pub floor: Share,
    pub keeping: Keeping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    Shared,
    /// Every flow runs as if it were alone: the bound that no sharing can beat.
    None,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { contention: Contention::Shared, floor: Share(50_000), keeping: Keeping::Exactly }
    }
}

pub(super) const CLASSES: u8 = 8;
pub(super) const MOST_WEIGHT: u32 = 1 << 16;

/// Levels so near to the lowest are equal: flows that differ in nothing get the same rate to the last bit.
const EQUAL: f64 = 1.0 + 1e-12;

/// The links and routes of one component, and room to work out rates without allocating.
#[derive(Debug)]
pub(super) struct Sharer {
    floor: f64,
    links: Vec<LinkId>,
    /// Bytes a nanosecond.
    capacity: Vec<f64>,
    flows: Vec<Flow>,
    /// All routes one after the other: a link by its place in `links`, and the bytes on it for a byte of gradient.
    hops: Vec<(u32, f64)>,
    rates: Vec<f64>,
    room: Room,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    class: u8,
    /// Rate at level one.
    unit: f64,
    peak: f64,
    hops: (u32, u32),
}

#[derive(Debug, Default)]
struct Room {
    left: Vec<f64>,
    /// By how much traffic rises with the level, and for how many flows.
    slope: Vec<f64>,
    rising: Vec<u32>,
    full: Vec<bool>,
    /// The classes that want each link, one bit each.
    wanted: Vec<u8>,
    given: Vec<f64>,
    kept: [Vec<f64>; CLASSES as usize],
    /// The flows that still rise.
    open: Vec<u32>,
}

impl Sharer {
    pub(super) fn new(jobs: &[Running], floor: Share, capacity: impl Fn(LinkId) -> f64) -> Self {
        let mut links: Vec<LinkId> =
            jobs.iter().flat_map(|job| job.links().iter().map(|(link, _)| *link)).collect();
        links.sort_unstable();
        links.dedup();
        let (mut flows, mut hops) = (Vec::new(), Vec::new());
        for job in jobs {
            let first = hops.len() as u32;
            let place = |link: &LinkId| links.binary_search(link).expect("every link is listed") as u32;
            hops.extend(job.links().iter().map(|(link, load)| (place(link), *load)));
            flows.push(Flow { class: 0, unit: 1.0, peak: job.peak(), hops: (first, hops.len() as u32) });
        }
        let capacity = links.iter().map(|link| capacity(*link)).collect();
        let rates = vec![0.0; jobs.len()];
        Self { floor: floor.as_f64(), room: Room::new(links.len()), links, capacity, flows, hops, rates }
    }

    /// Whether two flows cross a common link.
    pub(super) fn share_a_link(&self, one: usize, other: usize) -> bool {
        let crossed = |flow: usize| hops(&self.hops, &self.flows[flow]).map(|(link, _)| *link);
        crossed(one).any(|link| crossed(other).any(|crossed| crossed == link))
    }

    /// From now on a flow stands so among the others.
    pub(super) fn stand(&mut self, flow: usize, standing: Standing) {
        let flow = &mut self.flows[flow];
        (flow.class, flow.unit) = (standing.class, f64::from(standing.weight) / flow.peak);
    }

    /// The rates of these flows, in bytes a nanosecond, at their place among all flows.
    pub(super) fn rates(&mut self, senders: &[u32]) -> &[f64] {
        let classes = self.survey(senders);
        self.room.given.fill(0.0);
        if classes.count_ones() > 1 {
            self.keep(senders, classes);
        }
        for class in each(classes) {
            for link in 0..self.links.len() {
                let below = each(classes).filter(|lower| *lower > class);
                let kept: f64 = below.map(|lower| self.room.kept[lower as usize][link]).sum();
                self.room.left[link] = (self.capacity[link] - self.room.given[link] - kept).max(0.0);
            }
            self.fill(senders, class);
            for flow in
                senders.iter().map(|flow| *flow as usize).filter(|flow| self.flows[*flow].class == class)
            {
                for (link, load) in hops(&self.hops, &self.flows[flow]) {
                    self.room.given[*link as usize] += load * self.rates[flow];
                }
            }
        }
        &self.rates
    }

    /// Notes which classes want each link; returns all of them.
    fn survey(&mut self, senders: &[u32]) -> u8 {
        self.room.wanted.fill(0);
        let mut classes = 0;
        for flow in senders {
            let flow = &self.flows[*flow as usize];
            classes |= 1 << flow.class;
            for (link, _) in hops(&self.hops, flow) {
                self.room.wanted[*link as usize] |= 1 << flow.class;
            }
        }
        classes
    }

    /// What each class but the highest puts on the links if it has only its floor where higher classes are.
    fn keep(&mut self, senders: &[u32], classes: u8) {
        for class in each(classes).skip(1) {
            for link in 0..self.links.len() {
                self.room.left[link] = self.capacity[link] * self.part(self.room.wanted[link], class);
            }
            self.fill(senders, class);
            let kept = &mut self.room.kept[class as usize];
            kept.clear();
            kept.resize(self.links.len(), 0.0);
            for flow in
                senders.iter().map(|flow| *flow as usize).filter(|flow| self.flows[*flow].class == class)
            {
                for (link, load) in hops(&self.hops, &self.flows[flow]) {
                    kept[*link as usize] += load * self.rates[flow];
                }
            }
        }
    }

    /// The part of a link that is kept for `class` where the classes `wanted` meet.
    fn part(&self, wanted: u8, class: u8) -> f64 {
        let many = f64::from(wanted.count_ones().max(1));
        let floor = self.floor.min(1.0 / many);
        if wanted.trailing_zeros() == u32::from(class) { 1.0 - (many - 1.0) * floor } else { floor }
    }

    /// Progressive filling of `room.left` by the flows of one class: each round finds the lowest level at which a
    /// link is full and settles the flows across it, so there are at most as many rounds as flows.
    fn fill(&mut self, senders: &[u32], class: u8) {
        let Self { flows, hops: all, rates, room, .. } = self;
        room.slope.fill(0.0);
        room.rising.fill(0);
        room.open.clear();
        room.open.extend(senders.iter().filter(|flow| flows[**flow as usize].class == class));
        for flow in &room.open {
            let flow = &flows[*flow as usize];
            for (link, load) in hops(all, flow) {
                let place = *link as usize;
                room.slope[place] += load * flow.unit;
                room.rising[place] += 1;
            }
        }
        while !room.open.is_empty() {
            let level = room.next_level();
            let Room { open, full, left, slope, rising, .. } = room;
            open.retain(|index| {
                let flow = &flows[*index as usize];
                if !hops(all, flow).any(|(link, _)| full[*link as usize]) {
                    return true;
                }
                let rate = level * flow.unit;
                rates[*index as usize] = rate;
                for (link, load) in hops(all, flow) {
                    let link = *link as usize;
                    left[link] = (left[link] - load * rate).max(0.0);
                    slope[link] -= load * flow.unit;
                    rising[link] -= 1;
                }
                false
            });
        }
    }

    pub(super) fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// The rate of a flow that has every link of its route for itself.
    pub(super) fn alone(&self, flow: usize) -> Option<f64> {
        let slowest = |(link, load): &(u32, f64)| self.capacity[*link as usize] / load;
        hops(&self.hops, &self.flows[flow]).map(slowest).min_by(f64::total_cmp)
    }
}

fn hops<'a>(all: &'a [(u32, f64)], flow: &Flow) -> std::slice::Iter<'a, (u32, f64)> {
    all[flow.hops.0 as usize..flow.hops.1 as usize].iter()
}

/// The classes in a set, highest first.
fn each(classes: u8) -> impl Iterator<Item = u8> {
    (0..CLASSES).filter(move |class| classes & (1 << class) != 0)
}

impl Room {
    fn new(links: usize) -> Self {
        Self {
            left: vec![0.0; links],
            slope: vec![0.0; links],
            rising: vec![0; links],
            full: vec![false; links],
            wanted: vec![0; links],
            given: vec![0.0; links],
            ..Self::default()
        }
    }

    /// The lowest level at which a link is full, and which links are.
    fn next_level(&mut self) -> f64 {
        let mut lowest = f64::INFINITY;
        for link in 0..self.left.len() {
            if self.rising[link] > 0 {
                lowest = lowest.min(self.left[link] / self.slope[link]);
            }
        }
        for link in 0..self.left.len() {
            let level = self.left[link] / self.slope[link];
            self.full[link] = self.rising[link] > 0 && level <= lowest * EQUAL;
        }
        lowest
    }
}
