//! Whether a job could ever run on the empty cluster.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::model::cluster::{Cluster, Level, Node};
use metronome_core::model::id::GpuTypeId;
use metronome_core::model::job::{JobSpec, Role, RoleKind, Topology};
use metronome_core::model::units::Resources;

use super::gpu_types::GpuTypes;

/// How many nodes of each size and GPU type a place has.
type Sizes = BTreeMap<(Resources, Option<GpuTypeId>), u64>;

/// The distinct places at each level, by the sizes of their nodes: a cluster of equal racks has one.
#[derive(Debug)]
pub(super) struct Fit {
    whole: Sizes,
    places: Vec<BTreeSet<Sizes>>,
    levels: Vec<String>,
}

impl Fit {
    pub(super) fn of(cluster: &Cluster) -> Self {
        let depth = cluster.depth();
        let levels: Vec<Level> = (0..=depth.0).map(Level).collect();
        let mut whole = Sizes::new();
        for node in cluster.nodes().values() {
            *whole.entry(kind(node)).or_default() += 1;
        }
        let places = levels.iter().map(|level| places(cluster, *level, depth)).collect();
        let levels = levels.iter().map(|level| cluster.level_name(*level).to_owned()).collect();
        Self { whole, places, levels }
    }

    /// Why the job can never run, if so.
    pub(super) fn refusal(&self, job: &JobSpec, types: &GpuTypes) -> Option<String> {
        if let Some(why) = refusal(job, &self.whole, types) {
            return Some(format!("{why}, the cluster has {}", total(&self.whole)));
        }
        if let Some(teams) = job.teams {
            let (size, level) = (teams.size.get(), usize::from(teams.within.0));
            let holds = |role: &Role, place: &Sizes| room(role, place, types) >= u64::from(size);
            let mut workers = job.roles.iter().filter(|role| role.kind == RoleKind::Worker);
            if workers.any(|role| !self.places[level].iter().any(|place| holds(role, place))) {
                let level = &self.levels[level];
                return Some(format!(
                    "needs groups of {size} workers within one {level}, and none holds one"
                ));
            }
        }
        let Topology::Required(level) = job.topology else { return None };
        let places = &self.places[usize::from(level.0)];
        if places.iter().any(|place| refusal(job, place, types).is_none()) {
            return None;
        }
        Some(format!(
            "needs {} within one {}, and none is that large",
            job.least(),
            self.levels[usize::from(level.0)]
        ))
    }
}

fn kind(node: &Node) -> (Resources, Option<GpuTypeId>) {
    (node.capacity, node.gpu_type)
}

fn places(cluster: &Cluster, level: Level, depth: Level) -> BTreeSet<Sizes> {
    if level == depth {
        return cluster.nodes().values().map(|node| Sizes::from([(kind(node), 1)])).collect();
    }
    let mut places: BTreeMap<_, Sizes> = BTreeMap::new();
    for node in cluster.nodes().values() {
        *places.entry(node.domains[usize::from(level.0)]).or_default().entry(kind(node)).or_default() += 1;
    }
    places.into_values().collect()
}

fn total(sizes: &Sizes) -> Resources {
    sizes.iter().map(|((size, _), count)| size.times(*count)).sum()
}

/// Each role alone, and all roles in sum: what both allow may still not pack, which the engine finds out.
fn refusal(job: &JobSpec, sizes: &Sizes, types: &GpuTypes) -> Option<String> {
    if !job.least().fits_in(total(sizes)) {
        return Some(format!("needs {}", job.least()));
    }
    job.roles.iter().find_map(|role| {
        let (each, room) = (role.shape.each, room(role, sizes, types));
        let needed = u64::from(role.gang.min());
        (room < needed).then(|| format!("needs {needed} members of {each} each, of which {room} have room"))
    })
}

/// How many members of a role fit on nodes of these sizes.
fn room(role: &Role, sizes: &Sizes, types: &GpuTypes) -> u64 {
    let allowed = sizes.iter().filter(|((_, gpu_type), _)| types.allow(role.shape.on, *gpu_type));
    let fits =
        allowed.map(|((size, _), count)| u64::from(role.shape.each.count_on(*size)).saturating_mul(*count));
    fits.fold(0u64, u64::saturating_add)
}
