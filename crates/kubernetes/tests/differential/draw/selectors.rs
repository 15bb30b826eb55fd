//! Labels of pods, and terms that select them.

use serde_json::{Value, json};

use super::{Dice, HOST, RACK, ZONE};

pub(super) fn labels(dice: &mut Dice) -> Value {
    let mut labels = json!({"app": dice.pick(&["a", "b", "c"])});
    if dice.percent(50) {
        labels["tier"] = dice.pick(&["x", "y"]).into();
    }
    if dice.percent(30) {
        labels["rev"] = dice.pick(&["1", "2"]).into();
    }
    labels
}

/// A label selector, sometimes an empty one, sometimes none.
pub(super) fn selector(dice: &mut Dice) -> Value {
    match dice.between(0, 9) {
        0..=3 => json!({"matchLabels": {"app": dice.pick(&["a", "b", "c"])}}),
        4 => json!({"matchLabels": {"app": dice.pick(&["a", "b"]), "tier": dice.pick(&["x", "y"])}}),
        5 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "c"]}]}),
        6 => json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]},
                                         {"key": "app", "operator": "In", "values": ["b"]}]}),
        7 => {
            let operator = dice.pick(&["Exists", "DoesNotExist"]);
            json!({"matchExpressions": [{"key": "rev", "operator": operator}]})
        }
        8 => json!({}),
        _ => Value::Null,
    }
}

pub(super) fn topology(dice: &mut Dice) -> &'static str {
    dice.pick(&[HOST, ZONE, ZONE, RACK])
}

/// A required term of affinity or anti-affinity.
pub(super) fn term(dice: &mut Dice) -> Value {
    let mut term = json!({"topologyKey": topology(dice), "labelSelector": selector(dice)});
    match dice.between(0, 9) {
        0 => term["namespaces"] = json!(["red", "blue"]),
        1 => term["namespaceSelector"] = json!({}),
        2 => term["namespaceSelector"] = json!({"matchLabels": {"team": dice.pick(&["red", "blue"])}}),
        3 => {
            term["namespaces"] = json!(["green"]);
            term["namespaceSelector"] = json!({"matchExpressions": [{"key": "env", "operator": "Exists"}]});
        }
        _ => {}
    }
    // The API server does not want a key twice, and none without a selector.
    let free = |key: &str, term: &Value| {
        !term["labelSelector"].is_null() && !term["labelSelector"].to_string().contains(key)
    };
    if dice.percent(15) && free("rev", &term) {
        term["matchLabelKeys"] = json!(["rev"]);
    }
    if dice.percent(10) && free("tier", &term) {
        term["mismatchLabelKeys"] = json!(["tier"]);
    }
    term
}

pub(super) fn spread(dice: &mut Dice) -> Value {
    let mut spread = json!({
        "maxSkew": dice.between(1, 3),
        "topologyKey": topology(dice),
        "whenUnsatisfiable": if dice.percent(88) { "DoNotSchedule" } else { "ScheduleAnyway" },
        "labelSelector": selector(dice),
    });
    if dice.percent(20) && spread["whenUnsatisfiable"] == "DoNotSchedule" {
        spread["minDomains"] = dice.between(1, 4).into();
    }
    if dice.percent(30) {
        spread["nodeAffinityPolicy"] = dice.pick(&["Honor", "Ignore"]).into();
    }
    if dice.percent(30) {
        spread["nodeTaintsPolicy"] = dice.pick(&["Honor", "Ignore"]).into();
    }
    let free = !spread["labelSelector"].is_null() && !spread["labelSelector"].to_string().contains("rev");
    if dice.percent(20) && free {
        spread["matchLabelKeys"] = json!(["rev"]);
    }
    spread
}

/// A port on the node, on all its addresses or on one.
pub(super) fn port(dice: &mut Dice) -> Value {
    let mut port = json!({"containerPort": 80, "hostPort": dice.between(8080, 8081)});
    if dice.percent(25) {
        port["protocol"] = "UDP".into();
    }
    if dice.percent(50) {
        port["hostIP"] = dice.pick(&["10.0.0.1", "10.0.0.2", "0.0.0.0"]).into();
    }
    port
}
