use serde_json::{Value, json};

use super::*;
use metronome_core::model::units::Share;

fn read(kind: QueueKind, body: &Value) -> Result<Described, Complaint> {
    let api = ApiResource {
        group: "g".into(),
        version: "v1".into(),
        api_version: "g/v1".into(),
        kind: "Queue".into(),
        plural: "queues".into(),
    };
    let mut object = json!({"metadata": {"name": "research", "uid": "u1"}});
    object.as_object_mut().unwrap().extend(body.as_object().cloned().unwrap_or_default());
    Queue::read(kind, &api, &serde_json::from_value(object).unwrap()).described
}

fn gpus(gpus: u64) -> Option<Resources> {
    Some(Resources { gpus: Gpus::whole(gpus), ..Resources::UNBOUNDED })
}

#[test]
fn volcanos_terms_are_ours() {
    let body = json!({
        "spec": {
            "weight": 4, "parent": "labs", "reclaimable": false,
            "capability": {"nvidia.com/gpu": 16, "cpu": "500m", "memory": "2Gi"},
            "deserved": {"nvidia.com/gpu": "8"},
            "guarantee": {"resource": {"nvidia.com/gpu": 2}},
        },
        "status": {"state": "Closing"},
    });
    let described = read(QueueKind::Volcano, &body).unwrap();
    let limit = Resources { cpu: Cpu(500), memory: Memory(2 << 30), gpus: Gpus::whole(16) };
    let expected = queue::Queue {
        weight: 4,
        quota: gpus(8),
        limit: Some(limit),
        kept: gpus(2),
        gives_back: false,
        ..queue::Queue::open("research")
    };
    assert_eq!(described.queue, expected);
    assert_eq!((described.parent.as_deref(), described.doors), (Some("labs"), Doors::Closed));
}

#[test]
fn what_volcano_guarantees_is_its_own_and_not_lent() {
    let guarantee = json!({"resource": {"nvidia.com/gpu": 4}});
    let only = read(QueueKind::Volcano, &json!({"spec": {"guarantee": guarantee}})).unwrap().queue;
    assert_eq!(
        (only.quota, only.keeps()),
        (gpus(4), Some(Resources { gpus: Gpus::whole(4), ..Resources::NONE }))
    );
    let less = json!({"spec": {"guarantee": guarantee, "deserved": {"nvidia.com/gpu": 1}}});
    assert_eq!(read(QueueKind::Volcano, &less).unwrap().queue.quota, gpus(4));
}

#[test]
fn an_empty_object_is_an_open_queue() {
    for kind in [QueueKind::Own, QueueKind::Volcano] {
        for body in [
            json!({}),
            json!({"spec": null}),
            json!({"spec": {"parent": "root", "quota": {}, "deserved": {}}}),
        ] {
            assert_eq!(read(kind, &body), Ok(Described::open("research")), "{body}");
        }
    }
}

#[test]
fn ours_says_what_scenarios_say() {
    let body = json!({"spec": {
        "parent": "labs", "weight": 2, "lends": false, "borrows": false,
        "quota": {"nvidia.com/gpu": 32}, "limit": {"nvidia.com/gpu": 40},
        "users": [{"name": "lab7", "priority": "high"}, {"name": "lab8", "limit": {"nvidia.com/gpu": 1}}],
    }});
    let queue = read(QueueKind::Own, &body).unwrap().queue;
    assert_eq!((queue.weight, queue.quota, queue.limit), (2, gpus(32), gpus(40)));
    assert_eq!((queue.lends, queue.borrows, queue.keeps().is_some()), (false, false, true));
    let users: Vec<_> = queue.users.iter().map(|user| (&*user.name, user.priority, user.limit)).collect();
    assert_eq!(users, [("lab7", Share::WHOLE, None), ("lab8", Share(500_000), gpus(1))]);
}

#[test]
fn what_makes_no_sense_is_said_with_its_place() {
    let said = |spec: Value| read(QueueKind::Own, &json!({"spec": spec})).unwrap_err().to_string();
    assert_eq!(said(json!({"weight": 0})), "spec.weight is 0, which is out of range");
    assert_eq!(said(json!({"weight": "2"})), "spec.weight is \"2\", not a whole number");
    assert_eq!(said(json!({"quota": {"cpu": "-1"}})), "spec.quota.cpu is \"-1\", which is out of range");
    assert_eq!(said(json!({"quota": {"cpu": [1]}})), "spec.quota.cpu is a list, not a quantity");
    assert_eq!(said(json!({"lends": "no"})), "spec.lends is \"no\", not true or false");
    assert_eq!(
        said(json!({"users": [{"name": "a", "priority": "top"}]})),
        "spec.users[0].priority is \"top\", not high, normal or low"
    );
    let less = json!({"quota": {"nvidia.com/gpu": 8}, "limit": {"nvidia.com/gpu": 4}});
    assert_eq!(said(less), "its limit is less than what it may call its own");
}

#[test]
fn the_definition_that_people_apply_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/queue.yaml");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == definition(), "{path} is out of date: run `cargo xtask codegen`");
}

/// What the schema lets through unsaid is what is read where nothing is said.
#[test]
fn the_schemas_defaults_are_those_that_are_read() {
    let spec: QueueSpec = serde_json::from_value(json!({})).unwrap();
    assert_eq!(read(QueueKind::Own, &json!({"spec": spec})), Ok(Described::open("research")));
    let user: UserSpec = serde_json::from_value(json!({"name": "ann"})).unwrap();
    let queue = read(QueueKind::Own, &json!({"spec": {"users": [user]}})).unwrap().queue;
    assert_eq!(queue.users[0].priority, Share(500_000));
}
