//! Nodes.

use serde_json::{Value, json};

use super::{Dice, Fixture, HOST, RACK, ZONE};

/// In a quiet scene nodes are open to all.
pub(super) fn node(dice: &mut Dice, name: &str, quiet: bool) -> Fixture {
    let mut spec = json!({});
    if !quiet {
        spec["taints"] = taints(dice).into();
        spec["unschedulable"] = dice.percent(12).into();
    }
    let mut status = json!({"allocatable": allocatable(dice), "capacity": {}});
    if dice.percent(60) {
        status["declaredFeatures"] = json!(["RestartAllContainersOnContainerExits"]);
    }
    let body =
        json!({"metadata": {"name": name, "labels": labels(dice, name)}, "spec": spec, "status": status});
    Fixture::new("/api/v1/nodes", body)
}

fn labels(dice: &mut Dice, name: &str) -> Value {
    let mut labels =
        json!({"disk": dice.pick(&["ssd", "hdd"]), "gen": dice.pick(&["1", "2", "3", "7", "old"])});
    if dice.percent(92) {
        labels[HOST] = name.into();
    }
    if dice.percent(85) {
        labels[ZONE] = dice.pick(&["z1", "z2", "z3"]).into();
    }
    if dice.percent(80) {
        labels[RACK] = dice.pick(&["r1", "r2", "r3", "r4"]).into();
    }
    if dice.percent(15) {
        labels["failure-domain.beta.kubernetes.io/zone"] = dice.pick(&["z1", "z2"]).into();
    }
    labels
}

fn taints(dice: &mut Dice) -> Vec<Value> {
    let mut taints = Vec::new();
    if dice.percent(25) {
        let effect = dice.pick(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
        taints.push(json!({"key": "dedicated", "value": dice.pick(&["ml", "db"]), "effect": effect}));
    }
    if dice.percent(10) {
        taints.push(json!({"key": "flaky", "effect": dice.pick(&["NoSchedule", "NoExecute"])}));
    }
    taints
}

fn allocatable(dice: &mut Dice) -> Value {
    let mut allocatable = json!({
        "cpu": dice.pick(&["2", "3500m", "4", "8", "0.5"]),
        "memory": dice.pick(&["2Gi", "4Gi", "16Gi", "3e9", "1500M"]),
        "ephemeral-storage": dice.pick(&["5Gi", "20Gi"]),
        "pods": dice.pick(&["3", "5", "12", "110"]),
    });
    if dice.percent(50) {
        allocatable["nvidia.com/gpu"] = dice.pick(&["1", "4", "8"]).into();
    }
    if dice.percent(50) {
        allocatable["example.com/fpga"] = dice.pick(&["1", "2", "4"]).into();
    }
    if dice.percent(50) {
        allocatable["hugepages-2Mi"] = dice.pick(&["64Mi", "256Mi"]).into();
    }
    allocatable
}
