//! Disruption budgets: how many pods of those it selects may be evicted now.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::{Engine, Event};
use metronome_core::model::id::BudgetId;
use metronome_core::model::units::Instant;

use super::World;
use crate::objects::{Budget, Pod};
use crate::rules::selector::{Selector, labels_of};
use crate::watch::Delta;

#[derive(Debug, Default)]
pub(super) struct Budgets {
    /// By namespace and name.
    known: BTreeMap<(String, String), (BudgetId, Selector)>,
    vacant: Vec<BudgetId>,
}

impl Budgets {
    /// The budgets that evicting any of these pods would draw on.
    pub(super) fn of(&self, pods: &[Arc<Pod>]) -> Vec<BudgetId> {
        let mut budgets: Vec<BudgetId> = pods.iter().flat_map(|pod| self.over(pod)).collect();
        budgets.sort_unstable();
        budgets.dedup();
        budgets
    }

    fn over<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = BudgetId> + 'a {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let here = self.known.iter().filter(move |((space, _), _)| space == namespace);
        let selects = |selector: &Selector| selector.matches(labels_of(&pod.metadata));
        here.filter(move |(_, (_, selector))| selects(selector)).map(|(_, (id, _))| *id)
    }

    fn apply(&mut self, engine: &mut Engine, now: Instant, budget: &Budget) -> bool {
        let allowed = u32::try_from(budget.status.disruptions_allowed).unwrap_or(0);
        // A selector that cannot be read selects everybody: then nobody is evicted by mistake.
        let selector = Selector::of(budget.spec.selector.as_ref()).unwrap_or(Selector::All(Vec::new()));
        let key = key(budget);
        match self.known.get_mut(&key) {
            Some((id, before)) => {
                engine.observe(now, Event::Budget { budget: *id, allowed });
                let changed = *before != selector;
                *before = selector;
                changed
            }
            None => {
                let id = match self.vacant.pop() {
                    Some(id) => {
                        engine.observe(now, Event::Budget { budget: id, allowed });
                        id
                    }
                    None => engine.add_budget(now, allowed),
                };
                self.known.insert(key, (id, selector));
                true
            }
        }
    }

    fn remove(&mut self, key: &(String, String)) -> bool {
        let gone = self.known.remove(key);
        self.vacant.extend(gone.iter().map(|(id, _)| *id));
        gone.is_some()
    }
}

fn key(budget: &Budget) -> (String, String) {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    (part(&budget.metadata.namespace), part(&budget.metadata.name))
}

impl World {
    pub(super) fn budgets_changed(&mut self, now: Instant, delta: Delta<Budget>) {
        let changed = match delta {
            Delta::Applied(budget) => self.budgets.apply(&mut self.engine, now, &budget),
            Delta::Deleted(budget) => self.budgets.remove(&key(&budget)),
            Delta::Reset(all) => {
                let there: Vec<_> = all.iter().map(key).collect();
                let gone: Vec<_> =
                    self.budgets.known.keys().filter(|key| !there.contains(key)).cloned().collect();
                let removed = gone.iter().filter(|key| self.budgets.remove(key)).count();
                let applied = all.iter().filter(|budget| self.budgets.apply(&mut self.engine, now, budget));
                removed + applied.count() > 0
            }
        };
        if changed {
            self.reassign_budgets(now);
        }
    }

    /// Which budgets a job draws on has changed. Budgets come and go rarely, so all jobs are asked.
    fn reassign_budgets(&mut self, now: Instant) {
        for (job, crew) in &self.crews {
            let pods: Vec<Arc<Pod>> =
                crew.members().filter_map(|member| Some(self.pods.get(&member.uid)?.pod.clone())).collect();
            let budgets = self.budgets.of(&pods);
            let Some(spec) = self.engine.job(*job).map(|job| job.spec.clone()) else { continue };
            if spec.budgets != budgets {
                let mut spec = (*spec).clone();
                spec.budgets = budgets;
                self.engine.observe(now, Event::JobChanged { job: *job, spec: Arc::new(spec) });
            }
        }
    }
}
