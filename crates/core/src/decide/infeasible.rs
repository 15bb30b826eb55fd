//! Why no plan could ever hold a job, even with every node well and free.

use crate::model::cluster::{Cluster, Level};
use crate::model::free_capacity::{FreeCapacity, fit_when_empty};
use crate::model::job::{Job, JobSpec, Role, RoleKind, Teams, Topology};
use crate::model::report::Reason;
use crate::model::units::Resources;

pub(crate) fn hopeless(cluster: &Cluster, room: &FreeCapacity, job: &Job) -> Option<Reason> {
    let roles = || job.spec.roles.iter().zip(&job.shapes);
    let lacking = || {
        roles().find_map(|(role, shape)| {
            let (each, members, most) = (role.shape.each, role.gang.min(), room.most(*shape));
            let fit = u32::try_from(most).unwrap_or(u32::MAX);
            (most < u64::from(members)).then_some(Reason::NoMatchingNode { each, members, fit })
        })
    };
    let split = || job.spec.teams.and_then(|teams| no_whole_groups(cluster, job, teams));
    let scattered = || match job.spec.topology {
        Topology::Required(level) => roles()
            .find_map(|(role, _)| no_domain_holds(cluster, role, level))
            .or_else(|| no_domain_holds_all(cluster, &job.spec, level)),
        Topology::Anywhere | Topology::Preferred(_) => None,
    };
    // One role fits if all its members do; several may still be too much together.
    let crowded = || {
        let need = job.spec.least();
        let fits = job.spec.roles.len() == 1 || need.fits_in(cluster.capacity());
        (!fits).then_some(Reason::NoMatchingNode { each: need, members: 1, fit: 0 })
    };
    lacking().or_else(split).or_else(scattered).or_else(crowded)
}

/// How many workers stand in whole groups on the empty cluster, if that is too few.
fn no_whole_groups(cluster: &Cluster, job: &Job, teams: Teams) -> Option<Reason> {
    let workers = job.spec.roles.iter().filter(|role| role.kind == RoleKind::Worker);
    workers.into_iter().find_map(|role| {
        let by_domain = fits_by_domain(cluster, role, teams.within);
        let fit: u64 = by_domain.into_iter().map(|fit| teams.whole(fit)).sum();
        let (each, members, fit) = (role.shape.each, role.gang.min(), u32::try_from(fit).unwrap_or(u32::MAX));
        (fit < members).then_some(Reason::NoMatchingNode { each, members, fit })
    })
}

/// How many members of a role each domain of a level takes on the empty cluster.
fn fits_by_domain(cluster: &Cluster, role: &Role, level: Level) -> Vec<u64> {
    let mut by_domain = vec![0u64; cluster.domain_count()];
    for (node, here) in cluster.nodes().iter() {
        let fit = u64::from(fit_when_empty(cluster, node, &role.shape));
        match here.domains.get(usize::from(level.0)) {
            Some(domain) => by_domain[domain.0 as usize] += fit,
            None => by_domain.push(fit),
        }
    }
    by_domain
}

/// The same for all roles together, by the sums of what the nodes of a domain have.
fn no_domain_holds_all(cluster: &Cluster, spec: &JobSpec, level: Level) -> Option<Reason> {
    if spec.roles.len() == 1 {
        return None;
    }
    let held = |room: Resources| {
        let fit = |(fit, room): (u32, Resources), role: &Role| {
            let members = role.gang.min().min(role.shape.each.count_in(room));
            (fit + members, room - role.shape.each.times(u64::from(members)))
        };
        spec.roles.iter().fold((0, room), fit).0
    };
    let (members, best) = (spec.members(), room_by_domain(cluster, level).into_iter().map(held).max());
    let best = best.unwrap_or(0);
    (best < members).then_some(Reason::TopologyUnsatisfied { level, members, best })
}

fn room_by_domain(cluster: &Cluster, level: Level) -> Vec<Resources> {
    let mut by_domain = vec![Resources::NONE; cluster.domain_count()];
    for (_, here) in cluster.nodes().iter() {
        match here.domains.get(usize::from(level.0)) {
            Some(domain) => by_domain[domain.0 as usize] = by_domain[domain.0 as usize] + here.capacity,
            None => by_domain.push(here.capacity),
        }
    }
    by_domain
}

/// The level's best domain, if even that cannot hold all members of a role.
fn no_domain_holds(cluster: &Cluster, role: &Role, level: Level) -> Option<Reason> {
    let members = role.gang.min();
    let best = fits_by_domain(cluster, role, level).into_iter().max().unwrap_or(0);
    let fits = best >= u64::from(members);
    (!fits).then_some(Reason::TopologyUnsatisfied { level, members, best: best as u32 })
}
