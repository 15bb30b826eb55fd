//! One-shot shifts as published: positions on a circle in steps of five degrees, one loop after the other.
//!
//! The bursts of a loop are wound around the circle, as often as its period fits, and averaged over each step. A newcomer takes
//! the first position with the least excess. Loops that have a position keep it; [`super::solve`] finds positions for all.

use std::collections::BTreeMap;

use crate::model::id::LinkId;
use crate::model::units::Duration;

/// Steps of five degrees, as published. The number is the size of an array, and no tuning entry.
const STEPS: usize = 72;

/// The iteration of a loop without contention.
#[derive(Clone, Debug, PartialEq)]
pub struct WheelLoop {
    /// The bursts of an iteration, from and to, in order.
    pub sends: Vec<(Duration, Duration)>,
    /// The share of each link that a burst takes.
    pub links: Vec<(LinkId, f64)>,
    /// The number of iterations on the circle.
    pub appearances: u64,
}

/// A circle with the demand on links at each step.
#[derive(Clone, Debug)]
pub struct Wheel {
    circle: Duration,
    demand: BTreeMap<LinkId, [f64; STEPS]>,
}

impl Wheel {
    pub fn new(circle: Duration) -> Self {
        Self { circle, demand: BTreeMap::new() }
    }

    /// Adds a loop whose iterations begin `offset` after the circle does.
    pub fn put(&mut self, spoke: &WheelLoop, offset: Duration) {
        let busy = self.busy(spoke, offset);
        for (link, part) in &spoke.links {
            let demand = self.demand.entry(*link).or_insert([0.0; STEPS]);
            for (step, busy) in busy.iter().enumerate() {
                demand[step] += part * busy;
            }
        }
    }

    /// The first position with the least excess.
    pub fn best(&self, spoke: &WheelLoop) -> Duration {
        let positions = STEPS.div_ceil(spoke.appearances.max(1) as usize);
        let offsets = (0..positions).map(|step| Duration(self.circle.0 * step as u64 / STEPS as u64));
        let least = offsets.map(|offset| (self.excess(spoke, offset), offset));
        least.min_by(|(one, _), (other, _)| one.total_cmp(other)).map_or(Duration::ZERO, |(_, offset)| offset)
    }

    fn excess(&self, spoke: &WheelLoop, offset: Duration) -> f64 {
        let busy = self.busy(spoke, offset);
        let beyond = |(link, part): &(LinkId, f64)| {
            let demand = self.demand.get(link).unwrap_or(&[0.0; STEPS]);
            demand.iter().zip(&busy).map(|(demand, busy)| (demand + part * busy - 1.0).max(0.0)).sum::<f64>()
        };
        spoke.links.iter().map(beyond).sum()
    }

    /// The share of each step in which a loop sends.
    fn busy(&self, spoke: &WheelLoop, offset: Duration) -> [f64; STEPS] {
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

/// Adds a span, given in steps, which may wrap around the circle.
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

    fn spoke(sends: u64, appearances: u64) -> WheelLoop {
        let sends = vec![(Duration::ZERO, Duration(sends))];
        WheelLoop { sends, links: vec![(LINK, 1.0)], appearances }
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
    fn a_loop_with_two_iterations_on_the_circle_finds_two_gaps() {
        let mut wheel = Wheel::new(Duration(720));
        wheel.put(&spoke(100, 2), Duration::ZERO);
        assert_eq!(wheel.best(&spoke(260, 1)), Duration(100));
        assert_eq!(wheel.best(&spoke(50, 2)), Duration(100));
    }

    #[test]
    fn on_unused_links_every_position_is_as_good() {
        let mut wheel = Wheel::new(Duration(720));
        wheel.put(&spoke(700, 1), Duration::ZERO);
        let elsewhere = WheelLoop { links: vec![(LinkId(1), 1.0)], ..spoke(700, 1) };
        assert_eq!(wheel.best(&elsewhere), Duration::ZERO);
    }
}
