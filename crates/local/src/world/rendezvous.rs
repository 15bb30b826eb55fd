//! How members find each other: what each is told in its environment, as in a cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use metronome_core::id::NodeId;
use metronome_core::job::RoleKind;
use serde_json::json;

use super::setup::Job;
use crate::names::MemberNumber;

/// A member and where it is. Servers come first, then a chief, then workers.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    pub(super) number: MemberNumber,
    pub(super) node: NodeId,
    pub(super) role: u8,
    pub(super) kind: RoleKind,
    /// Among those of its role.
    pub(super) index: u32,
    /// The node's name.
    pub(super) on: String,
    pub(super) address: SocketAddr,
}

pub(super) fn word(kind: RoleKind) -> &'static str {
    match kind {
        RoleKind::Ps => "ps",
        RoleKind::Chief => "chief",
        RoleKind::Worker => "worker",
    }
}

pub(super) fn environments(job: &Job, start: u32, all: &[Seated]) -> Vec<BTreeMap<String, String>> {
    let servers = all.iter().filter(|seated| seated.kind == RoleKind::Ps).count();
    let workers = &all[servers..];
    let joined = |each: fn(&Seated) -> String| all.iter().map(each).collect::<Vec<_>>().join(",");
    let (peers, nodes) = (joined(|seated| seated.address.to_string()), joined(|seated| seated.on.clone()));
    let master = workers.first().unwrap_or(&all[0]).address;
    let one = |(rank, seated): (usize, &Seated)| {
        let mut told: BTreeMap<String, String> = BTreeMap::new();
        let mut say = |name: &str, value: String| told.insert(name.to_owned(), value);
        say("METRONOME_JOB", job.key());
        say("METRONOME_MEMBER", format!("{}-{}", word(seated.kind), seated.index));
        say("METRONOME_ATTEMPT", start.to_string());
        say("METRONOME_RANK", rank.to_string());
        say("METRONOME_PEERS", peers.clone());
        say("METRONOME_NODES", nodes.clone());
        say("METRONOME_SERVERS", servers.to_string());
        say("MASTER_ADDR", master.ip().to_string());
        say("MASTER_PORT", (master.port() + 1).to_string());
        say("WORLD_SIZE", workers.len().to_string());
        if rank >= servers {
            let before = all[servers..rank].iter().filter(|other| other.node == seated.node).count();
            say("RANK", (rank - servers).to_string());
            say("LOCAL_RANK", before.to_string());
        }
        say("TF_CONFIG", tensorflow(all, seated).to_string());
        if job.is_one_process {
            say("METRONOME_ONE_PROCESS", "1".to_owned());
        }
        told
    };
    all.iter().enumerate().map(one).collect()
}

fn tensorflow(all: &[Seated], own: &Seated) -> serde_json::Value {
    let mut cluster: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for seated in all {
        cluster.entry(word(seated.kind)).or_default().push(seated.address.to_string());
    }
    json!({"cluster": cluster, "task": {"type": word(own.kind), "index": own.index}})
}
