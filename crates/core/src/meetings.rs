//! Who meets whom on links, as planned.
//!
//! Each job in the plan that is known to exchange something is a *flow*: a loop with its route. Flows that share a link,
//! directly or by way of others, concern each other; all others do not.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::foresight::{Care, Foresight};
use crate::id::{IdVec, JobId, LinkId};
use crate::job::JobSpec;
use crate::lane::Lane;
use crate::network::{Pattern, Route, bytes_per_nano};
use crate::plan::Assignment;
use crate::units::Duration;
use crate::wiring::{Placed, Wiring};

/// A training loop at its place.
#[derive(Clone, Debug)]
pub struct Flow {
    pub pattern: Arc<Pattern>,
    pub route: Route,
    /// How long an iteration takes there without others.
    pub alone: Duration,
    /// A number for what it does in an iteration, equal for equal patterns.
    pub fingerprint: u64,
}

impl Flow {
    /// Whether it never leaves a node.
    pub fn is_local(&self) -> bool {
        self.route.links().is_empty()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Meetings {
    wiring: Arc<Wiring>,
    flows: BTreeMap<JobId, Flow>,
    /// Who crosses each link, in order of id.
    users: IdVec<LinkId, Vec<JobId>>,
    /// What was found out about them. An answer follows from the question alone, so remembering it changes nothing.
    foresight: RefCell<Foresight>,
}

impl Meetings {
    pub fn of(cluster: &Cluster) -> Self {
        let wiring = Arc::new(Wiring::of(cluster, None));
        let users = IdVec::filled(Vec::new(), wiring.rates().len());
        Self { wiring, flows: BTreeMap::new(), users, foresight: RefCell::default() }
    }

    /// Whether nothing is known of links, so that nobody meets anybody.
    pub fn knows_no_links(&self) -> bool {
        self.users.is_empty()
    }

    pub fn flows(&self) -> impl Iterator<Item = (JobId, &Flow)> {
        self.flows.iter().map(|(job, flow)| (*job, flow))
    }

    pub fn flow(&self, job: JobId) -> Option<&Flow> {
        self.flows.get(&job)
    }

    /// What a job would put on links at a place; nothing where that is not known, or never leaves a node.
    pub fn flow_at(&self, spec: &JobSpec, pattern: &Arc<Pattern>, place: &Assignment) -> Option<Flow> {
        let exchange = spec.profile.as_ref()?.exchange()?;
        let placed: Vec<Placed> = place
            .parts()
            .iter()
            .map(|part| Placed {
                kind: spec.roles[usize::from(part.role)].kind,
                node: part.node,
                members: part.members,
            })
            .collect();
        let route = self.wiring.route(exchange, &placed, place.total().gpus).ok()?;
        let alone = self.wiring.alone(pattern, &route);
        Some(Flow { fingerprint: pattern.fingerprint(), pattern: pattern.clone(), route, alone })
    }

    pub(crate) fn join(&mut self, job: JobId, spec: &JobSpec, place: &Assignment) {
        if self.knows_no_links() {
            return;
        }
        let flow = pattern_of(spec).and_then(|pattern| self.flow_at(spec, &pattern, place));
        let Some(flow) = flow else { return };
        for (link, _) in flow.route.links() {
            let users = &mut self.users[*link];
            if let Err(at) = users.binary_search(&job) {
                users.insert(at, job);
            }
        }
        self.flows.insert(job, flow);
    }

    pub(crate) fn leave(&mut self, job: JobId) {
        let Some(flow) = self.flows.remove(&job) else { return };
        for (link, _) in flow.route.links() {
            self.users[*link].retain(|user| *user != job);
        }
    }

    /// For each flow, how long an iteration takes among the others, over alone, if nothing is done about it.
    pub fn slowdowns(&self, flows: &[&Flow]) -> Vec<f64> {
        let fair: Vec<(&Flow, Lane)> = flows.iter().map(|flow| (*flow, Lane::default())).collect();
        self.foresight.borrow_mut().slowdowns(&fair, Care::Glance, |link| self.wiring.rates()[link])
    }

    /// The same at a closer look, if each keeps to its lane.
    pub fn slowdowns_in_lanes(&self, flows: &[(&Flow, Lane)]) -> Vec<f64> {
        self.foresight.borrow_mut().slowdowns(flows, Care::Look, |link| self.wiring.rates()[link])
    }

    /// Jobs that share links, directly or by way of others, in order of id; those that share with nobody are not named.
    pub fn components(&self) -> Vec<Vec<JobId>> {
        let mut seen: BTreeSet<JobId> = BTreeSet::new();
        let mut components = Vec::new();
        for (job, flow) in &self.flows {
            if flow.is_local() || seen.contains(job) {
                continue;
            }
            let mut met = self.met_on(&flow.route, |other| other == *job);
            met.insert(*job);
            seen.extend(met.iter().copied());
            if met.len() > 1 {
                components.push(met.into_iter().collect());
            }
        }
        components
    }

    /// When in an iteration a flow sends that has its route for itself.
    pub fn sends(&self, flow: &Flow) -> Vec<(Duration, Duration)> {
        self.best_rate(flow).map_or_else(Vec::new, |rate| flow.pattern.sends(rate))
    }

    /// The part of each link on its route that a flow takes while it sends by itself.
    pub fn demands(&self, flow: &Flow) -> Vec<(LinkId, f64)> {
        let Some(rate) = self.best_rate(flow) else { return Vec::new() };
        let part = |(link, load): &(LinkId, f64)| (*link, rate * load / self.capacity(*link));
        flow.route.links().iter().map(part).collect()
    }

    /// Bytes of gradient a nanosecond; none where nothing is sent, or a link is down.
    fn best_rate(&self, flow: &Flow) -> Option<f64> {
        let rates = flow.route.links().iter().map(|(link, load)| self.capacity(*link) / load);
        rates.min_by(f64::total_cmp).filter(|rate| *rate > 0.0)
    }

    fn capacity(&self, link: LinkId) -> f64 {
        bytes_per_nano(self.wiring.rates()[link])
    }

    /// Everybody who shares a link with such a route, directly or by way of others, with those thought away who are
    /// gone.
    pub fn met_on(&self, route: &Route, gone: impl Fn(JobId) -> bool) -> BTreeSet<JobId> {
        let mut met: BTreeSet<JobId> = BTreeSet::new();
        let mut crossed: BTreeSet<LinkId> = BTreeSet::new();
        let mut ahead: Vec<LinkId> = route.links().iter().map(|(link, _)| *link).collect();
        while let Some(link) = ahead.pop() {
            if !crossed.insert(link) {
                continue;
            }
            for user in self.users[link].iter().filter(|user| !gone(**user)) {
                if met.insert(*user) {
                    ahead.extend(self.flows[user].route.links().iter().map(|(link, _)| *link));
                }
            }
        }
        met
    }
}

/// What a job does in each iteration, as the network runs it; none where that is not known or cannot be.
pub fn pattern_of(spec: &JobSpec) -> Option<Arc<Pattern>> {
    Pattern::of(spec.profile.as_ref()?.exchange()?).ok().map(Arc::new)
}
