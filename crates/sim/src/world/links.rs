//! The network under the trainings: routes from their places, completions to the world, loads for the results.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::model::cluster::{Cluster, Level, Link, Vertex};
use metronome_core::model::id::LinkId;
use metronome_core::model::job::{JobSpec, RoleKind};
use metronome_core::model::policy::{Links, Policy};
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_core::network::routing::{PlacedMembers, Routing};
use metronome_core::network::{self, Completion, Contention, Network, Route, Sharing};
use metronome_core::traffic::TrafficPolicy;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::tuning::TrafficTuning;

use super::Keep;
use super::encounters::Encounters;
use super::training::{Member, Training};
use crate::encounter::{self, Encounter};
use crate::model::TrainingModel;
use crate::outcome::LinkLoad;
use crate::scenario::Scenario;

/// Pictures begin with bins of this width; long runs widen them.
const FIRST_BIN: Duration = Duration::SECOND;

pub(super) struct Wires {
    network: Network,
    wiring: Routing,
    /// What trainings may do on links, where that is not the default.
    lanes: BTreeMap<usize, TrafficPolicy>,
    lane_changes: u64,
    /// For pictures only, and only where jobs can be in each other's way.
    encounters: Option<Encounters>,
    tuning: TrafficTuning,
    finished: Option<Completion>,
    /// The completion that is being heard of.
    heard: Option<Completion>,
}

impl Wires {
    pub(super) fn of(scenario: &Scenario, policy: &Policy, keep: Keep) -> Self {
        let wiring = Routing::of(&scenario.cluster, scenario.within_node);
        let contention = match policy.links {
            Links::Ideal => Contention::None,
            Links::Shared
            | Links::Shift
            | Links::Weighted
            | Links::Classes
            | Links::Chosen
            | Links::Rotated
            | Links::Cushioned => Contention::Shared,
        };
        let mut network = Network::new(
            wiring.rates(),
            Sharing { contention, keeping: wiring.fabric().keeping(), ..Sharing::default() },
        );
        if keep == Keep::Pictures {
            network.record_loads(FIRST_BIN);
        }
        let pictured = keep == Keep::Pictures && contention == Contention::Shared;
        let encounters = pictured.then(|| Encounters::new(&policy.tuning.traffic));
        Self {
            network,
            wiring,
            lanes: BTreeMap::new(),
            lane_changes: 0,
            encounters,
            tuning: policy.tuning.traffic.clone(),
            finished: None,
            heard: None,
        }
    }

    /// Moves the network on to the first completion, or to `until`; for ever, if nothing else will happen. True if
    /// there is a completion to hear of.
    pub(super) fn run_until(&mut self, until: Option<Instant>) -> bool {
        if self.finished.is_none() {
            self.finished = self.network.run_until(until.unwrap_or(Instant(u64::MAX - 1)));
        }
        self.finished.is_some()
    }

    pub(super) fn finished_at(&self) -> Option<Instant> {
        self.finished.map(|finished| finished.at)
    }

    /// A training that is done by now.
    pub(super) fn next_finished(&mut self, now: Instant) -> Option<usize> {
        self.run_until(Some(now));
        self.heard = self.finished.take_if(|finished| finished.at <= now);
        self.heard.map(|heard| heard.key)
    }

    /// Begins the loop of a training whose members are all up, and of whom the slowest computes so much longer.
    pub(super) fn train(
        &mut self,
        now: Instant,
        (key, seed): (usize, u64),
        training: &mut Training,
        spec: &JobSpec,
        model: &TrainingModel,
        slowdown: f64,
    ) {
        let pattern = model.pattern.as_loop();
        let route =
            self.wiring.route(model.pattern.exchange(), &placed(&training.members, spec), training.held());
        let route = route.expect("a scenario joins all its nodes");
        training.iteration_alone = self.wiring.alone(&pattern, &route);
        if let Some(encounters) = &mut self.encounters {
            let (pattern, route) = (pattern.clone(), route.clone());
            let (alone, fingerprint) = (training.iteration_alone, pattern.fingerprint());
            encounters.begins(key, Flow { pattern, route, alone, fingerprint });
        }
        training.iteration_computed = self.wiring.alone(&pattern, &Route::nothing());
        let run = network::Training {
            pattern: if slowdown > 1.0 { Arc::new(pattern.slowed(slowdown)) } else { pattern },
            route,
            iterations: training.iterations_left(model.iterations),
            // A stream of its own for each job, and for each time it goes on.
            jitter: model.noise.stream(super::noise_seed(seed, key) ^ super::FIRST_START ^ training.epoch),
            traffic: self.lanes.get(&key).copied().unwrap_or_default(),
        };
        self.network.start(now, key, run);
    }

    /// From now on trainings do on links what these lanes say, and those that are not named share fairly.
    pub(super) fn keep_to_lanes(&mut self, now: Instant, lanes: BTreeMap<usize, TrafficPolicy>) {
        let before = std::mem::replace(&mut self.lanes, lanes);
        let given = self.lanes.iter().filter(|(key, lane)| before.get(key) != Some(lane));
        let taken = before.keys().filter(|key| !self.lanes.contains_key(key));
        let changes =
            given.map(|(key, lane)| (*key, *lane)).chain(taken.map(|key| (*key, TrafficPolicy::default())));
        let changes: Vec<(usize, TrafficPolicy)> = changes.collect();
        self.lane_changes += u64::from(!changes.is_empty());
        for (key, lane) in changes {
            self.network.set_traffic_policy(now, key, lane);
            if let Some(encounters) = &mut self.encounters {
                encounters.stands_otherwise(key);
            }
        }
    }

    /// Ends a loop; how many iterations it has done.
    pub(super) fn stop(&mut self, now: Instant, key: usize) -> u64 {
        if let Some(encounters) = &mut self.encounters {
            encounters.ends(key);
        }
        match self.heard.filter(|heard| heard.key == key) {
            Some(completion) => completion.iterations,
            None => self.network.stop(now, key).iterations,
        }
    }

    /// A link changes its rate, or goes back to its own; what it carries then.
    pub(super) fn set_rate(&mut self, now: Instant, link: LinkId, rate: Option<Bandwidth>) -> Bandwidth {
        let rate = rate.unwrap_or(self.wiring.rates()[link]);
        self.network.set_rate(now, link, rate);
        rate
    }

    /// Looks at who meets whom now, where that is kept.
    pub(super) fn look(&mut self, now: Instant) {
        if let Some(encounters) = &mut self.encounters {
            encounters.look(now, &self.lanes, self.wiring.rates());
        }
    }

    /// How jobs met on a link when it mattered most.
    pub(super) fn encounter(&self, cluster: &Cluster) -> Option<Encounter> {
        let fabric = self.wiring.fabric();
        let heights = fabric.elevations();
        let name = |link: LinkId| link_name(cluster, &heights, &fabric.links()[link]);
        let links = encounter::Links {
            named: fabric.links().len(),
            rates: self.wiring.rates(),
            name: &name,
            tuning: &self.tuning,
        };
        encounter::look(self.encounters.as_ref()?.best()?, &links)
    }

    /// What a link of the fabric is called.
    pub(super) fn name(&self, cluster: &Cluster, link: LinkId) -> String {
        let fabric = self.wiring.fabric();
        let name = |link: &Link| link_name(cluster, &fabric.elevations(), link);
        fabric.links().get(link).map_or_else(|| "a link inside a node".to_owned(), name)
    }

    /// How often lanes have changed.
    pub(super) fn lane_changes(&self) -> u64 {
        self.lane_changes
    }

    pub(super) fn events(&self) -> u64 {
        self.network.events()
    }

    /// What each link of the fabric carried, with the width of its bins.
    pub(super) fn loads(&mut self, cluster: &Cluster) -> (Duration, Vec<LinkLoad>) {
        let carried = self.network.carried();
        let history = self.network.loads();
        let heights = self.wiring.fabric().elevations();
        let lower = |link: &Link| height(&heights, link.from).min(height(&heights, link.to));
        let load = |(id, link): (LinkId, &Link)| LinkLoad {
            name: link_name(cluster, &heights, link),
            level: level_name(cluster, lower(link)),
            rate: link.rate,
            carried: carried[id],
            bins: history.as_ref().map(|history| history.bins(id).to_vec()).unwrap_or_default(),
        };
        let loads = self.wiring.fabric().links().iter().map(load).collect();
        (history.map(|history| history.width()).unwrap_or_default(), loads)
    }
}

/// The members of each role on each node. Where every member is a gang of its own, their order tells the role.
fn placed(members: &[Member], spec: &JobSpec) -> Vec<PlacedMembers> {
    let kinds: Vec<RoleKind> =
        spec.roles.iter().flat_map(|role| (0..role.gang.min()).map(|_| role.kind)).collect();
    let whole = members.len() == 1;
    let mut placed = Vec::new();
    for (index, member) in members.iter().enumerate() {
        for part in member.on.iter().flat_map(|on| on.parts()) {
            let kind = if whole { spec.roles[usize::from(part.role)].kind } else { kinds[index] };
            placed.push(PlacedMembers { kind, node: part.node, members: part.members });
        }
    }
    placed
}

type Heights = BTreeMap<Vertex, u32>;

fn height(heights: &Heights, vertex: Vertex) -> u32 {
    heights.get(&vertex).copied().unwrap_or(0)
}

/// By its lower end, and whether it leads up from there.
fn link_name(cluster: &Cluster, heights: &Heights, link: &Link) -> String {
    match height(heights, link.from) < height(heights, link.to) {
        true => format!("{} up", vertex_name(cluster, link.from)),
        false => format!("{} down", vertex_name(cluster, link.to)),
    }
}

fn vertex_name(cluster: &Cluster, vertex: Vertex) -> &str {
    match vertex {
        Vertex::Node(node) => &cluster.node(node).name,
        Vertex::Switch(_) => cluster.fabric.switch_name(vertex).unwrap_or("a switch"),
    }
}

/// The level that the lower end of a link stands for, so far above the nodes: links of a node, of a rack, …
fn level_name(cluster: &Cluster, height: u32) -> String {
    match u32::from(cluster.depth().0).checked_sub(height) {
        Some(level) => cluster.level_name(Level(level as u8)).to_owned(),
        None => format!("level {height}"),
    }
}
