//! Members of jobs on one node, as their pods say.

use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde_json::Value;

use crate::objects::{INDEX_LABEL, JOB_LABEL, ROLE_LABEL, is_server};
use crate::world::{GANG_LABEL, TURN};

/// By which a pod lets its processes be stopped for a moment, so that they keep their turn without knowing of it.
const GATE: &str = "metronome.dev/gate";

/// The volume in which a pod wants to find the socket to report to: an `emptyDir` of its own.
pub const VOLUME: &str = "metronome";

/// Where an `Indexed` job of Kubernetes says which pod is which.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// How a member is held to its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Its own code waits, as its pod says what its turn is.
    Own,
    /// It is stopped for a moment.
    Freeze,
}

/// A member that runs on this node.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub uid: Arc<str>,
    pub namespace: String,
    pub pod: String,
    /// `namespace/name`.
    pub job: String,
    /// By role and place, or as its pod is called.
    pub name: String,
    /// It is the one of its job that waits for its turn; the others wait for it.
    pub leads: bool,
    pub turn: Option<Value>,
    pub gate: Gate,
    /// Nothing, where it has none of its own.
    pub address: Option<String>,
    /// It shares the network of its node.
    pub is_of_node: bool,
    /// It wants to report.
    pub listens: bool,
}

impl Member {
    /// Nothing, for a pod that does not run or is another scheduler's.
    pub fn of(pod: &Pod, scheduler: &str) -> Option<Self> {
        let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
        let is_ours = spec.scheduler_name.as_deref() == Some(scheduler);
        let runs = status.phase.as_deref() == Some("Running") && pod.metadata.deletion_timestamp.is_none();
        if !is_ours || !runs {
            return None;
        }
        let label = |name: &str| pod.labels().get(name).map(String::as_str);
        let role = label(ROLE_LABEL);
        let namespace = pod.namespace()?;
        let of = label(JOB_LABEL)
            .or_else(|| label(GANG_LABEL))
            .or_else(|| owner(pod))
            .unwrap_or(pod.metadata.name.as_deref()?);
        let name = match (role, label(INDEX_LABEL)) {
            (Some(role), Some(index)) => format!("{role}-{index}"),
            _ => pod.name_any(),
        };
        let rank = variable(pod, "RANK").or_else(|| label(INDEX_LABEL)).or_else(|| label(COMPLETION_INDEX));
        Some(Self {
            uid: pod.uid()?.into(),
            job: format!("{namespace}/{of}"),
            pod: pod.name_any(),
            name,
            // A pod on its own, or of nobody who counts them, has nobody to wait for.
            leads: rank.unwrap_or("0") == "0" && !role.is_some_and(is_server),
            turn: pod.annotations().get(TURN).and_then(|text| serde_json::from_str(text).ok()),
            gate: if pod.annotations().get(GATE).is_some_and(|gate| gate == "freeze") {
                Gate::Freeze
            } else {
                Gate::Own
            },
            // Packets are told apart by addresses of the fourth version alone.
            address: status
                .pod_ip
                .clone()
                .filter(|ip| spec.host_network != Some(true) && ip.parse::<Ipv4Addr>().is_ok()),
            is_of_node: spec.host_network == Some(true),
            listens: spec
                .volumes
                .iter()
                .flatten()
                .any(|volume| volume.name == VOLUME && volume.empty_dir.is_some()),
            namespace,
        })
    }
}

fn owner(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| &*owner.name)
}

/// What is said in so many words in the first container.
fn variable<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    let all = pod.spec.as_ref()?.containers.first()?.env.as_deref()?;
    all.iter().find(|one| one.name == name)?.value.as_deref()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(labels: &Value, annotations: &Value) -> Value {
        json!({
            "metadata": {"namespace": "team-a", "name": "bert-worker-0", "uid": "u0", "labels": labels, "annotations": annotations},
            "spec": {"schedulerName": "metronome", "containers": [{"name": "main"}]},
            "status": {"phase": "Running", "podIP": "10.0.0.7"},
        })
    }

    fn of(pod: Value) -> Option<Member> {
        Member::of(&serde_json::from_value(pod).unwrap(), "metronome")
    }

    #[test]
    fn a_member_of_a_training_job_is_known_by_its_labels() {
        let labels = json!({JOB_LABEL: "bert", ROLE_LABEL: "worker", INDEX_LABEL: "0"});
        let member = of(pod(&labels, &json!({TURN: r#"{"generation": 3}"#}))).unwrap();
        assert_eq!((&*member.job, &*member.name, member.leads), ("team-a/bert", "worker-0", true));
        assert_eq!(
            (member.turn, member.gate, member.listens),
            (Some(json!({"generation": 3})), Gate::Own, false)
        );
        let labels = json!({JOB_LABEL: "bert", ROLE_LABEL: "worker", INDEX_LABEL: "1"});
        assert!(!of(pod(&labels, &json!({}))).unwrap().leads);
        let labels = json!({JOB_LABEL: "bert", ROLE_LABEL: "ps", INDEX_LABEL: "0"});
        assert!(!of(pod(&labels, &json!({}))).unwrap().leads, "servers wait for nobody's turn");
    }

    #[test]
    fn members_of_others_are_called_as_their_gang_or_owner_is() {
        assert_eq!(of(pod(&json!({GANG_LABEL: "ring"}), &json!({}))).unwrap().job, "team-a/ring");
        let mut owned = pod(&json!({COMPLETION_INDEX: "2"}), &json!({}));
        owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "sweep", "uid": "j", "controller": true}]);
        let member = of(owned).unwrap();
        assert_eq!((&*member.job, &*member.name, member.leads), ("team-a/sweep", "bert-worker-0", false));
        assert_eq!(of(pod(&json!({}), &json!({}))).unwrap().job, "team-a/bert-worker-0");
    }

    #[test]
    fn what_a_pod_lets_be_done_to_it_is_its_own_word() {
        let mut frozen = pod(&json!({}), &json!({GATE: "freeze", TURN: "soon"}));
        frozen["spec"]["volumes"] = json!([{"name": VOLUME, "emptyDir": {}}]);
        let member = of(frozen).unwrap();
        assert_eq!((member.gate, member.turn, member.listens), (Gate::Freeze, None, true));
        let mut of_the_node = pod(&json!({}), &json!({}));
        of_the_node["spec"]["volumes"] = json!([{"name": VOLUME, "hostPath": {"path": "/"}}]);
        of_the_node["spec"]["hostNetwork"] = json!(true);
        let member = of(of_the_node).unwrap();
        assert_eq!((member.listens, member.address, member.is_of_node), (false, None, true));
        let mut of_the_sixth = pod(&json!({}), &json!({}));
        of_the_sixth["status"]["podIP"] = json!("fd00::7");
        let member = of(of_the_sixth).unwrap();
        assert_eq!((member.address, member.is_of_node), (None, false));
    }

    #[test]
    fn who_does_not_run_or_is_not_ours_is_no_member() {
        let mut waits = pod(&json!({}), &json!({}));
        waits["status"]["phase"] = json!("Pending");
        assert_eq!(of(waits), None);
        let mut leaves = pod(&json!({}), &json!({}));
        leaves["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(of(leaves), None);
        let mut others = pod(&json!({}), &json!({}));
        others["spec"]["schedulerName"] = json!("default-scheduler");
        assert_eq!(of(others), None);
    }
}
