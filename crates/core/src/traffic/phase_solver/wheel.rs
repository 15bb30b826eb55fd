//! One-shot shifts as published: positions on a circle in steps of five degrees, one loop after the other.
//!
//! What a loop sends is wound around the circle, as often as it fits, and averaged over each step. A newcomer takes the
//! first position at which demand exceeds links least. Nobody who has a position is asked to change it: where that
//! does not suffice, [`super::solve`] finds what does.

use std::collections::BTreeMap;

use crate::model::id::LinkId;
use crate::model::units::Duration;

/// Steps of five degrees.
const STEPS: usize = 72;

/// What a loop that is by itself does in an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Spoke {
    /// When it sends, from and to, in order.
    pub sends: Vec<(Duration, Duration)>,
    /// The part of each link that it takes while it sends.
    pub links: Vec<(LinkId, f64)>,
    /// How often it goes around the circle.
    pub appearances: u64,
}

/// A circle, and what is sent over links at each of its steps.
#[derive(Clone, Debug)]
pub struct Wheel {
    circle: Duration,
    demand: BTreeMap<LinkId, [f64; STEPS]>,
}

impl Wheel {
    pub fn new(circle: Duration) -> Self {
        Self { circle, demand: BTreeMap::new() }
    }

    /// Puts a loop where it is: its iterations begin so long after the circle does.
    pub fn put(&mut self, spoke: &Spoke, offset: Duration) {
        let busy = self.busy(spoke, offset);
        for (link, part) in &spoke.links {
            let demand = self.demand.entry(*link).or_insert([0.0; STEPS]);
            for (step, busy) in busy.iter().enumerate() {
                demand[step] += part * busy;
            }
        }
    }

    /// The first of the positions at which a loop adds least to what links cannot carry.
    pub fn best(&self, spoke: &Spoke) -> Duration {
        let positions = STEPS.div_ceil(spoke.appearances.max(1) as usize);
        let offsets = (0..positions).map(|step| Duration(self.circle.0 * step as u64 / STEPS as u64));
        let least = offsets.map(|offset| (self.excess(spoke, offset), offset));
        least.min_by(|(one, _), (other, _)| one.total_cmp(other)).map_or(Duration::ZERO, |(_, offset)| offset)
    }

    fn excess(&self, spoke: &Spoke, offset: Duration) -> f64 {
        let busy = self.busy(spoke, offset);
        let beyond = |(link, part): &(LinkId, f64)| {
            let demand = self.demand.get(link).unwrap_or(&[0.0; STEPS]);
            demand.iter().zip(&busy).map(|(demand, busy)| (demand + part * busy - 1.0).max(0.0)).sum::<f64>()
        };
        spoke.links.iter().map(beyond).sum()
    }

    /// The part of each step in which a loop sends.
    fn busy(&self, spoke: &Spoke, offset: Duration) -> [f64; STEPS] {
        let width = self.circle.0 as f64 / STEPS as f64;
        let mut busy = [0.0; STEPS];
        for turn in 0..spoke.appearances {
            let begins = (offset.0 + self.circle.0 * turn / spoke.appearances.max(1)) as f64;
            for (from, to) in &spoke.sends {
                add(&mut busy, (begins + from.0 as f64) / width, (begins + to.0 as f64) / width);
            }
        }
        busy
    }
}

/// Adds a span, in steps, wherever on the circle it falls.
fn add(busy: &mut [f64; STEPS], from: f64, to: f64) {
    let mut at = from;
    while at < to {
        let end = (at.floor() + 1.0).min(to);
        busy[at as usize % STEPS] += end - at;
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(0);

    fn spoke(sends: u64, appearances: u64) -> Spoke {
        let sends = vec![(Duration::ZERO, Duration(sends))];
        Spoke { sends, links: vec![(LINK, 1.0)], appearances }
    }

    #[test]
    fn a_newcomer_sends_when_the_others_do_not() {
        let mut wheel = Wheel::new(Duration(720));
        wheel.put(&spoke(300, 1), Duration::ZERO);
        assert_eq!(wheel.best(&spoke(400, 1)), Duration(300));
        wheel.put(&spoke(100, 1), Duration(300));
        assert_eq!(wheel.best(&spoke(200, 1)), Duration(400));
    }

    #[test]
    fn whoever_goes_around_twice_finds_room_twice() {
        let mut wheel = Wheel::new(Duration(720));
        wheel.put(&spoke(100, 2), Duration::ZERO);
        assert_eq!(wheel.best(&spoke(260, 1)), Duration(100));
        assert_eq!(wheel.best(&spoke(50, 2)), Duration(100));
    }

    #[test]
    fn over_links_that_nobody_uses_every_position_is_as_good() {
        let mut wheel = Wheel::new(Duration(720));
        wheel.put(&spoke(700, 1), Duration::ZERO);
        let elsewhere = Spoke { links: vec![(LinkId(1), 1.0)], ..spoke(700, 1) };
        assert_eq!(wheel.best(&elsewhere), Duration::ZERO);
    }
}
