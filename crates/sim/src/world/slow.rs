//! Nodes on which everything takes longer, and what members tell of that.
//!
//! A gang goes at the pace of its slowest member. What a member takes for its own part of an iteration is measured, never
//! exactly and at times far too long, and told every few seconds in runs in which some node is ever slow.

use metronome_core::engine::Event;
use metronome_core::model::id::NodeId;
use metronome_core::model::units::Duration;
use rand::RngExt;
use rand_pcg::Pcg64;

use super::agenda::Happening;
use super::{Keeping, World};
use crate::scenario::Fault;

/// Members tell so often.
const TOLD_EVERY: Duration = Duration(10 * Duration::SECOND.0);

/// What is measured is off by up to this part…
const OFF_BY: f64 = 0.1;

/// …and one measurement in so many is a spike, of so many times as much.
const SPIKE_IN: u32 = 20;
const SPIKE: f64 = 3.0;

/// An iteration of a job that says nothing about its iterations.
const SOME_ITERATION: Duration = Duration::SECOND;

/// The stream of random numbers for what is measured: one for each job, beside those of other purposes.
const MEASURED: u128 = 1 << 65;

impl World<'_> {
    /// Everything on a node takes so many times as long from now on.
    pub(super) fn slows(&mut self, node: NodeId, slowdown: f64) {
        self.slowdowns[node] = slowdown;
        let hit: Vec<usize> = (0..self.trainings.len())
            .filter(|index| self.trainings[*index].is_training() && self.trainings[*index].runs_on(node))
            .collect();
        for index in hit {
            self.halt(index, Keeping::Running);
            self.train_if_complete(index);
            self.note(index);
        }
    }

    /// How much longer a training takes where it is.
    pub(super) fn slowdown_of(&self, index: usize) -> f64 {
        self.trainings[index].on().into_iter().map(|node| self.slowdowns[node]).fold(1.0, f64::max)
    }

    /// The members of a training that has begun tell what they take, from a while later on.
    pub(super) fn listen_to_members(&mut self, index: usize) {
        let is_ever_slow = self.scenario.faults.iter().any(|fault| matches!(fault, Fault::Slow { .. }));
        if is_ever_slow && !self.split && !std::mem::replace(&mut self.trainings[index].members_tell, true) {
            self.agenda.add(self.now + TOLD_EVERY, Happening::MembersTell { training: index });
        }
    }

    /// Members tell what they took of late, now and for as long as they train.
    pub(super) fn members_tell(&mut self, index: usize) {
        let training = &mut self.trainings[index];
        training.members_tell = training.is_training() && !training.is_over();
        if !training.members_tell {
            return;
        }
        self.agenda.add(self.now + TOLD_EVERY, Happening::MembersTell { training: index });
        training.told += 1;
        let number = (u128::from(self.seed) << 64) | u128::from(training.told);
        let mut random = Pcg64::new(number, MEASURED + index as u128);
        let takes = self.own_part(index).as_secs_f64();
        let members =
            self.trainings[index].members.iter().filter_map(|member| Some((member.job?, &member.on)));
        let parts =
            members.flat_map(|(job, on)| on.iter().flat_map(|on| on.parts()).map(move |part| (job, *part)));
        for (job, part) in parts.collect::<Vec<_>>() {
            let spike = if random.random_range(0..SPIKE_IN) == 0 { SPIKE } else { 1.0 };
            let off = spike * random.random_range(1.0 - OFF_BY..1.0 + OFF_BY);
            let iteration = Duration((takes * self.slowdowns[part.node] * off * 1e9) as u64);
            let (role, node) = (part.role, part.node);
            self.engine.observe(self.now, Event::MemberTook { job, role, node, iteration });
        }
    }

    /// What a member of a training takes for its own part of an iteration where nothing is slow.
    fn own_part(&self, index: usize) -> Duration {
        let work = self.arrivals[index].spec.work;
        match (work.alone, work.iterations) {
            _ if self.trainings[index].model.is_some() => self.trainings[index].iteration_computed,
            (Some(alone), Some(all)) if all.0 > 0 => Duration(alone.0 / all.0),
            _ => SOME_ITERATION,
        }
    }
}
