//! The cores of nodes, shared by jobs that can use more than they ask for: by weight, and by how much each can use.
//!
//! Whenever somebody comes, goes or has another weight, everybody on that node goes on at another pace; and where a gang has
//! members on several nodes, everybody on those.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::engine::Event;
use metronome_core::model::cpu_weight::CpuWeight;
use metronome_core::model::id::NodeId;
use metronome_core::model::units::{Cpu, Duration, Iterations, Share};
use metronome_core::observe::progress::{Sample, WorkPace};
use metronome_core::observe::scaling::Speed;
use rand_pcg::Pcg64;

use super::World;
use super::agenda::Happening;

/// The stream of random numbers for what jobs report: one for each job, beside those of other purposes.
const REPORTS: u128 = 1 << 64;

/// One of those who share a node.
#[derive(Clone, Copy, Debug)]
struct Claim {
    training: usize,
    most: f64,
    weight: f64,
}

impl World<'_> {
    /// Those who train on a node and share its cores: a gang over several nodes with the members that are there.
    fn claims_on(&self, node: NodeId) -> Vec<Claim> {
        let sharing = self.trainings.iter().enumerate().filter(|(_, training)| training.is_training());
        let here = sharing.filter(|(_, training)| training.lesson.is_some() && training.runs_on(node));
        here.map(|(index, training)| Claim {
            training: index,
            most: self.arrivals[index].spec.work.cpu.unwrap_or_default().0 as f64 * training.part_on(node),
            weight: f64::from(training.weight.get()),
        })
        .collect()
    }

    /// Everybody on these nodes goes on with what it gets of the cores now.
    pub(super) fn share_cores(&mut self, nodes: &[NodeId]) {
        let nodes = self.joined_by_gangs(nodes);
        let alone = self.speeds(&nodes, &BTreeMap::new());
        let gangs: BTreeMap<usize, f64> = alone
            .iter()
            .filter(|(index, _)| self.is_apart(**index))
            .map(|(index, speed)| (*index, *speed))
            .collect();
        // What a gang leaves on one node, because it waits for a member on another, is for the others there.
        let speeds = if gangs.is_empty() { alone } else { self.speeds(&nodes, &gangs) };
        for (index, speed) in speeds {
            let speed = speed / self.slowdown_of(index) * f64::from(Share::WHOLE.0);
            self.go_on_at(index, WorkPace::at(Speed(speed.round().max(1.0) as u64)));
        }
    }

    /// Whether it shares cores on several nodes.
    fn is_apart(&self, index: usize) -> bool {
        self.trainings[index].lesson.is_some() && self.trainings[index].on().len() > 1
    }

    /// These nodes and all on which somebody may be faster or slower for what changes there.
    fn joined_by_gangs(&self, nodes: &[NodeId]) -> BTreeSet<NodeId> {
        let mut joined: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let gangs: Vec<Vec<NodeId>> = (0..self.trainings.len())
            .filter(|index| self.trainings[*index].is_training() && self.is_apart(*index))
            .map(|index| self.trainings[index].on())
            .collect();
        loop {
            let before = joined.len();
            for on in &gangs {
                if on.iter().any(|node| joined.contains(node)) {
                    joined.extend(on);
                }
            }
            if joined.len() == before {
                return joined;
            }
        }
    }

    /// How fast those on these nodes go, of what they could with all the cores they can use: a gang as fast as its slowest
    /// member, and those that are named use no more than they need to be so fast.
    fn speeds(&self, nodes: &BTreeSet<NodeId>, at_most: &BTreeMap<usize, f64>) -> BTreeMap<usize, f64> {
        let mut speeds: BTreeMap<usize, f64> = BTreeMap::new();
        for node in nodes {
            let capacity = self.scenario.cluster.node(*node).capacity.cpu.0 as f64;
            let claims = self.claims_on(*node);
            let part = |claim: &Claim| at_most.get(&claim.training).copied().unwrap_or(1.0);
            let wanted: Vec<Claim> =
                claims.iter().map(|claim| Claim { most: claim.most * part(claim), ..*claim }).collect();
            for (claim, has) in claims.iter().zip(shares(&wanted, capacity)) {
                let speed = speeds.entry(claim.training).or_insert(f64::INFINITY);
                *speed = speed.min(has / claim.most);
            }
        }
        speeds
    }

    fn go_on_at(&mut self, index: usize, pace: WorkPace) {
        let training = &mut self.trainings[index];
        if training.repaced(self.now, pace) {
            let (left, epoch) = (training.time_left(), training.epoch);
            self.agenda.add(self.now + left, Happening::Finishes { training: index, epoch });
        }
    }

    /// Weights are as they were decided before anything that was decided with them happens.
    pub(super) fn keep_to_weights(&mut self) {
        let decided: BTreeMap<usize, CpuWeight> = self
            .engine
            .state()
            .plan
            .weights()
            .iter()
            .map(|(job, weight)| (self.owners[*job].training, *weight))
            .collect();
        let mut changed = Vec::new();
        for (index, training) in self.trainings.iter_mut().enumerate().filter(|(_, one)| one.lesson.is_some())
        {
            let weight = decided.get(&index).copied().unwrap_or_default();
            if std::mem::replace(&mut training.weight, weight) != weight && training.is_training() {
                changed.extend(training.on());
            }
        }
        changed.sort_unstable();
        changed.dedup();
        self.share_cores(&changed);
    }

    /// A job tells what it has done and learned, now and for as long as it trains.
    pub(super) fn tells_what_it_learns(&mut self, index: usize) {
        let training = &mut self.trainings[index];
        training.tells = training.is_training() && !training.is_over();
        let Some(lesson) = training.lesson.clone().filter(|_| training.tells) else { return };
        self.agenda.add(self.now + lesson.learns.every, Happening::Learns { training: index });
        let part = training.part_done(self.now);
        let number = training.reported;
        training.reported += 1;
        let mut random =
            Pcg64::new((u128::from(self.seed) << 64) | u128::from(number), REPORTS + index as u128);
        let sample = Sample {
            at: self.now,
            iterations: Iterations((part * lesson.learns.iterations as f64) as u64),
            loss: Some(lesson.learns.reported(part, &mut random)),
            used: Some(self.used(index)),
        };
        let jobs: Vec<_> = self.trainings[index].members.iter().filter_map(|member| member.job).collect();
        for job in jobs {
            self.engine.observe(self.now, Event::Progress { job, sample });
        }
    }

    /// Core-time of what it has done.
    fn used(&self, index: usize) -> Duration {
        let most = self.arrivals[index].spec.work.cpu.unwrap_or_default();
        let alone = self.trainings[index].executed(self.now);
        Duration((u128::from(alone.0) * u128::from(most.0) / u128::from(Cpu::cores(1).0)) as u64)
    }
}

/// What each gets: in proportion to weights, and what somebody cannot use goes to the others.
fn shares(claims: &[Claim], capacity: f64) -> Vec<f64> {
    let mut has = vec![0.0; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).collect();
    let mut free = capacity;
    while !open.is_empty() {
        let weights: f64 = open.iter().map(|at| claims[*at].weight).sum();
        let fair = |at: usize| free * claims[at].weight / weights;
        let (full, rest): (Vec<usize>, Vec<usize>) =
            open.iter().copied().partition(|at| fair(*at) >= claims[*at].most);
        if full.is_empty() {
            rest.iter().for_each(|at| has[*at] = fair(*at));
            break;
        }
        for at in full {
            has[at] = claims[at].most;
            free -= claims[at].most;
        }
        open = rest;
    }
    has
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(most: f64, weight: f64) -> Claim {
        Claim { training: 0, most, weight }
    }

    #[test]
    fn cores_are_shared_by_weight_up_to_what_each_can_use() {
        assert_eq!(shares(&[claim(8.0, 1.0), claim(8.0, 3.0)], 8.0), [2.0, 6.0]);
        assert_eq!(shares(&[claim(8.0, 1.0), claim(4.0, 3.0)], 8.0), [4.0, 4.0]);
        assert_eq!(shares(&[claim(1.0, 1.0), claim(2.0, 1.0)], 8.0), [1.0, 2.0]);
    }

    #[test]
    fn nobody_gets_nothing() {
        let has = shares(&[claim(8.0, 10_000.0), claim(8.0, 100.0)], 8.0);
        assert!(has[1] > 0.05, "{has:?}");
    }
}
