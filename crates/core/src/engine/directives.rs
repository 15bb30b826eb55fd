//! Traffic policies and CPU weights on their way to nodes. Each change is a step; every node of the job applies it or fails, and
//! the engine asks again, with back-off, until all nodes have confirmed it. No other step of a job waits for a directive.

use std::collections::BTreeMap;

use super::Engine;
use super::directive::{Directive, NodeOutcome};
use super::index::Index;
use super::state::State;
use crate::model::cluster::Name;
use crate::model::id::{JobId, NodeId};
use crate::model::plan::{Action, Generation, Step, StepId};
use crate::model::report::{Failure, Unconfirmed};

/// Waits between attempts are doubled this many times at most.
const MAX_DOUBLINGS: u32 = 6;

impl Index {
    /// Takes a directive into the timers, and its job among those with unconfirmed ones.
    pub(super) fn track_directive(&mut self, id: JobId, directive: &Directive) {
        self.directive_retries.extend(directive.next_retry().map(|at| (at, id)));
        if !directive.is_confirmed() {
            self.unconfirmed.insert(id);
        }
    }

    fn untrack_directive(&mut self, id: JobId, directive: &Directive) {
        if let Some(at) = directive.next_retry() {
            self.directive_retries.remove(&(at, id));
        }
        self.unconfirmed.remove(&id);
    }

    /// Has the nodes of a job compared with its directive before the next steps go out.
    pub(super) fn recheck_directive(&mut self, state: &State, id: JobId) {
        let State { plan, directives, .. } = state;
        if plan.traffic.contains_key(&id) || plan.weights.contains_key(&id) || directives.contains_key(&id) {
            self.redirected.insert(id);
        }
    }
}

impl Engine {
    /// Steps for directives that have changed, or that nodes have not confirmed for long enough.
    pub(super) fn directive_steps(&mut self) -> Vec<Step> {
        for id in std::mem::take(&mut self.index.redirected) {
            self.renew_directive(id);
        }
        let mut steps = Vec::new();
        while let Some((at, id)) = self.index.directive_retries.first().copied() {
            if at > self.state.now {
                break;
            }
            match self.ask_for_directive(id) {
                Some(step) => steps.push(step),
                None => drop(self.index.directive_retries.remove(&(at, id))),
            }
        }
        steps
    }

    /// What the plan asks of the nodes of a job. Nodes that have confirmed it already are not asked again.
    fn renew_directive(&mut self, id: JobId) {
        let State { plan, now, .. } = &self.state;
        let known = self.state.directives.get(&id);
        let Some(planned) = plan.get(id) else { return self.forget_directive(id) };
        let (traffic, weight) = (plan.traffic_policy(id), plan.weight(id));
        let is_default = traffic.is_default() && weight.is_default();
        let same = known.filter(|known| (known.traffic, known.weight) == (traffic, weight));
        let awaited = NodeOutcome::Awaited { since: *now, attempts: 0, retry: *now, failure: None };
        // A withdrawal concerns nodes that were asked for something before.
        let concerned =
            |node: &NodeId| !is_default || known.is_some_and(|known| known.nodes.contains_key(node));
        let outcome = |node: NodeId| {
            let before = same.and_then(|same| same.nodes.get(&node));
            (node, before.unwrap_or(&awaited).clone())
        };
        let directive = Directive {
            generation: same.map_or(plan.generation(), |same| same.generation),
            traffic,
            weight,
            step: known.map(|known| known.step).unwrap_or_default(),
            nodes: planned.nodes().filter(concerned).map(outcome).collect(),
        };
        self.set_directive(id, directive);
    }

    fn set_directive(&mut self, id: JobId, directive: Directive) {
        self.forget_directive(id);
        if directive.nodes.is_empty() || directive.is_default() && directive.is_confirmed() {
            return;
        }
        self.index.track_directive(id, &directive);
        self.state.directives.insert(id, directive);
    }

    pub(super) fn forget_directive(&mut self, id: JobId) {
        if let Some(known) = self.state.directives.remove(&id) {
            self.index.untrack_directive(id, &known);
        }
    }

    /// One more attempt at the nodes of a job that are due.
    fn ask_for_directive(&mut self, id: JobId) -> Option<Step> {
        let (now, back_off) = (self.state.now, self.state.settings.back_off);
        let mut directive = self.state.directives.get(&id)?.clone();
        directive.step = self.state.next_step;
        self.state.next_step = StepId(directive.step.0 + 1);
        let mut nodes = Vec::new();
        for (node, outcome) in &mut directive.nodes {
            if let NodeOutcome::Awaited { attempts, retry, .. } = outcome
                && *retry <= now
            {
                *retry = now + back_off.times(1 << (*attempts).min(MAX_DOUBLINGS));
                *attempts = attempts.saturating_add(1);
                nodes.push(*node);
            }
        }
        let (traffic, weight) = (directive.traffic, directive.weight);
        let action = Action::Direct { nodes, traffic, weight };
        let step = Step { id: directive.step, generation: directive.generation, job: id, action };
        self.set_directive(id, directive);
        Some(step)
    }

    pub(super) fn directive_applied(&mut self, id: JobId, node: NodeId, generation: Generation) {
        self.note_outcome(id, node, generation, NodeOutcome::Applied);
    }

    /// A node could not apply a directive. The engine asks again when its back-off is over.
    pub(super) fn directive_failed(&mut self, id: JobId, node: NodeId, generation: Generation, why: Name) {
        let known = self.state.directives.get(&id).and_then(|known| known.nodes.get(&node));
        let Some(NodeOutcome::Awaited { since, attempts, retry, .. }) = known else { return };
        let (since, attempts, retry) = (*since, *attempts, *retry);
        let failure = Some(why);
        self.note_outcome(id, node, generation, NodeOutcome::Awaited { since, attempts, retry, failure });
    }

    /// An outcome of an older directive, or on a node that the job has left, changes nothing.
    fn note_outcome(&mut self, id: JobId, node: NodeId, generation: Generation, outcome: NodeOutcome) {
        let known = self.state.directives.get(&id).filter(|known| known.generation == generation);
        let Some(mut directive) = known.filter(|known| known.nodes.contains_key(&node)).cloned() else {
            return;
        };
        directive.nodes.insert(node, outcome);
        self.set_directive(id, directive);
    }

    /// Whether a step was the latest that asked for the directive of a job.
    fn is_directive(&self, id: JobId, step: StepId) -> bool {
        self.state.directives.get(&id).is_some_and(|known| known.step == step)
    }

    /// A world that does not tell nodes apart has applied the directive on all of them.
    pub(super) fn directive_step_done(&mut self, id: JobId, step: StepId) {
        if let Some(mut directive) =
            self.state.directives.get(&id).filter(|_| self.is_directive(id, step)).cloned()
        {
            directive.nodes.values_mut().for_each(|outcome| *outcome = NodeOutcome::Applied);
            self.set_directive(id, directive);
        }
    }

    pub(super) fn directive_step_failed(&mut self, id: JobId, step: StepId, why: Failure) {
        let Some(known) = self.state.directives.get(&id).filter(|_| self.is_directive(id, step)) else {
            return;
        };
        let (generation, nodes) = (known.generation, known.nodes.keys().copied().collect::<Vec<_>>());
        let why = Name::from(format!("{why:?}"));
        nodes.into_iter().for_each(|node| self.directive_failed(id, node, generation, why.clone()));
    }

    /// Nodes of a job that were asked for its directive and have not confirmed it.
    pub(super) fn unconfirmed_on(&self, id: JobId) -> Vec<Unconfirmed> {
        let Some(directive) = self.state.directives.get(&id) else { return Vec::new() };
        let outcomes = directive.nodes.iter().filter_map(|(node, outcome)| match outcome {
            NodeOutcome::Applied => None,
            NodeOutcome::Awaited { since, attempts, failure, .. } => (*attempts > 0).then(|| Unconfirmed {
                node: *node,
                since: *since,
                lasts: self.state.now.since(*since),
                failure: failure.clone(),
            }),
        });
        outcomes.collect()
    }

    /// The directives that nodes have applied or are asked for, by job.
    pub fn directives(&self) -> &BTreeMap<JobId, Directive> {
        &self.state.directives
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::{Event, Settings};
    use crate::model::cluster::{Cluster, NodeSpec};
    use crate::model::id::IdVec;
    use crate::model::job::{Gang, JobSpec, Life};
    use crate::model::policy::Policy;
    use crate::model::queue::Queue;
    use crate::model::units::{Duration, Gpus, Instant, Resources};
    use crate::traffic::TrafficPolicy;

    const BEHIND: TrafficPolicy = TrafficPolicy {
        class: 3,
        weight: 1,
        follows: crate::traffic::Follows::Nothing,
        turn: None,
        pace: None,
        rotation: None,
    };

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// A job that runs on two nodes and has just been given a traffic policy.
    fn directed() -> (Engine, JobId) {
        let each = Resources { gpus: Gpus::whole(1), ..Resources::NONE };
        let mut cluster = Cluster::new(&[]).unwrap();
        for name in ["one", "other", "third"] {
            cluster.add_node(&NodeSpec { name: name.into(), capacity: each, ..NodeSpec::default() }).unwrap();
        }
        let queues = IdVec::filled(Queue::open("default"), 1);
        let policy = Policy::named("fifo").unwrap();
        let mut engine = Engine::new(cluster, queues, policy, Settings::default());
        let spec = JobSpec::workers("job", Gang::rigid(2).unwrap(), each);
        let job = engine.submit(at(0), Arc::new(spec));
        for step in engine.poll(at(0)).into_inner() {
            engine.observe(at(0), Event::StepDone { job: step.job, step: step.id });
        }
        engine.poll(at(1));
        let mut state = engine.state().clone();
        state.plan.traffic.insert(job, BEHIND);
        (Engine::restore(state), job)
    }

    /// The nodes that are asked at a time.
    fn asked(engine: &mut Engine, at: Instant) -> Vec<NodeId> {
        let asks = |step: Step| match step.action {
            Action::Direct { nodes, traffic, .. } => {
                assert_eq!(traffic, BEHIND);
                nodes
            }
            other => panic!("{other:?} is no directive"),
        };
        engine.poll(at).into_inner().into_iter().flat_map(asks).collect()
    }

    fn applied(engine: &mut Engine, job: JobId, node: u32, now: Instant) {
        let generation = engine.directives()[&job].generation;
        engine.observe(now, Event::DirectiveApplied { job, node: NodeId(node), generation });
    }

    #[test]
    fn a_node_that_confirms_is_asked_once_and_others_again_with_back_off() {
        let (mut engine, job) = directed();
        assert_eq!(asked(&mut engine, at(1)), [NodeId(0), NodeId(1)]);
        applied(&mut engine, job, 0, at(1));
        assert_eq!(engine.next_wake(), Some(at(11)), "back-off of ten seconds");
        assert_eq!(asked(&mut engine, at(10)), []);
        assert_eq!(asked(&mut engine, at(11)), [NodeId(1)]);
        assert_eq!(engine.next_wake(), Some(at(31)), "and twice as long then");
        assert!(engine.index.unconfirmed.contains(&job));
        applied(&mut engine, job, 1, at(12));
        assert_eq!((engine.next_wake(), asked(&mut engine, at(600))), (None, vec![]));
        assert!(engine.index.unconfirmed.is_empty());
    }

    #[test]
    fn an_explanation_names_the_node_since_when_and_why() {
        let (mut engine, job) = directed();
        asked(&mut engine, at(1));
        applied(&mut engine, job, 0, at(1));
        let generation = engine.directives()[&job].generation;
        let reason = Name::from("no HTB root");
        engine.observe(
            at(5),
            Event::DirectiveFailed { job, node: NodeId(1), generation, reason: reason.clone() },
        );
        let explained = engine.explain(job).unwrap().unconfirmed;
        let lasts = Duration::from_secs(4);
        assert_eq!(explained, [Unconfirmed { node: NodeId(1), since: at(1), lasts, failure: Some(reason) }]);
        assert_eq!(asked(&mut engine, at(11)), [NodeId(1)], "a failed attempt is made again");
    }

    #[test]
    fn outcomes_of_older_directives_and_other_nodes_change_nothing() {
        let (mut engine, job) = directed();
        asked(&mut engine, at(1));
        let before = engine.directives().clone();
        let generation = Generation(before[&job].generation.0 + 1);
        for event in [
            Event::DirectiveApplied { job, node: NodeId(0), generation },
            Event::DirectiveApplied { job, node: NodeId(2), generation: before[&job].generation },
            Event::DirectiveApplied { job: JobId(9), node: NodeId(0), generation },
            Event::DirectiveFailed { job, node: NodeId(0), generation, reason: "late".into() },
        ] {
            engine.observe(at(2), event);
        }
        assert_eq!(*engine.directives(), before);
    }

    #[test]
    fn a_directive_never_holds_up_the_steps_of_its_job() {
        let (mut engine, job) = directed();
        asked(&mut engine, at(1));
        engine.observe(at(2), Event::JobSuspended(job));
        let steps = engine.poll(at(2)).into_inner();
        assert!(matches!(steps[..], [Step { action: Action::Suspend, .. }]), "{steps:?}");
        assert!(matches!(engine.life(job), Some(Life::Leaving { .. })));
        assert!(
            engine.directives().is_empty() && engine.next_wake() == Some(at(62)),
            "{:?}",
            engine.next_wake()
        );
    }
}
