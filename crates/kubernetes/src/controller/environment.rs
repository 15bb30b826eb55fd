//! How members find each other: the variables that PyTorch, TensorFlow and MPI read.

use serde_json::{Value, json};

use super::places::Place;
use crate::objects::{Port, Rendezvous, TrainingJob, TrainingJobSpec, is_chief, is_server};

/// Where `torchrun` and its like listen.
const USUAL_PORT: u16 = 29_500;

/// Where the file with all hosts is.
pub(super) const HOSTS_FOLDER: &str = "/etc/metronome";
pub(super) const HOSTS_FILE: &str = "hostfile";

/// The name under which a member is found by the others of its job.
pub(super) fn host(job: &TrainingJob, role: &str, index: u32) -> String {
    let name = &job.reference.name;
    format!("{name}-{role}-{index}.{name}")
}

/// Variables in the order in which they are written.
pub(super) fn variables(
    job: &TrainingJob,
    spec: &TrainingJobSpec,
    place: &Place,
) -> Vec<(&'static str, String)> {
    if spec.rendezvous == Rendezvous::None {
        return Vec::new();
    }
    let ring = Ring::of(job, spec);
    let port = spec.port.map_or(USUAL_PORT, |Port(port)| port);
    let (master_role, _) = ring.0.first().expect("a job has a role that works");
    let master = host(job, master_role, 0);
    let mut all = vec![
        ("METRONOME_JOB", format!("{}/{}", job.reference.namespace, job.reference.name)),
        ("METRONOME_MEMBER", format!("{}-{}", place.role, place.index)),
        ("METRONOME_ATTEMPT", place.attempt.to_string()),
    ];
    if spec.rendezvous == Rendezvous::Elastic {
        all.extend(those_who_come_and_go(job, spec, &format!("{master}:{port}")));
        return all;
    }
    all.extend([
        ("MASTER_ADDR", master.clone()),
        ("MASTER_PORT", port.to_string()),
        ("WORLD_SIZE", ring.size().to_string()),
        // One process for each member, unless `torchrun` makes more of it.
        ("PET_NNODES", ring.size().to_string()),
        ("PET_MASTER_ADDR", master),
        ("PET_MASTER_PORT", port.to_string()),
    ]);
    if let Some(rank) = ring.rank(place) {
        all.push(("RANK", rank.to_string()));
        all.push(("PET_NODE_RANK", rank.to_string()));
    }
    all.push(("TF_CONFIG", tensorflow(job, spec, place, port).to_string()));
    if spec.rendezvous == Rendezvous::Mpi {
        let file = format!("{HOSTS_FOLDER}/{HOSTS_FILE}");
        all.push(("OMPI_MCA_orte_default_hostfile", file.clone()));
        all.push(("PRTE_MCA_prte_default_hostfile", file.clone()));
        all.push(("HYDRA_HOST_FILE", file));
    }
    all
}

/// For `torchrun`, which finds out by itself who is there, and tells each its rank.
fn those_who_come_and_go(
    job: &TrainingJob,
    spec: &TrainingJobSpec,
    meet_at: &str,
) -> [(&'static str, String); 4] {
    let sizes = spec.all_roles().into_iter().filter(|role| !is_server(role.name));
    let (least, most) = sizes.fold((0, 0), |(least, most), role| (least + role.least, most + role.most));
    [
        ("PET_NNODES", format!("{least}:{most}")),
        ("PET_RDZV_BACKEND", "c10d".into()),
        ("PET_RDZV_ENDPOINT", meet_at.to_owned()),
        ("PET_RDZV_ID", job.reference.uid.to_string()),
    ]
}

/// All hosts that take part, one in a line.
pub(super) fn hosts(job: &TrainingJob, spec: &TrainingJobSpec) -> String {
    let Ring(roles) = Ring::of(job, spec);
    let lines = roles.iter().flat_map(|(role, members)| (0..*members).map(|index| host(job, role, index)));
    lines.map(|host| host + "\n").collect()
}

/// The members that have a rank, role by role: a chief first, servers not at all.
struct Ring<'a>(Vec<(&'a str, u32)>);

impl<'a> Ring<'a> {
    fn of(job: &TrainingJob, spec: &'a TrainingJobSpec) -> Self {
        let roles = spec.all_roles().into_iter().filter(|role| !is_server(role.name));
        let mut roles: Vec<(&str, u32)> = roles.map(|role| (role.name, job.status.size_of(&role))).collect();
        roles.sort_by_key(|(name, _)| !is_chief(name));
        Self(roles)
    }

    fn size(&self) -> u32 {
        self.0.iter().map(|(_, members)| members).sum()
    }

    fn rank(&self, place: &Place) -> Option<u32> {
        let at = self.0.iter().position(|(role, _)| *role == place.role)?;
        let before: u32 = self.0[..at].iter().map(|(_, members)| members).sum();
        Some(before + place.index)
    }
}

fn tensorflow(job: &TrainingJob, spec: &TrainingJobSpec, place: &Place, port: u16) -> Value {
    let mut cluster = serde_json::Map::new();
    for role in spec.all_roles() {
        let hosts =
            (0..job.status.size_of(&role)).map(|index| format!("{}:{port}", host(job, role.name, index)));
        cluster.insert(role.name.to_owned(), hosts.collect());
    }
    json!({"cluster": cluster, "task": {"type": place.role, "index": place.index}})
}
