//! What of a training job can be changed, and what the API server keeps as it was: every field, one by one.

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use metronome_kubernetes::objects::{TrainingJobObject, training_job_definition};
use metronome_testcluster::shared_with_controllers;
use serde_json::{Value, json};

/// A field with what it is at first and what it is to become.
type Field = (&'static str, Value, Value);

fn spans(period: &str) -> Value {
    json!({"period": period, "phases": [{"length": "60ms", "rate": "40Gbps"}]})
}

fn of_a_pod(image: &str) -> Value {
    json!({"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

/// Of the job itself. Those that need other fields bring them along.
fn kept() -> Vec<Field> {
    vec![
        ("schedulerName", json!("a"), json!("b")),
        ("image", json!("a"), json!("b")),
        ("command", json!(["a"]), json!(["b"])),
        ("args", json!(["a"]), json!(["a", "b"])),
        ("resources", json!({"cpu": "1"}), json!({"cpu": "2"})),
        ("template", of_a_pod("a"), of_a_pod("b")),
        ("cpu", json!({"min": 1, "max": 2}), json!({"min": 1, "max": 4})),
        ("model", json!("resnet50/512"), json!("bert/16")),
        ("work", json!({"iterations": 5}), json!({"iterations": 6})),
        ("topology", json!({"preferred": "rack"}), json!({"required": "rack"})),
        ("traffic", spans("210ms"), spans("220ms")),
        ("checkpoint", json!({"takes": "1s"}), json!({"takes": "2s"})),
        ("progress", json!({"from": "SDK"}), json!({"from": "HTTP"})),
        ("rendezvous", json!("Environment"), json!("MPI")),
        ("port", json!(4000), json!(4001)),
        ("restart", json!("Gang"), json!("Never")),
    ]
}

fn free() -> Vec<Field> {
    vec![
        ("queue", json!("a"), json!("b")),
        ("priorityClassName", json!("a"), json!("b")),
        ("suspend", json!(false), json!(true)),
        ("deadline", json!({"after": "1h"}), json!({"after": "2h"})),
        ("onMiss", json!("Run"), json!("Fail")),
        ("members", json!(2), json!(3)),
        ("minMembers", json!(2), json!(3)),
        ("maxMembers", json!(6), json!(7)),
        ("backoffLimit", json!(3), json!(4)),
        ("failures", json!([{"exitCodes": [1], "action": "Fail"}]), json!([])),
        ("ttlSecondsAfterFinished", json!(60), json!(90)),
    ]
}

fn kept_of_roles() -> Vec<Field> {
    kept().into_iter().filter(|(field, ..)| ROLE.contains(field)).collect()
}

const ROLE: [&str; 5] = ["resources", "image", "command", "args", "template"];

/// What makes sense with the field in it.
fn beside(field: &str) -> Value {
    match field {
        "template" | "image" => json!({}),
        "minMembers" => json!({"image": "i", "maxMembers": 6}),
        "maxMembers" => json!({"image": "i", "minMembers": 2}),
        _ => json!({"image": "i"}),
    }
}

struct Trial {
    jobs: Api<DynamicObject>,
}

impl Trial {
    /// Makes a job and changes it; what the API server says to that.
    async fn change(&self, name: &str, before: Value, change: Value) -> Result<(), String> {
        let job = json!({
            "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": before,
        });
        let job: DynamicObject = serde_json::from_value(job).unwrap();
        self.jobs.create(&PostParams::default(), &job).await.unwrap();
        let patch = Patch::Merge(json!({"spec": change}));
        let done = self.jobs.patch(name, &PatchParams::default(), &patch).await;
        done.map(drop).map_err(|error| error.to_string())
    }
}

fn with(mut object: Value, field: &str, value: &Value) -> Value {
    object[field] = value.clone();
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_can_be_changed_or_not_as_it_is_said() {
    let Some(plane) = shared_with_controllers().await else { return };
    plane.apply_yaml(&training_job_definition()).await.unwrap();
    let namespace = plane.namespace("changes").await.unwrap();
    let api = ApiResource::erase::<TrainingJobObject>(&());
    let jobs = Api::namespaced_with(plane.client().await.unwrap(), &namespace, &api);
    let trial = Trial { jobs };
    for (field, before, after) in kept() {
        let name = format!("kept-{}", field.to_lowercase());
        let said = trial.change(&name, with(beside(field), field, &before), json!({field: after})).await;
        let said = said.expect_err(field);
        assert!(said.contains(&format!("{field} cannot be changed")), "{field}: {said}");
        // To take it away, or to say what was not said, is a change, too.
        let gone = format!("{name}-gone");
        let said = trial.change(&gone, with(beside(field), field, &before), json!({field: null})).await;
        let has_a_default = ["rendezvous", "restart"].contains(&field);
        assert!(has_a_default || said.is_err(), "{field} can be taken away");
    }
    for (field, before, after) in free() {
        let name = format!("free-{}", field.to_lowercase());
        let said = trial.change(&name, with(beside(field), field, &before), json!({field: after})).await;
        assert_eq!(said, Ok(()), "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_keep_what_their_members_are_and_may_have_more_or_fewer() {
    let Some(plane) = shared_with_controllers().await else { return };
    plane.apply_yaml(&training_job_definition()).await.unwrap();
    let namespace = plane.namespace("roles").await.unwrap();
    let api = ApiResource::erase::<TrainingJobObject>(&());
    let jobs = Api::namespaced_with(plane.client().await.unwrap(), &namespace, &api);
    let trial = Trial { jobs };
    let roles =
        |role: Value| json!({"roles": [{"name": "ps", "image": "i"}, with(role, "name", &json!("worker"))]});
    for (field, before, after) in kept_of_roles() {
        let change = |value: &Value| roles(with(beside(field), field, value));
        let said = trial.change(&format!("kept-{field}"), change(&before), change(&after)).await;
        let said = said.expect_err(field);
        assert!(said.contains(&format!("{field} cannot be changed")), "{field}: {said}");
    }
    let elastic =
        |least: u32, most: u32| roles(json!({"image": "i", "minMembers": least, "maxMembers": most}));
    assert_eq!(trial.change("elastic", elastic(2, 4), elastic(3, 6)).await, Ok(()));
    let rigid = |members: u32| roles(json!({"image": "i", "members": members}));
    assert_eq!(trial.change("rigid", rigid(2), rigid(3)).await, Ok(()));
    let said = trial.change("both", rigid(2), elastic(2, 4)).await.unwrap_err();
    assert!(said.contains("whether a role is elastic cannot be changed"), "{said}");
    let said =
        trial.change("gone", rigid(2), json!({"roles": [{"name": "ps", "image": "i"}]})).await.unwrap_err();
    assert!(said.contains("roles cannot come, go or change their names"), "{said}");
}
