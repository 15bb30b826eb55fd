use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;
use crate::objects::{Group, GroupKind};

fn object(spec: &Value) -> DynamicObject {
    let metadata =
        json!({"name": "bert", "namespace": "team-a", "uid": "u1", "labels": {"metronome.dev/user": "lab7"}});
    let mut object: DynamicObject =
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    object.metadata.creation_timestamp = Some(Time("2026-11-15T12:00:00Z".parse().unwrap()));
    object
}

fn api() -> ApiResource {
    ApiResource::erase::<TrainingJobObject>(&())
}

fn read(spec: &Value) -> TrainingJob {
    TrainingJob::read(&api(), &object(spec))
}

#[test]
fn a_job_of_workers_alone_says_what_they_are_directly() {
    let job = read(&json!({"image": "train", "members": 4, "resources": {"cpu": 8, "nvidia.com/gpu": "1"}}));
    let spec = job.spec.unwrap();
    let [role] = &spec.all_roles()[..] else { panic!("{spec:?}") };
    assert_eq!((role.name, role.least, role.most, role.image), ("worker", 4, 4, Some("train")));
    assert_eq!((spec.backoff_limit, spec.restart, spec.on_miss), (3, Restart::Gang, OnMiss::Run));
}

#[test]
fn what_a_role_does_not_say_the_job_says_for_all() {
    let roles = json!([
        {"name": "ps", "members": 1, "command": ["serve"]},
        {"name": "worker", "minMembers": 4, "maxMembers": 16, "image": "gpu"},
    ]);
    let spec = read(&json!({"image": "cpu", "command": ["train"], "roles": roles})).spec.unwrap();
    let said: Vec<_> =
        spec.all_roles().iter().map(|role| (role.image, role.command[0].as_str(), role.most)).collect();
    assert_eq!(said, [(Some("cpu"), "serve", 1), (Some("gpu"), "train", 16)]);
    assert_eq!(spec.least(), 5);
}

#[test]
fn what_makes_no_sense_is_said_in_a_sentence() {
    let said = |spec: Value| read(&spec).spec.unwrap_err();
    assert_eq!(said(json!({})), "role worker has neither an image nor a template");
    assert_eq!(said(json!({"image": "i", "members": 0})), "role worker has from 0 to 0 members");
    let twice = json!([{"name": "worker"}, {"name": "worker"}]);
    assert_eq!(said(json!({"image": "i", "roles": twice})), "two roles are called worker");
    let servers = json!([{"name": "ps"}]);
    assert_eq!(
        said(json!({"image": "i", "roles": servers})),
        "all of its roles only serve others, so it never ends"
    );
    assert!(said(json!({"image": 7})).starts_with("its spec makes no sense: "));
}

#[test]
fn it_declares_a_gang_in_the_words_of_pods() {
    let spec = json!({
        "image": "i", "members": 2, "queue": "research",
        "work": {"target": {"metric": "loss", "atMost": "0.2"}, "maxIterations": 200_000},
        "deadline": {"after": "6h", "binding": "Strict"},
        "checkpoint": {"every": "10m", "takes": "20s", "restart": "30s"},
    });
    let [group] = &Group::read(GroupKind::Training, &api(), &object(&spec))[..] else { panic!() };
    assert_eq!((&group.min_members, group.queue.as_deref()), (&Ok(2), Some("research")));
    let said =
        |key: &str| group.metadata.annotations.as_ref().unwrap()[&format!("metronome.dev/{key}")].as_str();
    assert_eq!(said("deadline"), "2026-11-15T18:00:00Z");
    assert_eq!(said("deadline-binding"), "Strict");
    assert_eq!(said("iterations"), "200000");
    assert_eq!(said("target-loss"), "0.2");
    assert_eq!(said("checkpoint"), "takes=20s,restart=30s");
}

#[test]
fn the_definition_that_people_apply_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/trainingjob.yaml");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == training_job_definition(), "{path} is out of date: run `cargo xtask codegen`");
}
