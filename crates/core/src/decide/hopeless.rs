//! Why no plan could ever hold a job, even with every node well and free.

use crate::cluster::{Cluster, Level};
use crate::job::{Job, Role, Topology};
use crate::report::Reason;
use crate::room::{Room, fit_at_most};

pub(crate) fn hopeless(cluster: &Cluster, room: &Room, job: &Job) -> Option<Reason> {
    let roles = || job.spec.roles.iter().zip(&job.shapes);
    let lacking = || {
        roles().find_map(|(role, shape)| {
            let (each, members, most) = (role.shape.each, role.gang.min(), room.most(*shape));
            let fit = u32::try_from(most).unwrap_or(u32::MAX);
            (most < u64::from(members)).then_some(Reason::NoMatchingNode { each, members, fit })
        })
    };
    let scattered = || match job.spec.topology {
        Topology::Required(level) => roles().find_map(|(role, _)| no_domain_holds(cluster, role, level)),
        Topology::Anywhere | Topology::Preferred(_) => None,
    };
    // One role fits if all its members do; several may still be too much together.
    let crowded = || {
        let need = job.spec.least();
        let fits = job.spec.roles.len() == 1 || need.fits_in(cluster.capacity());
        (!fits).then_some(Reason::NoMatchingNode { each: need, members: 1, fit: 0 })
    };
    lacking().or_else(scattered).or_else(crowded)
}

/// The level's best domain, if even that cannot hold all members of a role.
fn no_domain_holds(cluster: &Cluster, role: &Role, level: Level) -> Option<Reason> {
    let members = role.gang.min();
    let mut by_domain = vec![0u64; cluster.domain_count()];
    let mut best = 0u64;
    for (node, here) in cluster.nodes().iter() {
        let fit = u64::from(fit_at_most(cluster, node, &role.shape));
        let in_domain = here.domains.get(usize::from(level.0)).map_or(fit, |domain| {
            by_domain[domain.0 as usize] += fit;
            by_domain[domain.0 as usize]
        });
        best = best.max(in_domain);
    }
    let fits = best >= u64::from(members);
    (!fits).then_some(Reason::TopologyUnsatisfied { level, members, best: best as u32 })
}
