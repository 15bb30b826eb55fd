//! The agent of a node with the account that the chart gives it: what it learns and writes through a real API server, and
//! what that does not let it do. What is measured comes from somebody who only says so, and the node is a folder.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use metronome_kubernetes::agent::{self, Options, Roots};
use metronome_kubernetes::objects::TrafficSpec;
use metronome_testcluster::{ControlPlane, Corner};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::audit::{Asked, Audit};
use crate::helm::{Helm, objects};

const ACCOUNT: &str = "metronome-agent";

/// A pod that is on a node without anybody's help.
async fn run_on(corner: &Corner, name: &str, node: usize, account: Option<&str>) -> Pod {
    let mut pod = corner.pod(name, 0);
    pod["spec"]["nodeName"] = json!(node_name(corner, node));
    if let Some(account) = account {
        pod["spec"]["serviceAccountName"] = json!(account);
    }
    corner.create([pod]).await;
    corner
        .until("it runs", async |corner| {
            let pod = corner.pods().get(name).await.unwrap();
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            (phase == Some("Running")).then_some(pod)
        })
        .await
}

fn node_name(corner: &Corner, at: usize) -> String {
    format!("{}-{at}", corner.namespace)
}

/// The account as a pod on some node has it: the API server itself says on which.
async fn as_agent(corner: &Corner, pod: &Pod) -> Config {
    let request = json!({"spec": {
        "audiences": [],
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid()},
    }});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(corner.client.clone(), &corner.namespace);
    let made = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await.unwrap();
    let text = fs::read_to_string(corner.plane.kubeconfig_path()).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["users"][0]["user"] = json!({"token": made.status.unwrap().token});
    let kubeconfig: Kubeconfig = serde_json::from_value(document).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

/// A node with the processes and the wire of one pod.
fn node(root: &Path, uid: &str) -> Roots {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("cgroup/cgroup.controllers", "");
    write(&format!("cgroup/kubepods/burstable/pod{uid}/main/cgroup.procs"), "7\n");
    for (process, network) in [("self", "net:[1]"), ("7", "net:[2]")] {
        fs::create_dir_all(root.join("proc").join(process).join("ns")).unwrap();
        symlink(network, root.join("proc").join(process).join("ns/net")).unwrap();
    }
    for (path, number) in [("proc/7/root/sys/class/net/eth0", [2, 41]), ("net/veth4f", [41, 2])] {
        write(&format!("{path}/ifindex"), &number[0].to_string());
        write(&format!("{path}/iflink"), &number[1].to_string());
    }
    Roots {
        processes: root.join("proc"),
        interfaces: root.join("net"),
        cgroups: root.join("cgroup"),
        pods: root.join("pods"),
    }
}

/// Says once what was observed of a member, to whoever knows the word.
async fn say_what_was_observed(folder: &Path, job: String, member: String) {
    let listener = UnixListener::bind(folder.join("socket")).unwrap();
    let token = folder.join("token");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = vec![0; 2048];
            let length = stream.read(&mut asked).await.unwrap();
            let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
            let knows = asked.contains(&format!("Bearer {}\r\n", fs::read_to_string(&token).unwrap()));
            let observed = json!([
                {"seq": 0, "progress": {"job": job, "member": member, "iteration": 1200, "metrics": {"loss": 0.41}}},
                {"seq": 1, "traffic": {
                    "job": job, "member": member, "period_ns": 210_000_000, "noise": 0.01, "confidence": 0.95, "while": "alone",
                    "phases": [{"offset_ns": 80_000_000, "length_ns": 60_000_000, "rate_bps": 40_000_000_000_u64}],
                }},
            ]);
            let observed = if asked.contains("after=0 ") { observed } else { json!([]) };
            let status = if knows { "200 OK" } else { "401 Unauthorized" };
            let answer = format!("HTTP/1.0 {status}\r\n\r\n{}", json!({"next": 2, "observed": observed}));
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
}

fn handed(folder: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(folder.join("members.json")).ok()?).ok()
}

/// What the roles of the account allow, as resource and verb.
fn allowed(installed: &[Value]) -> BTreeSet<(String, String)> {
    let is_its = |object: &&Value| object["kind"] == "ClusterRole" && object["metadata"]["name"] == ACCOUNT;
    let role = installed.iter().find(is_its).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rules = role["rules"].as_array().unwrap().iter();
    rules
        .flat_map(|rule| {
            rule["verbs"].as_array().unwrap().iter().map(|verb| (text(&rule["resources"][0]), text(verb)))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_writes_on_the_pods_of_its_node_what_was_observed_of_them_and_no_more() {
    let audit = Audit::new();
    let Some(helm) = Helm::get() else { return };
    let Some(plane) = ControlPlane::start_or_skip(audit.options()).await else { return };
    let plane: &'static ControlPlane = Box::leak(Box::new(plane));
    let corner = Corner::new(plane, "agent", 2).await;
    let installed = helm.template(&corner.namespace, &["agent.enabled=true"]).unwrap();
    plane.apply_yaml(&installed).await.unwrap();
    let of_agent = run_on(&corner, "agent-0", 0, Some(ACCOUNT)).await;
    let here = run_on(&corner, "here", 0, None).await;
    run_on(&corner, "there", 1, None).await;

    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("agent");
    fs::create_dir(&own).unwrap();
    let options = Options {
        node: node_name(&corner, 0),
        scheduler: corner.namespace.clone(),
        folder: own.clone(),
        roots: node(folder.path(), &here.uid().unwrap()),
        uplink: None,
        listen: None,
    };
    let job = format!("{}/here", corner.namespace);
    say_what_was_observed(&own, job.clone(), "here".to_owned()).await;
    let config = as_agent(&corner, &of_agent).await;
    let (stop, stopped) = watch::channel(false);
    let agent = tokio::spawn(agent::run(config.clone(), options, stopped));

    let said = corner
        .until("what was observed is on the pod", async |corner| {
            let pod = corner.pods().get("here").await.unwrap();
            let said = |key: &str| pod.annotations().get(key).cloned();
            Some((said("metronome.dev/traffic")?, said("metronome.dev/progress")?))
        })
        .await;
    assert_eq!(TrafficSpec::read(&said.0).unwrap().phases().len(), 1);
    let progress: Value = serde_json::from_str(&said.1).unwrap();
    assert_eq!(progress, json!({"iteration": 1200, "metrics": {"loss": 0.41}}));
    let of_here = |handed: &Value| {
        let members = handed["members"].as_array().unwrap().clone();
        members.into_iter().find(|member| member["job"] == job)
    };
    let members = handed(&own).unwrap();
    assert_eq!(of_here(&members).unwrap()["counters"]["interface"], "veth4f");
    let jobs: Vec<&Value> =
        members["members"].as_array().unwrap().iter().map(|member| &member["job"]).collect();
    assert!(!jobs.contains(&&json!(format!("{}/there", corner.namespace))), "{jobs:?}");

    turn_is_handed_on(&corner, &own, &of_here).await;
    stop.send_replace(true);
    agent.await.unwrap().unwrap();
    assert_eq!(handed(&own).unwrap()["members"], json!([]), "nobody is looked after any more");

    let account = format!("system:serviceaccount:{}:{ACCOUNT}", corner.namespace);
    let asked = audit.of(&account);
    let forbidden: Vec<&Asked> = asked.iter().filter(|one| one.is_forbidden()).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    let used: BTreeSet<(String, String)> = asked.into_iter().map(|one| (one.resource, one.verb)).collect();
    assert_eq!(used, allowed(&objects(&installed)), "every right is used");
    what_is_not_its_to_write_is_refused(&corner, Client::try_from(config).unwrap()).await;
}

/// A word of the scheduler's is there within seconds, and gone when it is taken back.
async fn turn_is_handed_on(corner: &Corner, own: &Path, of_here: &impl Fn(&Value) -> Option<Value>) {
    let turn = |word: Value| json!({"metadata": {"annotations": {"metronome.dev/turn": word}}});
    corner.patch("here", turn(json!(r#"{"generation": 7}"#))).await;
    let generation = async |_: &Corner| {
        let turn = of_here(&handed(own)?)?["turn"].clone();
        (turn["generation"] == 7).then_some(())
    };
    corner.until("its turn is handed on", generation).await;
    corner.patch("here", turn(Value::Null)).await;
    let gone = async |_: &Corner| of_here(&handed(own)?)?["turn"].is_null().then_some(());
    corner.until("its turn is taken back", gone).await;
}

async fn what_is_not_its_to_write_is_refused(corner: &Corner, client: Client) {
    let pods: Api<Pod> = Api::namespaced(client, &corner.namespace);
    let write = async |pod: &str, patch: Value| {
        let patch = json!({"metadata": patch});
        pods.patch(pod, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    };
    write("here", json!({"annotations": {"metronome.dev/progress": "{}"}})).await.unwrap();
    corner.patch("here", json!({"metadata": {"annotations": {"metronome.dev/user": "somebody"}}})).await;
    let refused = [
        ("there", json!({"annotations": {"metronome.dev/progress": "{}"}})),
        ("here", json!({"annotations": {"metronome.dev/turn": "{}"}})),
        ("here", json!({"annotations": {"metronome.dev/user": "somebody else"}})),
        ("here", json!({"annotations": {"metronome.dev/user": null}})),
        ("here", json!({"labels": {"metronome.dev/queue": "research"}})),
        ("here", json!({"finalizers": ["metronome.dev/never"]})),
    ];
    for (pod, patch) in refused {
        let said = write(pod, patch.clone()).await;
        let is_refused = matches!(&said, Err(kube::Error::Api(status)) if status.code == 403);
        assert!(is_refused, "{pod} {patch}: {said:?}");
    }
}

/// Whoever asks for help after all other arguments gets it only where the program knows them.
#[test]
fn the_program_knows_the_arguments_that_its_containers_have() {
    let Some(helm) = Helm::get() else { return };
    let rendered =
        objects(&helm.template("metronome", &["agent.enabled=true", "agent.uplink=eth0"]).unwrap());
    let agent = rendered.iter().find(|object| object["kind"] == "DaemonSet").unwrap();
    let containers = agent["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2);
    for container in containers {
        let arguments =
            container["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap());
        let said = std::process::Command::new(env!("CARGO_BIN_EXE_metronome"))
            .args(arguments)
            .arg("--help")
            .output();
        let said = said.unwrap();
        assert!(said.status.success(), "{container}: {}", String::from_utf8_lossy(&said.stderr));
    }
}
