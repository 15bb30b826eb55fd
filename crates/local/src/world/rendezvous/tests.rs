use std::sync::Arc;

use metronome_core::model::job::{Capabilities, JobSpec};
use metronome_core::model::units::Duration;

use super::*;

fn job(name: &str) -> Job {
    let capabilities = Capabilities::START_ONLY;
    let spec =
        json!({"name": name, "queue": 0, "roles": [], "capabilities": capabilities, "startRetries": 0});
    let spec: JobSpec = serde_json::from_value(spec).unwrap();
    Job {
        at: Duration::ZERO,
        spec: Arc::new(spec),
        programs: Vec::new(),
        task: None,
        is_one_process: false,
        failures: 0,
    }
}

fn member(kind: RoleKind, index: u32, number: u32, node: u32) -> Seated {
    let number = MemberNumber(number);
    Seated {
        number,
        node: NodeId(node),
        role: 0,
        kind,
        index,
        on: format!("node-{node}"),
        address: SocketAddr::from((number.address(), 29_400)),
    }
}

/// A parameter server on the first node, then three workers on two nodes.
fn gang() -> Vec<Seated> {
    vec![
        member(RoleKind::Ps, 0, 4, 0),
        member(RoleKind::Worker, 0, 5, 1),
        member(RoleKind::Worker, 1, 6, 1),
        member(RoleKind::Worker, 2, 7, 2),
    ]
}

/// `NAME=VALUE` in order, those that begin with one of the words.
fn told(environment: &BTreeMap<String, String>, begin: &[&str]) -> Vec<String> {
    let lines = environment.iter().map(|(name, value)| format!("{name}={value}"));
    lines.filter(|line| begin.iter().any(|word| line.starts_with(word))).collect()
}

#[test]
fn a_worker_has_the_variables_of_every_launcher() {
    let environments = environments(&job("bert"), 3, &gang());
    let last = &environments[3];
    assert_eq!(
        told(last, &["MASTER", "RANK", "LOCAL", "WORLD", "GROUP", "NODE", "PET", "HOSTNAME"]),
        [
            "GROUP_RANK=1",
            "GROUP_WORLD_SIZE=2",
            "HOSTNAME=bert-worker-2",
            "LOCAL_RANK=0",
            "LOCAL_WORLD_SIZE=1",
            "MASTER_ADDR=10.77.0.6",
            "MASTER_PORT=29401",
            "NODE_RANK=1",
            "PET_MASTER_ADDR=10.77.0.6",
            "PET_MASTER_PORT=29401",
            "PET_NNODES=3",
            "PET_NODE_RANK=2",
            "RANK=2",
            "WORLD_SIZE=3",
        ]
    );
    assert_eq!(
        told(last, &["OMPI", "GLOO", "NCCL", "TP_"]),
        [
            "GLOO_SOCKET_IFNAME=eth0",
            "NCCL_SOCKET_IFNAME=eth0",
            "OMPI_COMM_WORLD_LOCAL_RANK=0",
            "OMPI_COMM_WORLD_LOCAL_SIZE=1",
            "OMPI_COMM_WORLD_NODE_RANK=0",
            "OMPI_COMM_WORLD_RANK=2",
            "OMPI_COMM_WORLD_SIZE=3",
            "OMPI_MCA_btl_tcp_if_include=eth0",
            "OMPI_MCA_oob_tcp_if_include=eth0",
            "TP_SOCKET_IFNAME=eth0",
        ]
    );
    assert_eq!(
        told(last, &["METRONOME"]),
        [
            "METRONOME_ATTEMPT=3",
            "METRONOME_JOB=default/bert",
            "METRONOME_MEMBER=worker-2",
            "METRONOME_NODES=node-0,node-1,node-1,node-2",
            "METRONOME_PEERS=10.77.0.5:29400,10.77.0.6:29400,10.77.0.7:29400,10.77.0.8:29400",
            "METRONOME_RANK=3",
            "METRONOME_SERVERS=1",
        ]
    );
}

#[test]
fn local_ranks_count_the_members_on_a_node() {
    let environments = environments(&job("bert"), 1, &gang());
    let local = ["LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"];
    assert_eq!(told(&environments[1], &local), ["GROUP_RANK=0", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2"]);
    assert_eq!(told(&environments[2], &local), ["GROUP_RANK=0", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2"]);
}

#[test]
fn a_parameter_server_has_no_rank() {
    let environments = environments(&job("bert"), 1, &gang());
    let ranks = ["RANK", "LOCAL", "GROUP", "NODE_RANK", "PET_NODE", "OMPI_COMM"];
    assert_eq!(told(&environments[0], &ranks), Vec::<String>::new());
    assert_eq!(environments[0]["WORLD_SIZE"], "3");
    let config: serde_json::Value = serde_json::from_str(&environments[0]["TF_CONFIG"]).unwrap();
    assert_eq!(config["task"], json!({"type": "ps", "index": 0}));
    assert_eq!(config["cluster"]["worker"][2], "10.77.0.8:29400");
}

#[test]
fn without_links_members_meet_on_loopback() {
    let mut gang = gang();
    for seated in &mut gang {
        seated.address = SocketAddr::from(([127, 0, 0, 1], 40_000 + seated.number.0 as u16));
    }
    let environments = environments(&job("bert"), 1, &gang);
    assert_eq!(
        told(&environments[1], &["MASTER", "GLOO", "NCCL", "TP_", "HOSTNAME"]),
        [
            "GLOO_SOCKET_IFNAME=lo",
            "MASTER_ADDR=127.0.0.1",
            "MASTER_PORT=40006",
            "NCCL_SOCKET_IFNAME=lo",
            "TP_SOCKET_IFNAME=lo",
        ]
    );
    assert_eq!(host_identity(&job("bert"), &gang, &gang[1]), None);
}

#[test]
fn every_member_knows_the_names_of_its_gang() {
    let gang = gang();
    let host = host_identity(&job("lab/Bert_Large"), &gang, &gang[2]).unwrap();
    assert_eq!(host.name, "bert-large-worker-1");
    assert_eq!(
        host.hosts,
        "127.0.0.1 localhost\n\
         10.77.0.5 bert-large-ps-0 bert-large-ps-0.bert-large ps-0\n\
         10.77.0.6 bert-large-worker-0 bert-large-worker-0.bert-large worker-0\n\
         10.77.0.7 bert-large-worker-1 bert-large-worker-1.bert-large worker-1\n\
         10.77.0.8 bert-large-worker-2 bert-large-worker-2.bert-large worker-2\n"
    );
}

#[test]
fn a_host_name_is_a_label_whatever_the_job_is_called() {
    assert_eq!(host_name("bert", "worker-0"), "bert-worker-0");
    assert_eq!(host_name("__", "worker-0"), "job-worker-0");
    assert_eq!(host_name("v1.5", "ps-12"), "v1-5-ps-12");
    let long = host_name(&"a.".repeat(100), "worker-249");
    assert_eq!((long.len(), long.ends_with("a-worker-249")), (62, true), "{long}");
}
