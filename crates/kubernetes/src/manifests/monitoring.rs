//! What the Prometheus operator needs: where metrics are, and when to wake somebody.

use serde_json::{Value, json};

use super::slots::Slots;
use super::{LABEL, Manifest, NAME, metadata};

const GROUP: &str = "monitoring.coreos.com/v1";

/// What to do about each alert, under its name.
const RUNBOOK: &str = "docs/guide/runbook.md";

/// Something that somebody should look at.
struct Alert {
    name: &'static str,
    when: &'static str,
    lasting: &'static str,
    severity: &'static str,
    summary: &'static str,
}

const ABSENT: Alert = Alert {
    name: "MetronomeAbsent",
    when: "absent(up{job=\"metronome\"} == 1)",
    lasting: "5m",
    severity: "critical",
    summary: "No replica of the scheduler answers. Pods that run go on; pods that wait go on waiting.",
};

/// Whoever only observes is never led.
const NO_LEADER: Alert = Alert {
    name: "MetronomeNoLeader",
    when: "max(metronome_leader) < 1",
    lasting: "2m",
    severity: "critical",
    summary: "Replicas run and none leads: nothing is scheduled. Their logs say whether the lease cannot be written, \
              or a new version waits for its first plan to be accepted.",
};

const PLAN_REJECTED: Alert = Alert {
    name: "MetronomePlanRejected",
    when: "max(metronome_alarms) > 0",
    lasting: "0m",
    severity: "warning",
    summary: "A decision broke a rule and was thrown away, or a count was found astray: a mistake in the scheduler. \
              The plan before it stays in force.",
};

/// What a replica that once led has last seen of gangs is of no interest.
const GANG_STUCK: Alert = Alert {
    name: "MetronomeGangStuck",
    when: "max(metronome_oldest_intent_seconds and metronome_leader == 1) > 600",
    lasting: "1m",
    severity: "warning",
    summary: "A gang has been about to be bound, or to move, for ten minutes. The ConfigMaps labelled \
              metronome.dev/intent say which.",
};

const BINDING_OFF: Alert = Alert {
    name: "MetronomeBindingOff",
    when: "min(metronome_binding_enabled and metronome_leader == 1) < 1",
    lasting: "1h",
    severity: "warning",
    summary: "All binding has been switched off for an hour, by the ConfigMap metronome.",
};

/// One node that is never asked is as bad as none of them.
const AGENT_ABSENT: Alert = Alert {
    name: "MetronomeAgentAbsent",
    when: "up{job=\"metronome-agent\"} == 0 or absent(up{job=\"metronome-agent\"} == 1)",
    lasting: "10m",
    severity: "warning",
    summary: "The agent of a node does not answer. Jobs there go on; they are not held to their turns, and nothing new is \
              learned of what they send.",
};

pub(super) fn manifests(slots: &Slots) -> Vec<Manifest> {
    vec![monitor(slots).into(), rules(slots).into()]
}

fn monitor(slots: &Slots) -> Value {
    json!({
        "apiVersion": GROUP, "kind": "ServiceMonitor", "metadata": metadata(slots, NAME),
        "spec": {
            "selector": {"matchLabels": {LABEL: NAME}},
            "endpoints": [{"port": "http", "path": "/metrics"}],
        },
    })
}

fn rules(slots: &Slots) -> Value {
    let led: Vec<Value> = [NO_LEADER, GANG_STUCK, BINDING_OFF].iter().map(Alert::rule).collect();
    let always: Vec<Value> = [ABSENT, PLAN_REJECTED].iter().map(Alert::rule).collect();
    let groups = [
        vec![json!({"name": "metronome", "rules": always})],
        slots.observe.either(Vec::new(), vec![json!({"name": "metronome-leader", "rules": led})]),
        slots
            .agent
            .either(vec![json!({"name": "metronome-agent", "rules": [AGENT_ABSENT.rule()]})], Vec::new()),
    ];
    json!({
        "apiVersion": GROUP, "kind": "PrometheusRule", "metadata": metadata(slots, NAME),
        "spec": {"groups": groups.concat()},
    })
}

impl Alert {
    fn rule(&self) -> Value {
        let runbook = format!("{RUNBOOK}#{}", self.name.to_lowercase());
        json!({
            "alert": self.name, "expr": self.when, "for": self.lasting,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "runbook": runbook},
        })
    }
}
