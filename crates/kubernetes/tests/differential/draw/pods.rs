//! Pods that are on nodes already.

use serde_json::{Value, json};

use super::storage::Shelf;
use super::{Dice, Fixture, NAMESPACES, selectors};

pub(super) fn running(dice: &mut Dice, n: u64, nodes: &[String], shelf: &Shelf) -> Fixture {
    let namespace = dice.pick(&NAMESPACES);
    let node = if dice.percent(96) { dice.one_of(nodes).clone() } else { "elsewhere".to_owned() };
    let mut body = json!({
        "metadata": {"name": format!("running-{n}"), "labels": selectors::labels(dice)},
        "spec": {
            "nodeName": node,
            "schedulerName": dice.pick(&["default-scheduler", "another", "reference"]),
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests(dice)}}],
        },
    });
    if dice.percent(15) {
        body["spec"]["containers"][0]["ports"] = json!([selectors::port(dice)]);
    }
    if dice.percent(22) {
        let term = selectors::term(dice);
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        body["spec"]["affinity"] = json!({"podAntiAffinity": required});
    }
    let claims: Vec<&str> = shelf.usable(namespace);
    if dice.percent(30) && !claims.is_empty() {
        let claim = *dice.one_of(&claims);
        body["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    }
    let leaving = dice.percent(15);
    let status = status(dice, &body).filter(|_| !leaving);
    Fixture { path: format!("/api/v1/namespaces/{namespace}/pods"), body, status, leaving }
}

fn requests(dice: &mut Dice) -> Value {
    let mut requests = json!({"cpu": dice.pick(&["0", "100m", "500m", "1"])});
    if dice.percent(60) {
        requests["memory"] = dice.pick(&["100Mi", "1Gi", "256M"]).into();
    }
    if dice.percent(20) {
        requests["ephemeral-storage"] = "1Gi".into();
    }
    requests
}

/// Some are done, and some have more or less than they ask for while they are being resized.
fn status(dice: &mut Dice, body: &Value) -> Option<Value> {
    let asked = &body["spec"]["containers"][0]["resources"]["requests"];
    match dice.between(0, 19) {
        0 => Some(json!({"phase": dice.pick(&["Succeeded", "Failed"])})),
        1..=2 => {
            let mut allocated = asked.clone();
            allocated["cpu"] = dice.pick(&["50m", "2"]).into();
            let mut pending = json!({"type": "PodResizePending", "status": "True"});
            pending["reason"] = dice.pick(&["Deferred", "Infeasible"]).into();
            Some(json!({
                "phase": "Running",
                "conditions": [pending],
                "containerStatuses": [{
                    "name": "main", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
                    "allocatedResources": allocated, "resources": {"requests": allocated},
                }],
            }))
        }
        _ => None,
    }
}
