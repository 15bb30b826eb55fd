//! CASSINI's affinity graph: the shifts of loops that share several links.
//!
//! **Problem.** On each link that several loops share there are shifts that keep their bursts apart best. But a loop that
//! crosses several such links has one clock and can be shifted only once.
//!
//! **Solution.** Loops and the links that they cross form a bipartite graph. The search begins with the first loop, which is
//! not shifted; on each of its links the other loops are shifted relative to it, on their links the next ones, and so on.
//! Where the graph has no cycle, every loop is reached by one path only, and all shifts agree. Where it has one, a loop
//! keeps the shift by which it was reached first.
//!
//! Links that the same loops cross, or some of them, are one *junction*: otherwise two loops on both directions of a cable
//! would form a cycle. Links that carry all bursts at once make no difference and are left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::circle::{Pulse, rotations};
use crate::model::id::LinkId;
use crate::model::units::Duration;
use crate::tuning::TrafficTuning;

/// The affinity graph: loops, by their place in the given list, and the junctions that they share.
#[derive(Clone, Debug)]
pub struct Affinity {
    junctions: Vec<Junction>,
    loops: usize,
}

#[derive(Clone, Debug)]
struct Junction {
    links: Vec<LinkId>,
    loops: BTreeSet<usize>,
}

/// More than a whole link: a margin for rounding, and no tuning entry.
const MORE_THAN_ALL: f64 = 1.0 + 1e-9;

impl Affinity {
    pub fn of(pulses: &[Pulse]) -> Self {
        let mut junctions: Vec<Junction> = Vec::new();
        let mut contended: Vec<(LinkId, BTreeSet<usize>)> = contended(pulses).into_iter().collect();
        contended.sort_by_key(|(link, loops)| (Reverse(loops.len()), *link));
        for (link, loops) in contended {
            match junctions.iter_mut().find(|junction| loops.is_subset(&junction.loops)) {
                Some(junction) => junction.links.push(link),
                None => junctions.push(Junction { links: vec![link], loops }),
            }
        }
        Self { junctions, loops: pulses.len() }
    }

    /// Whether the graph has no cycle.
    pub fn is_loop_free(&self) -> bool {
        let mut group: Vec<usize> = (0..self.loops + self.junctions.len()).collect();
        for (number, junction) in self.junctions.iter().enumerate() {
            for one in &junction.loops {
                let (here, there) = (group[self.loops + number], group[*one]);
                if here == there {
                    return false;
                }
                group.iter_mut().filter(|at| **at == there).for_each(|at| *at = here);
            }
        }
        true
    }

    /// The shift of each loop; none for a loop that shares no junction.
    pub fn shifts(&self, tuning: &TrafficTuning, pulses: &[Pulse]) -> Vec<Option<Duration>> {
        let mut shifts: Vec<Option<i128>> = vec![None; self.loops];
        let mut passed = vec![false; self.junctions.len()];
        for first in self.junctions.iter().filter_map(|junction| junction.loops.first()) {
            if shifts[*first].is_none() {
                shifts[*first] = Some(0);
                self.follow(tuning, *first, pulses, &mut shifts, &mut passed);
            }
        }
        let on_period = |(shift, pulse): (Option<i128>, &Pulse)| {
            Some(Duration(shift?.rem_euclid(i128::from(pulse.period().0)) as u64))
        };
        shifts.into_iter().zip(pulses).map(on_period).collect()
    }

    /// Shifts all loops that are reached from a shifted loop.
    fn follow(
        &self,
        tuning: &TrafficTuning,
        first: usize,
        pulses: &[Pulse],
        shifts: &mut [Option<i128>],
        passed: &mut [bool],
    ) {
        let mut ahead = VecDeque::from([first]);
        while let Some(from) = ahead.pop_front() {
            for (number, junction) in self.junctions.iter().enumerate() {
                if passed[number] || !junction.loops.contains(&from) {
                    continue;
                }
                passed[number] = true;
                let there = junction.rotations(tuning, pulses);
                let turned = shifts[from].unwrap_or(0) - there[&from];
                for (one, rotation) in there.into_iter().filter(|(one, _)| *one != from) {
                    if shifts[one].is_none() {
                        shifts[one] = Some(turned + rotation);
                        ahead.push_back(one);
                    }
                }
            }
        }
    }
}

impl Junction {
    /// The position of each loop on the circle of this junction.
    fn rotations(&self, tuning: &TrafficTuning, pulses: &[Pulse]) -> BTreeMap<usize, i128> {
        let here: Vec<Pulse> = self.loops.iter().map(|one| pulses[*one].over(&self.links)).collect();
        let (offsets, _) = rotations(tuning, &here);
        let offsets = offsets.into_iter().map(|offset| i128::from(offset.0));
        self.loops.iter().copied().zip(offsets).collect()
    }
}

/// Links that cannot carry all bursts at once, with the loops that cross them.
fn contended(pulses: &[Pulse]) -> BTreeMap<LinkId, BTreeSet<usize>> {
    let mut links: BTreeMap<LinkId, (f64, BTreeSet<usize>)> = BTreeMap::new();
    for (one, pulse) in pulses.iter().enumerate() {
        for (link, part) in pulse.links() {
            let (peaks, loops) = links.entry(*link).or_default();
            *peaks += part;
            loops.insert(one);
        }
    }
    let contended = links.into_iter().filter(|(_, (peaks, loops))| *peaks > MORE_THAN_ALL && loops.len() > 1);
    contended.map(|(link, (_, loops))| (link, loops)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Sends for a third of its period at the full rate of these links.
    fn pulse(links: &[u32]) -> Pulse {
        let links = links.iter().map(|link| (LinkId(*link), 1.0)).collect();
        Pulse::new(&TrafficTuning::DEFAULT, ms(720), vec![(ms(480), ms(720))], links)
    }

    #[test]
    fn shifts_follow_from_link_to_link() {
        let pulses = [pulse(&[0]), pulse(&[0, 1]), pulse(&[1]), pulse(&[7])];
        let affinity = Affinity::of(&pulses);
        assert!(affinity.is_loop_free());
        assert_eq!(
            affinity.shifts(&TrafficTuning::DEFAULT, &pulses),
            [Some(ms(0)), Some(ms(240)), Some(ms(480)), None]
        );
    }

    #[test]
    fn both_directions_of_a_cable_are_no_loop() {
        let pulses = [pulse(&[0, 1]), pulse(&[0, 1]), pulse(&[0])];
        let affinity = Affinity::of(&pulses);
        assert!(affinity.is_loop_free());
        assert_eq!(
            affinity.shifts(&TrafficTuning::DEFAULT, &pulses),
            [Some(ms(0)), Some(ms(240)), Some(ms(480))]
        );
    }

    #[test]
    fn three_in_a_circle_are_a_loop_and_all_have_a_shift() {
        let pulses = [pulse(&[0, 2]), pulse(&[0, 1]), pulse(&[1, 2])];
        let affinity = Affinity::of(&pulses);
        assert!(!affinity.is_loop_free());
        assert!(affinity.shifts(&TrafficTuning::DEFAULT, &pulses).iter().all(Option::is_some));
    }

    #[test]
    fn links_that_carry_all_at_once_do_not_matter() {
        let half = |link| {
            Pulse::new(&TrafficTuning::DEFAULT, ms(720), vec![(ms(0), ms(720))], vec![(LinkId(link), 0.5)])
        };
        let pulses = [half(0), half(0)];
        assert_eq!(Affinity::of(&pulses).shifts(&TrafficTuning::DEFAULT, &pulses), [None, None]);
    }
}
