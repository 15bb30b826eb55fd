//! Which loops are to be shifted against which, and by how much: CASSINI's affinity graph.
//!
//! **Problem.** On each link that several loops share there are shifts that keep their bursts apart as well as can be. But
//! a loop that crosses several such links has one clock: it can only be shifted once.
//!
//! **Solution.** Loops and links form a graph: who crosses what. Begin with any loop, which is not shifted; on each of its
//! links the others are shifted relative to it, on their links those behind them, and so on. Where the graph has no
//! loop, everybody is reached by one way only, and all shifts agree. Where it has, a loop keeps the shift by which it
//! was reached first.
//!
//! Links that the same loops cross, or some of them, are one *junction*, or two loops on both directions of a cable
//! would be in a circle already. Links that carry all bursts at once make no difference, and are left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::circle::{Pulse, rotations};
use crate::model::id::LinkId;
use crate::model::units::Duration;
use crate::tuning::TrafficTuning;

/// Loops, by their place in the list that was given, and the junctions at which they meet.
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

/// More than a link, by more than rounding.
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

    /// Whether everybody is reached by one way only.
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

    /// How far each loop is to be shifted; none for those that meet nobody.
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

    /// Goes from a loop that is shifted to all that are reached from it.
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
    /// Where each loop is to begin on the circle of those that meet here.
    fn rotations(&self, tuning: &TrafficTuning, pulses: &[Pulse]) -> BTreeMap<usize, i128> {
        let here: Vec<Pulse> = self.loops.iter().map(|one| pulses[*one].over(&self.links)).collect();
        let (offsets, _) = rotations(tuning, &here);
        let offsets = offsets.into_iter().map(|offset| i128::from(offset.0));
        self.loops.iter().copied().zip(offsets).collect()
    }
}

/// Links that would not carry all bursts at once, with the loops that cross them.
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
