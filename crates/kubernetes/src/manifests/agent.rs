//! The agent on every node: what it is, what it may do there, and on which pods it may write what.

use serde_json::{Value, json};

use super::account::{binding, role};
use super::rights::OF_THE_AGENT;
use super::slots::Slots;
use super::{LABEL, Manifest, NAME, metadata, wide_metadata};

pub(super) const AGENT: &str = "metronome-agent";

/// On the node's own network, where others listen, too.
const PORT: u16 = 8189;

/// Where both parts of the agent meet, and where the node's folders are in its container.
const FOLDER: &str = "/run/metronome";
const CGROUPS: &str = "/node/cgroup";
const PODS: &str = "/node/pods";

/// What a pod's annotations may say by the agent's hand, as its admission policy has it.
const WRITTEN: &str = "['metronome.dev/traffic', 'metronome.dev/progress']";

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

pub(super) fn manifests(slots: &Slots) -> Vec<Manifest> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(slots, AGENT)});
    let wide = role("ClusterRole", &wide_metadata(AGENT));
    vec![
        account.into(),
        Manifest { object: wide, rights: Some(OF_THE_AGENT) },
        binding(slots, "ClusterRole", AGENT, &wide_metadata(AGENT)).into(),
        policy(slots).into(),
        policy_binding().into(),
        daemon_set(slots).into(),
    ]
}

/// By its roles it could change all of any pod. The API server lets it write two annotations, on the pods of its own node:
/// whoever takes over a node gets no further than that.
fn policy(slots: &Slots) -> Value {
    let account = format!("system:serviceaccount:{}:{AGENT}", slots.namespace);
    let annotations = |object: &str| format!("{object}.metadata.?annotations.orValue({{}})");
    // Whatever one of both says that is not the agent's to write, the other says, too.
    let kept = format!(
        "key in {WRITTEN} || (key in variables.said && key in variables.says && variables.said[key] == variables.says[key])"
    );
    let stays = ["metadata.?labels", "metadata.?finalizers", "metadata.?ownerReferences", "spec"];
    let stays = stays.map(|field| format!("object.{field} == oldObject.{field}")).join(" && ");
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": wide_metadata(AGENT),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"], "operations": ["UPDATE"],
            }]},
            "matchConditions": [
                {"name": "by-the-agent", "expression": format!("request.userInfo.username == '{account}'")},
            ],
            "variables": [
                {"name": "node", "expression": "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')"},
                {"name": "says", "expression": annotations("object")},
                {"name": "said", "expression": annotations("oldObject")},
            ],
            "validations": [
                {
                    "expression": "variables.node != '' && object.spec.?nodeName.orValue('') == variables.node",
                    "message": "an agent writes on pods of its own node alone",
                    "reason": "Forbidden",
                },
                {
                    "expression": format!("variables.says.all(key, {kept}) && variables.said.all(key, {kept}) && {stays}"),
                    "message": "an agent writes what was measured and reported, and nothing else",
                    "reason": "Forbidden",
                },
            ],
        },
    })
}

fn policy_binding() -> Value {
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": wide_metadata(AGENT),
        "spec": {"policyName": AGENT, "validationActions": ["Deny"]},
    })
}

fn daemon_set(slots: &Slots) -> Value {
    let labels = json!({LABEL: AGENT, "app.kubernetes.io/part-of": NAME, "app.kubernetes.io/version": env!("CARGO_PKG_VERSION")});
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(slots, AGENT),
        "spec": {
            "selector": {"matchLabels": {LABEL: AGENT}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": labels}, "spec": pod(slots)},
        },
    })
}

/// Two containers that meet in a folder: one measures and enforces and knows of no API server; the other knows of pods and
/// cannot change a link.
fn pod(slots: &Slots) -> Value {
    let folder =
        |name: &str, path: &str| json!({"name": name, "hostPath": {"path": path, "type": "Directory"}});
    json!({
        "serviceAccountName": AGENT,
        // Only one of both has the account's word.
        "automountServiceAccountToken": false,
        "priorityClassName": slots.priority_class_name,
        // Wires of pods end in the node's network, and processes are found by their numbers on the node.
        "hostNetwork": true, "hostPID": true, "dnsPolicy": "ClusterFirstWithHostNet",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        // Jobs run on nodes that are kept from others by taints.
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": slots.agent_nodes_with, "operator": "Exists"}]},
        ]}}},
        // Turns are given back before it ends.
        "terminationGracePeriodSeconds": 10,
        "containers": [enforcing(slots), knowing(slots)],
        "volumes": [
            {"name": "own", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            folder("cgroups", "/sys/fs/cgroup"),
            folder("pods", "/var/lib/kubelet/pods"),
            {"name": "account", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
            ]}},
        ],
    })
}

/// Measures what crosses wires, takes reports, puts jobs into their classes and stops processes for a moment.
fn enforcing(slots: &Slots) -> Value {
    json!({
        "name": "agent",
        "image": slots.agent_image,
        "args": ["agent", format!("--dir={FOLDER}")],
        "resources": resources(),
        "securityContext": security("NET_ADMIN"),
        "volumeMounts": [
            {"name": "own", "mountPath": FOLDER},
            {"name": "cgroups", "mountPath": CGROUPS},
        ],
    })
}

/// Says who is on the node, and writes on their pods.
fn knowing(slots: &Slots) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": PORT}, "periodSeconds": 10});
    json!({
        "name": "pods",
        "image": slots.agent_image,
        "args": arguments(slots),
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "ports": [{"name": "agent", "containerPort": PORT, "hostPort": PORT}],
        "livenessProbe": probe("/livez"),
        "readinessProbe": probe("/readyz"),
        "resources": resources(),
        // To see which wire is whose.
        "securityContext": security("SYS_PTRACE"),
        "volumeMounts": [
            {"name": "own", "mountPath": FOLDER},
            {"name": "cgroups", "mountPath": CGROUPS, "readOnly": true},
            {"name": "pods", "mountPath": PODS, "mountPropagation": "HostToContainer"},
            {"name": "account", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
        ],
    })
}

fn resources() -> Value {
    json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}})
}

/// Root, because folders of the node are root's, with nothing of what root may do but one thing.
fn security(capability: &str) -> Value {
    json!({
        "runAsUser": 0, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"], "add": [capability]},
    })
}

fn arguments(slots: &Slots) -> Vec<Value> {
    [
        vec![
            json!("agent"),
            json!("--kubernetes"),
            json!("--node=$(NODE_NAME)"),
            json!(format!("--scheduler-name={}", slots.scheduler_name)),
            json!(format!("--dir={FOLDER}")),
            json!(format!("--cgroups={CGROUPS}")),
            json!(format!("--pods={PODS}")),
            json!(format!("--health=0.0.0.0:{PORT}")),
        ],
        slots.agent_has_uplink.either(
            vec![
                json!(format!("--uplink={}", slots.agent_uplink)),
                json!(format!("--uplink-rate={}", slots.agent_uplink_rate)),
            ],
            Vec::new(),
        ),
    ]
    .concat()
}

/// Where the agents' metrics are, each on its node.
pub(super) fn monitor(slots: &Slots) -> Manifest {
    let object = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PodMonitor", "metadata": metadata(slots, AGENT),
        "spec": {
            // What a target is called, as alerts have it.
            "jobLabel": LABEL,
            "selector": {"matchLabels": {LABEL: AGENT}},
            "podMetricsEndpoints": [{"port": "agent", "path": "/metrics"}],
        },
    });
    object.into()
}
