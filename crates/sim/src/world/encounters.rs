//! Who meets whom on links as a run goes on, for its pictures: one moment is remembered, that at which what was decided
//! about links was predicted to win most. Where nothing is ever won, it is that at which most is lost.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::model::cluster::Keeping;
use metronome_core::model::id::{IdVec, LinkId};
use metronome_core::model::units::{Bandwidth, Instant};
use metronome_core::traffic::TrafficPolicy;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::{Care, SlowdownModel};
use metronome_core::tuning::TrafficTuning;

use crate::encounter::Moment;

/// Where more jobs than these concern each other, predictions would take longer than the run.
const MOST_JOBS: usize = 256;

#[derive(Debug)]
pub(super) struct Encounters {
    /// The trainings that run now.
    flows: BTreeMap<usize, Flow>,
    /// Those that have begun, or stand otherwise among others, since somebody last looked.
    fresh: BTreeSet<usize>,
    foresight: SlowdownModel,
    best: Option<(Worth, Moment)>,
}

/// Iterations' worth of time, over all who are concerned. What wins more comes first, and of equals what loses more.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Worth {
    won: f64,
    lost: f64,
}

impl Encounters {
    /// Slowdowns are predicted with the numbers of the policy.
    pub(super) fn new(tuning: &TrafficTuning) -> Self {
        let foresight = SlowdownModel::of(Keeping::Exactly, tuning);
        Self { flows: BTreeMap::new(), fresh: BTreeSet::new(), foresight, best: None }
    }

    pub(super) fn begins(&mut self, key: usize, flow: Flow) {
        self.flows.insert(key, flow);
        self.fresh.insert(key);
    }

    pub(super) fn ends(&mut self, key: usize) {
        self.flows.remove(&key);
    }

    pub(super) fn stands_otherwise(&mut self, key: usize) {
        self.fresh.insert(key);
    }

    pub(super) fn best(&self) -> Option<&Moment> {
        self.best.as_ref().map(|(_, moment)| moment)
    }

    /// Looks at everybody for whom something has changed. Links have the rates that decisions take them to have.
    pub(super) fn look(
        &mut self,
        at: Instant,
        lanes: &BTreeMap<usize, TrafficPolicy>,
        rates: &IdVec<LinkId, Bandwidth>,
    ) {
        let mut fresh = std::mem::take(&mut self.fresh);
        let users = self.users();
        while let Some(key) = fresh.pop_first() {
            let met = self.met(key, &users);
            fresh.retain(|other| !met.contains(other));
            if (2..=MOST_JOBS).contains(&met.len()) {
                let lane = |key: &usize| lanes.get(key).copied().unwrap_or_default();
                let jobs = met.iter().map(|key| (*key, self.flows[key].clone(), lane(key))).collect();
                self.weigh(Moment { at, jobs }, rates);
            }
        }
    }

    fn weigh(&mut self, moment: Moment, rates: &IdVec<LinkId, Bandwidth>) {
        let mut slowdowns = |lane: &dyn Fn(TrafficPolicy) -> TrafficPolicy| -> f64 {
            let flows: Vec<(&Flow, TrafficPolicy)> =
                moment.jobs.iter().map(|(_, flow, own)| (flow, lane(*own))).collect();
            let slowdowns = self.foresight.slowdowns(&flows, Care::Look, |link| rates[link]);
            slowdowns.iter().map(|slowdown| slowdown - 1.0).sum()
        };
        let lost = slowdowns(&|_| TrafficPolicy::default());
        let won = (lost - slowdowns(&|own| own)).max(0.0);
        let worth = Worth { won, lost };
        if lost > 0.0 && self.best.as_ref().is_none_or(|(best, _)| worth > *best) {
            self.best = Some((worth, moment));
        }
    }

    fn users(&self) -> BTreeMap<LinkId, Vec<usize>> {
        let mut users: BTreeMap<LinkId, Vec<usize>> = BTreeMap::new();
        for (key, flow) in &self.flows {
            for (link, _) in flow.route.links() {
                users.entry(*link).or_default().push(*key);
            }
        }
        users
    }

    /// Everybody who shares a link with a training, directly or by way of others, and itself if it runs.
    fn met(&self, key: usize, users: &BTreeMap<LinkId, Vec<usize>>) -> BTreeSet<usize> {
        let mut met = BTreeSet::new();
        let mut crossed = BTreeSet::new();
        let mut ahead = vec![key];
        while let Some(key) = ahead.pop() {
            let Some(flow) = self.flows.get(&key).filter(|_| met.insert(key)) else { continue };
            for (link, _) in flow.route.links() {
                if crossed.insert(*link) {
                    ahead.extend(&users[link]);
                }
            }
        }
        met
    }
}
