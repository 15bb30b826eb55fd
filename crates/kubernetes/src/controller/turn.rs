//! How members learn of their turn on links, and whom they report to: by volumes of their own, in which the kubelet puts
//! what their pod says and the node's agent its socket. Without an agent nobody listens there.

use serde_json::{Map, Value, json};

use super::pods::{list, push, set_unless_said};
use crate::agent::members::VOLUME as AGENT_VOLUME;
use crate::world::TURN;

const TURN_VOLUME: &str = "metronome-turn";

const TURN_FOLDER: &str = "/run/metronome/turn";
const AGENT_FOLDER: &str = "/run/metronome/agent";

/// Nothing is done to a pod that has volumes of these names: it says itself what it wants.
pub(super) fn connect(pod: &mut Map<String, Value>) {
    let is_ours = |volume: &Map<String, Value>| {
        [AGENT_VOLUME, TURN_VOLUME].iter().any(|name| volume.get("name").is_some_and(|said| said == name))
    };
    if list(pod, "volumes").any(|volume| is_ours(volume)) {
        return;
    }
    let turn =
        json!({"path": "turn.json", "fieldRef": {"fieldPath": format!("metadata.annotations['{TURN}']")}});
    push(pod, "volumes", json!({"name": TURN_VOLUME, "downwardAPI": {"items": [turn]}}));
    push(pod, "volumes", json!({"name": AGENT_VOLUME, "emptyDir": {}}));
    for container in list(pod, "containers") {
        push(
            container,
            "volumeMounts",
            json!({"name": TURN_VOLUME, "mountPath": TURN_FOLDER, "readOnly": true}),
        );
        push(container, "volumeMounts", json!({"name": AGENT_VOLUME, "mountPath": AGENT_FOLDER}));
        set_unless_said(container, "METRONOME_DIR", json!({"value": TURN_FOLDER}));
        set_unless_said(container, "METRONOME_SOCKET", json!({"value": format!("{AGENT_FOLDER}/socket")}));
        let own = json!({"valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}});
        set_unless_said(container, "METRONOME_TOKEN", own);
    }
}
