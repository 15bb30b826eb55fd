//! The contention graph: which jobs of the plan share links.
//!
//! Each planned job with a known traffic pattern is a *flow*: a training loop with its route. Flows that share a link, directly
//! or through other flows, are one component; flows of different components do not affect each other.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::cluster::{Cluster, Keeping, Link, Vertex};
use crate::model::id::{IdVec, JobId, LinkId, NodeId};
use crate::model::job::JobSpec;
use crate::model::plan::Assignment;
use crate::model::profile::ring_load;
use crate::model::units::{Bandwidth, Duration};
use crate::network::routing::{PlacedMembers, Routing};
use crate::network::{Pattern, Route, bytes_per_nano};
use crate::traffic::TrafficPolicy;
use crate::traffic::circle::Pulse;
use crate::traffic::slowdown_model::{Care, SlowdownModel};
use crate::tuning::TrafficTuning;

/// The iteration time of a flow that waits for a link which is down.
const NEVER_ENDS: Duration = Duration(u64::MAX);

/// A training loop with its route.
#[derive(Clone, Debug)]
pub struct Flow {
    pub pattern: Arc<Pattern>,
    pub route: Route,
    /// The time of an iteration without contention.
    pub alone: Duration,
    /// A number that is equal for equal patterns.
    pub fingerprint: u64,
}

impl Flow {
    /// Whether the flow crosses no link.
    pub fn is_local(&self) -> bool {
        self.route.links().is_empty()
    }

    /// The bursts of an iteration without contention, from and to.
    pub fn sends(&self, rates: &IdVec<LinkId, Bandwidth>) -> Vec<(Duration, Duration)> {
        self.best_rate(rates).map_or_else(Vec::new, |rate| self.pattern.sends(rate))
    }

    /// The share of each link on its route that a burst takes without contention.
    pub fn demands(&self, rates: &IdVec<LinkId, Bandwidth>) -> Vec<(LinkId, f64)> {
        let Some(rate) = self.best_rate(rates) else { return Vec::new() };
        let part = |(link, load): &(LinkId, f64)| (*link, rate * load / bytes_per_nano(rates[*link]));
        self.route.links().iter().map(part).collect()
    }

    /// Bytes of gradient a nanosecond without contention; none where the flow sends nothing or a link is down.
    fn best_rate(&self, rates: &IdVec<LinkId, Bandwidth>) -> Option<f64> {
        let each = self.route.links().iter().map(|(link, load)| bytes_per_nano(rates[*link]) / load);
        each.min_by(f64::total_cmp).filter(|rate| *rate > 0.0)
    }

    /// Whether a link on the route is down: the flow then sends nothing and slows no other flow.
    pub fn is_stalled(&self) -> bool {
        self.alone == NEVER_ENDS
    }
}

#[derive(Clone, Debug, Default)]
pub struct ContentionGraph {
    tuning: TrafficTuning,
    routing: Arc<Routing>,
    flows: BTreeMap<JobId, Flow>,
    /// The jobs that cross each link, in order of id.
    users: IdVec<LinkId, Vec<JobId>>,
    /// Predicts and remembers slowdowns. An answer depends on the question alone, so a remembered one changes no decision.
    slowdown_model: RefCell<SlowdownModel>,
}

impl ContentionGraph {
    pub fn of(cluster: &Cluster, tuning: &TrafficTuning) -> Self {
        let routing = Arc::new(Routing::of(cluster, None));
        let users = IdVec::filled(Vec::new(), routing.rates().len());
        let slowdown_model = RefCell::new(SlowdownModel::of(routing.fabric().keeping(), tuning));
        Self { tuning: tuning.clone(), routing, flows: BTreeMap::new(), users, slowdown_model }
    }

    /// Predictions follow this table from now on; earlier ones are forgotten.
    pub(crate) fn tune(&mut self, tuning: &TrafficTuning) {
        self.tuning = tuning.clone();
        *self.slowdown_model.get_mut() = SlowdownModel::of(self.keeping(), tuning);
    }

    /// Whether the cluster has no links, so that no jobs share any.
    pub fn has_no_links(&self) -> bool {
        self.users.is_empty()
    }

    pub fn flows(&self) -> impl Iterator<Item = (JobId, &Flow)> {
        self.flows.iter().map(|(job, flow)| (*job, flow))
    }

    pub fn flow(&self, job: JobId) -> Option<&Flow> {
        self.flows.get(&job)
    }

    /// The flow of a job at a place; none where its traffic is unknown or has no route.
    pub fn flow_at(&self, spec: &JobSpec, pattern: &Arc<Pattern>, place: &Assignment) -> Option<Flow> {
        let exchange = spec.profile.as_ref()?.exchange()?;
        let placed: Vec<PlacedMembers> = place
            .parts()
            .iter()
            .map(|part| PlacedMembers {
                kind: spec.roles[usize::from(part.role)].kind,
                node: part.node,
                members: part.members,
            })
            .collect();
        let route = self.routing.route(exchange, &placed, place.total().gpus).ok()?;
        let alone = self.routing.alone(pattern, &route);
        Some(Flow { fingerprint: pattern.fingerprint(), pattern: pattern.clone(), route, alone })
    }

    pub(crate) fn join(&mut self, job: JobId, spec: &JobSpec, place: &Assignment) {
        if self.has_no_links() {
            return;
        }
        let flow = pattern_of(spec).and_then(|pattern| self.flow_at(spec, &pattern, place));
        if let Some(flow) = flow {
            self.put(job, flow);
        }
    }

    /// Adds a flow. A stalled flow is not counted on its links.
    fn put(&mut self, job: JobId, flow: Flow) {
        let crossed = if flow.is_stalled() { &[][..] } else { flow.route.links() };
        for (link, _) in crossed {
            let users = &mut self.users[*link];
            if let Err(at) = users.binary_search(&job) {
                users.insert(at, job);
            }
        }
        self.flows.insert(job, flow);
    }

    /// Updates the routes after a node joined the cluster or was plugged in elsewhere. The caller adds its jobs again.
    pub(crate) fn catch_up(&mut self, cluster: &Cluster, node: NodeId) {
        if cluster.fabric.is_empty() {
            return;
        }
        Arc::make_mut(&mut self.routing).catch_up(cluster, node);
        while self.users.len() < self.routing.rates().len() {
            self.users.push(Vec::new());
        }
    }

    /// Sets the rate of a link.
    pub(crate) fn set_rate(&mut self, link: LinkId, rate: Bandwidth) {
        Arc::make_mut(&mut self.routing).set_rate(link, rate);
        let crosses = |flow: &Flow| flow.route.links().iter().any(|(crossed, _)| *crossed == link);
        let crossing = self.flows.iter().filter(|(_, flow)| crosses(flow));
        let changed: Vec<(JobId, Flow)> = crossing.map(|(job, flow)| (*job, flow.clone())).collect();
        for (job, flow) in changed {
            self.leave(job);
            let alone = self.routing.alone(&flow.pattern, &flow.route);
            self.put(job, Flow { alone, ..flow });
        }
    }

    pub(crate) fn leave(&mut self, job: JobId) {
        let Some(flow) = self.flows.remove(&job) else { return };
        for (link, _) in flow.route.links() {
            self.users[*link].retain(|user| *user != job);
        }
    }

    /// How links carry out traffic policies.
    pub fn keeping(&self) -> Keeping {
        self.routing.fabric().keeping()
    }

    /// The slowdown of each flow under fair sharing.
    pub fn slowdowns(&self, flows: &[&Flow], care: Care) -> Vec<f64> {
        let fair: Vec<(&Flow, TrafficPolicy)> =
            flows.iter().map(|flow| (*flow, TrafficPolicy::default())).collect();
        self.slowdown_model.borrow_mut().slowdowns(&fair, care, |link| self.routing.rates()[link])
    }

    /// The slowdown of each flow in its traffic policy, at a closer look.
    pub fn slowdowns_under(&self, flows: &[(&Flow, TrafficPolicy)]) -> Vec<f64> {
        self.slowdown_model.borrow_mut().slowdowns(flows, Care::Look, |link| self.routing.rates()[link])
    }

    /// The components of the graph with more than one job, each in order of id.
    pub fn components(&self) -> Vec<Vec<JobId>> {
        let mut seen: BTreeSet<JobId> = BTreeSet::new();
        let mut components = Vec::new();
        for (job, flow) in &self.flows {
            if flow.is_local() || flow.is_stalled() || seen.contains(job) {
                continue;
            }
            let mut met = self.jobs_sharing_links(&flow.route, |other| other == *job);
            met.insert(*job);
            seen.extend(met.iter().copied());
            if met.len() > 1 {
                components.push(met.into_iter().collect());
            }
        }
        components
    }

    /// The bursts of an iteration without contention, from and to.
    pub fn sends(&self, flow: &Flow) -> Vec<(Duration, Duration)> {
        flow.sends(self.routing.rates())
    }

    /// The share of each link on its route that a burst takes without contention.
    pub fn demands(&self, flow: &Flow) -> Vec<(LinkId, f64)> {
        flow.demands(self.routing.rates())
    }

    /// The sum of the peak shares of a link over the jobs that cross it, as if all sent at once without contention.
    pub fn peaks_on(&self, link: LinkId, gone: &[JobId]) -> f64 {
        let there = self.users[link].iter().filter(|user| !gone.contains(user));
        let part = |flow: &Flow| {
            Some(flow.best_rate(self.routing.rates())? * flow.route.load_on(link) / self.capacity(link))
        };
        there.filter_map(|user| part(&self.flows[user])).sum()
    }

    /// The jobs that cross a link, in order of id.
    pub fn users(&self, link: LinkId) -> &[JobId] {
        &self.users[link]
    }

    /// The iteration of a flow without contention, for a circle.
    pub fn pulse(&self, flow: &Flow) -> Pulse {
        Pulse::new(&self.tuning, flow.alone, self.sends(flow), self.demands(flow))
    }

    /// The average utilisation of each node's links by the flows that cross them: that of its most used link.
    pub fn average_utilisation(&self) -> BTreeMap<NodeId, f64> {
        let mut used: BTreeMap<LinkId, f64> = BTreeMap::new();
        for flow in self.flows.values() {
            for (link, load) in flow.route.links() {
                *used.entry(*link).or_default() += self.average(&flow.pattern, flow.alone, (*link, *load));
            }
        }
        let mut nodes: BTreeMap<NodeId, f64> = BTreeMap::new();
        for (node, link) in used.keys().filter_map(|link| Some((self.node_at(*link)?, *link))) {
            let most = nodes.entry(node).or_default();
            *most = most.max(used[&link]);
        }
        nodes
    }

    /// The share of a link that a loop of such iterations takes on average.
    fn average(&self, pattern: &Pattern, alone: Duration, (link, load): (LinkId, f64)) -> f64 {
        pattern.bytes() * load / (self.capacity(link) * alone.0.max(1) as f64)
    }

    /// The share of a node's own link that a member of a ring of this size needs on average.
    pub fn average_need(&self, node: NodeId, pattern: &Pattern, members: u32) -> f64 {
        let links = self.routing.fabric().links();
        let Some((link, _)) = links.iter().find(|(_, link)| link.from == Vertex::Node(node)) else {
            return 0.0;
        };
        let crossed = (link, ring_load(members));
        let alone = self.routing.alone(pattern, &Route::over(&[crossed]));
        self.average(pattern, alone, crossed)
    }

    /// The node that a link attaches.
    fn node_at(&self, link: LinkId) -> Option<NodeId> {
        let Link { from, to, .. } = self.routing.fabric().links().get(link)?;
        [from, to].into_iter().find_map(|end| match end {
            Vertex::Node(node) => Some(*node),
            Vertex::Switch(_) => None,
        })
    }

    /// The rate of a link.
    pub fn rate(&self, link: LinkId) -> Bandwidth {
        self.routing.rates()[link]
    }

    fn capacity(&self, link: LinkId) -> f64 {
        bytes_per_nano(self.rate(link))
    }

    /// The jobs that share a link with a route, directly or through other jobs, except those that are `gone`.
    pub fn jobs_sharing_links(&self, route: &Route, gone: impl Fn(JobId) -> bool) -> BTreeSet<JobId> {
        self.met_while_fewer(usize::MAX, route, gone)
    }

    /// As [`Self::jobs_sharing_links`], but through other jobs only while fewer than a crowd are found: in a crowd, a job that shares no
    /// link with a route is hardly affected by it.
    pub fn jobs_sharing_links_nearby(&self, route: &Route, gone: impl Fn(JobId) -> bool) -> BTreeSet<JobId> {
        self.met_while_fewer(self.tuning.crowd_size, route, gone)
    }

    /// Breadth first: jobs that share a link, jobs that share a link with those, and so on.
    fn met_while_fewer(&self, most: usize, route: &Route, gone: impl Fn(JobId) -> bool) -> BTreeSet<JobId> {
        let mut met: BTreeSet<JobId> = BTreeSet::new();
        let mut crossed: BTreeSet<LinkId> = BTreeSet::new();
        let mut ring: Vec<LinkId> = route.links().iter().map(|(link, _)| *link).collect();
        while !ring.is_empty() && met.len() < most {
            ring.retain(|link| crossed.insert(*link));
            let users = ring.iter().flat_map(|link| &self.users[*link]).filter(|user| !gone(**user));
            let new: Vec<JobId> = users.filter(|user| met.insert(**user)).copied().collect();
            let links = new.iter().flat_map(|user| self.flows[user].route.links());
            ring = links.map(|(link, _)| *link).filter(|link| !crossed.contains(link)).collect();
        }
        met
    }
}

/// The traffic pattern of a job, as the network runs it; none where it is unknown or invalid.
pub fn pattern_of(spec: &JobSpec) -> Option<Arc<Pattern>> {
    Pattern::of(spec.profile.as_ref()?.exchange()?).ok().map(Arc::new)
}
