//! Rendezvous: the variables and host names by which the members of a gang find each other, as launchers
//! (`torchrun`, `mpirun`) and `TrainingJob`s in a cluster provide them.
//!
//! Variables of a member:
//!
//! | for | variables |
//! |---|---|
//! | Metronome's SDK and trainer | `METRONOME_JOB`, `METRONOME_MEMBER`, `METRONOME_ATTEMPT`, `METRONOME_RANK`, `METRONOME_PEERS`, `METRONOME_NODES`, `METRONOME_SERVERS` |
//! | PyTorch | `MASTER_ADDR`, `MASTER_PORT`, `WORLD_SIZE`, `RANK`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`, `GROUP_RANK`, `GROUP_WORLD_SIZE`, `NODE_RANK` |
//! | `torchrun` as the command | `PET_NNODES`, `PET_NODE_RANK`, `PET_MASTER_ADDR`, `PET_MASTER_PORT` |
//! | gloo, NCCL, TensorPipe | `GLOO_SOCKET_IFNAME`, `NCCL_SOCKET_IFNAME`, `TP_SOCKET_IFNAME` |
//! | TensorFlow | `TF_CONFIG` |
//! | programs that read Open MPI's ranks | `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK`, `OMPI_COMM_WORLD_LOCAL_SIZE`, `OMPI_COMM_WORLD_NODE_RANK`, `OMPI_MCA_btl_tcp_if_include`, `OMPI_MCA_oob_tcp_if_include` |
//! | shells | `HOSTNAME`, where the member has a host name of its own |
//!
//! Local ranks count the members of the job on one node, because members of a node share its devices. `PMI_RANK` and
//! `PMI_SIZE` are left out: MPI libraries take them as a promise that a process manager listens.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use metronome_core::model::id::NodeId;
use metronome_core::model::job::RoleKind;
use serde_json::json;

use super::setup::Job;
use crate::names::MemberNumber;
use crate::process::HostIdentity;

/// A member and its place. Parameter servers come first, then a chief, then workers.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    pub(super) number: MemberNumber,
    pub(super) node: NodeId,
    pub(super) role: u8,
    pub(super) kind: RoleKind,
    /// Among the members of its kind.
    pub(super) index: u32,
    /// The node's name.
    pub(super) on: String,
    pub(super) address: SocketAddr,
}

impl Seated {
    /// The member's name in its job: `worker-3`.
    fn name(&self) -> String {
        format!("{}-{}", word(self.kind), self.index)
    }

    /// The interface that leads to the other members.
    fn interface(&self) -> &'static str {
        if self.address.ip().is_loopback() { "lo" } else { "eth0" }
    }
}

pub(super) fn word(kind: RoleKind) -> &'static str {
    match kind {
        RoleKind::Ps => "ps",
        RoleKind::Chief => "chief",
        RoleKind::Worker => "worker",
    }
}

type Variables = Vec<(&'static str, String)>;

/// The variables of every member, in the order of `all`.
pub(super) fn environments(job: &Job, attempt: u32, all: &[Seated]) -> Vec<BTreeMap<String, String>> {
    let gang = Gang::of(job, all);
    let of_member = |(at, seated): (usize, &Seated)| {
        let mut told = own_variables(&gang, attempt, at, seated);
        told.extend(pytorch(&gang));
        told.extend(interfaces(seated));
        told.push(("TF_CONFIG", tensorflow(all, seated).to_string()));
        if let Some(ranks) = gang.ranks(at) {
            told.extend(ranks.of_pytorch());
            told.extend(ranks.of_open_mpi());
        }
        told.extend(host_identity(job, all, seated).map(|host| ("HOSTNAME", host.name)));
        told.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    all.iter().enumerate().map(of_member).collect()
}

/// The members of a job, those with a rank apart.
struct Gang<'a> {
    job: &'a Job,
    all: &'a [Seated],
    /// Parameter servers have no rank.
    servers: usize,
}

impl<'a> Gang<'a> {
    fn of(job: &'a Job, all: &'a [Seated]) -> Self {
        let servers = all.iter().filter(|seated| seated.kind == RoleKind::Ps).count();
        Self { job, all, servers }
    }

    fn ranked(&self) -> &'a [Seated] {
        &self.all[self.servers..]
    }

    /// Where the first worker's store listens.
    fn master(&self) -> SocketAddr {
        let mut address = self.ranked().first().unwrap_or(&self.all[0]).address;
        address.set_port(address.port() + 1);
        address
    }

    /// None for a parameter server.
    fn ranks(&self, at: usize) -> Option<Ranks> {
        let (ranked, rank) = (self.ranked(), at.checked_sub(self.servers)?);
        let is_neighbour = |other: &&Seated| other.node == ranked[rank].node;
        // Nodes are numbered in the order in which ranks reach them.
        let mut nodes: Vec<NodeId> = Vec::new();
        for seated in ranked {
            if !nodes.contains(&seated.node) {
                nodes.push(seated.node);
            }
        }
        Some(Ranks {
            rank,
            size: ranked.len(),
            local_rank: ranked[..rank].iter().filter(is_neighbour).count(),
            local_size: ranked.iter().filter(is_neighbour).count(),
            node: nodes.iter().position(|node| *node == ranked[rank].node).unwrap_or_default(),
            nodes: nodes.len(),
        })
    }
}

/// A member's place among all that have a rank, and among those on its node.
struct Ranks {
    rank: usize,
    size: usize,
    local_rank: usize,
    local_size: usize,
    node: usize,
    nodes: usize,
}

impl Ranks {
    fn of_pytorch(&self) -> Variables {
        let numbers = [
            ("RANK", self.rank),
            ("LOCAL_RANK", self.local_rank),
            ("LOCAL_WORLD_SIZE", self.local_size),
            ("GROUP_RANK", self.node),
            ("GROUP_WORLD_SIZE", self.nodes),
            ("NODE_RANK", self.node),
            // For `torchrun` every member is a machine of its own.
            ("PET_NODE_RANK", self.rank),
        ];
        numbers.map(|(name, number)| (name, number.to_string())).into()
    }

    fn of_open_mpi(&self) -> Variables {
        let numbers = [
            ("OMPI_COMM_WORLD_RANK", self.rank),
            ("OMPI_COMM_WORLD_SIZE", self.size),
            ("OMPI_COMM_WORLD_LOCAL_RANK", self.local_rank),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", self.local_size),
            // Open MPI counts the processes of all jobs on a node here; members know of their own job alone.
            ("OMPI_COMM_WORLD_NODE_RANK", self.local_rank),
        ];
        numbers.map(|(name, number)| (name, number.to_string())).into()
    }
}

fn own_variables(gang: &Gang<'_>, attempt: u32, at: usize, seated: &Seated) -> Variables {
    let joined = |each: fn(&Seated) -> String| gang.all.iter().map(each).collect::<Vec<_>>().join(",");
    let mut told = vec![
        ("METRONOME_JOB", gang.job.key()),
        ("METRONOME_MEMBER", seated.name()),
        ("METRONOME_ATTEMPT", attempt.to_string()),
        ("METRONOME_RANK", at.to_string()),
        ("METRONOME_PEERS", joined(|seated| seated.address.to_string())),
        ("METRONOME_NODES", joined(|seated| seated.on.clone())),
        ("METRONOME_SERVERS", gang.servers.to_string()),
    ];
    if gang.job.is_one_process {
        told.push(("METRONOME_ONE_PROCESS", "1".to_owned()));
    }
    told
}

fn pytorch(gang: &Gang<'_>) -> Variables {
    let (master, size) = (gang.master(), gang.ranked().len().to_string());
    vec![
        ("MASTER_ADDR", master.ip().to_string()),
        ("MASTER_PORT", master.port().to_string()),
        ("WORLD_SIZE", size.clone()),
        ("PET_NNODES", size),
        ("PET_MASTER_ADDR", master.ip().to_string()),
        ("PET_MASTER_PORT", master.port().to_string()),
    ]
}

/// Without these, libraries guess an interface by the host's name or skip loopback.
fn interfaces(seated: &Seated) -> Variables {
    const NAMES: [&str; 5] = [
        "GLOO_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME",
        "OMPI_MCA_btl_tcp_if_include",
        "OMPI_MCA_oob_tcp_if_include",
    ];
    NAMES.map(|name| (name, seated.interface().to_owned())).into()
}

fn tensorflow(all: &[Seated], own: &Seated) -> serde_json::Value {
    let mut cluster: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for seated in all {
        cluster.entry(word(seated.kind)).or_default().push(seated.address.to_string());
    }
    json!({"cluster": cluster, "task": {"type": word(own.kind), "index": own.index}})
}

/// The member's host name and its `/etc/hosts`. None on loopback, where all members share this machine's name.
pub(super) fn host_identity(job: &Job, all: &[Seated], own: &Seated) -> Option<HostIdentity> {
    if own.address.ip().is_loopback() {
        return None;
    }
    let key = job.key();
    let job = key.rsplit('/').next().unwrap_or(&key);
    let line = |seated: &Seated| {
        let (host, member) = (host_name(job, &seated.name()), seated.name());
        // The second is the name that a pod of a `TrainingJob` has.
        format!("{} {host} {host}.{} {member}\n", seated.address.ip(), label(job, LONGEST_LABEL))
    };
    let members: String = all.iter().map(line).collect();
    Some(HostIdentity { name: host_name(job, &own.name()), hosts: format!("127.0.0.1 localhost\n{members}") })
}

/// A label of a host name, by RFC 1123.
const LONGEST_LABEL: usize = 63;

/// `bert-worker-0`. The name of the job is cut where the whole would be too long.
fn host_name(job: &str, member: &str) -> String {
    format!("{}-{member}", label(job, LONGEST_LABEL - member.len() - 1))
}

/// Small letters, digits and inner dashes.
fn label(name: &str, longest: usize) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let letters: String = name.chars().map(letter).collect();
    let cut: String = letters.trim_start_matches('-').chars().take(longest).collect();
    match cut.trim_end_matches('-') {
        "" => "job".to_owned(),
        label => label.to_owned(),
    }
}

#[cfg(test)]
mod tests;
