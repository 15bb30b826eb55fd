//! The agents of nodes, which apply traffic policies: at once, or late, not at all, wrongly or in vain.

use std::collections::BTreeSet;

use metronome_core::engine::{Event, NodeOutcome};
use metronome_core::model::cluster::Name;
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::plan::Generation;
use metronome_core::model::units::Instant;
use metronome_core::traffic::TrafficPolicy;

use super::World;
use super::agenda::Happening;
use crate::scenario::{AgentFault, Fault};

/// What an agent says that fails.
const FAILURE: &str = "no HTB root";

/// What is wrong with agents, and where one has confirmed a directive that it has not applied.
#[derive(Debug, Default)]
pub(super) struct Agents {
    faults: Vec<(NodeId, Instant, Option<Instant>, AgentFault)>,
    wrong: BTreeSet<(JobId, NodeId)>,
}

impl Agents {
    pub(super) fn of(faults: &[Fault]) -> Self {
        let of_agents = faults.iter().filter_map(|fault| match *fault {
            Fault::Agent { node, at, lasts, what } => Some((node, at, lasts.map(|lasts| at + lasts), what)),
            _ => None,
        });
        Self { faults: of_agents.collect(), wrong: BTreeSet::new() }
    }

    fn are_well(&self) -> bool {
        self.faults.is_empty()
    }

    fn fault(&self, of: NodeId, now: Instant) -> Option<AgentFault> {
        let is_now = |at: Instant, end: Option<Instant>| at <= now && end.is_none_or(|end| now < end);
        let mut now = self.faults.iter().filter(|(node, at, end, _)| *node == of && is_now(*at, *end));
        now.next().map(|(.., what)| *what)
    }
}

impl World<'_> {
    /// Agents are asked for the directive of a job. Without a fault they apply it at once.
    pub(super) fn direct(&mut self, job: JobId, nodes: &[NodeId], generation: Generation) {
        for node in nodes.iter().copied() {
            let applied = Event::DirectiveApplied { job, node, generation };
            let fault = self.agents.fault(node, self.now);
            self.agents.wrong.remove(&(job, node));
            match fault {
                None => self.engine.observe(self.now, applied),
                Some(AgentFault::Late(delay)) => {
                    self.agenda.add(self.now + delay, Happening::IsTold(applied));
                }
                Some(AgentFault::Deaf) => {}
                Some(AgentFault::Wrong) => {
                    self.agents.wrong.insert((job, node));
                    self.engine.observe(self.now, applied);
                }
                Some(AgentFault::Fails) => {
                    let reason = Name::from(FAILURE);
                    let failed = Event::DirectiveFailed { job, node, generation, reason };
                    self.engine.observe(self.now, failed);
                }
            }
        }
        self.agents_have_acted();
    }

    /// Where agents may fail, links follow what these have applied.
    pub(super) fn agents_have_acted(&mut self) {
        if !self.agents.are_well() {
            self.keep_to_lanes();
        }
    }

    /// The traffic policy that a job has on its links: the planned one, where the agents of all its nodes have applied it.
    pub(super) fn in_effect(&self, job: JobId, planned: TrafficPolicy) -> TrafficPolicy {
        let is_applied = |(node, outcome): (&NodeId, &NodeOutcome)| {
            *outcome == NodeOutcome::Applied && !self.agents.wrong.contains(&(job, *node))
        };
        let directive = self.engine.directives().get(&job).filter(|known| known.traffic == planned);
        let is_in_effect = directive.is_some_and(|known| known.nodes.iter().all(is_applied));
        if self.agents.are_well() || is_in_effect { planned } else { TrafficPolicy::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_an_agent_is_over_in_time_and_of_its_node_alone() {
        let deaf = Fault::Agent {
            node: NodeId(1),
            at: Instant::from_secs(10),
            lasts: Some(metronome_core::model::units::Duration::from_secs(5)),
            what: AgentFault::Deaf,
        };
        let agents = Agents::of(&[deaf]);
        let at = |node, seconds| agents.fault(NodeId(node), Instant::from_secs(seconds));
        assert_eq!(
            [at(1, 9), at(1, 10), at(1, 14), at(1, 15)].map(|fault| fault.is_some()),
            [false, true, true, false]
        );
        assert_eq!(at(0, 12), None);
        assert!(Agents::of(&[]).are_well() && !agents.are_well());
    }
}
