//! The objects that are made for a job: its pods, and what they share.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::environment::{HOSTS_FILE, HOSTS_FOLDER, hosts, variables};
use super::owned_by;
use super::places::Place;
use super::turn;
use crate::deed::NewObject;
use crate::objects::{
    ATTEMPT, INDEX_LABEL, JOB_LABEL, ROLE_LABEL, Rendezvous, RoleOf, SIZE, Template, TrainingJob,
    TrainingJobSpec,
};

/// The container of a member that has no template.
const ONLY_CONTAINER: &str = "main";

/// A service by whose name members find each other, and for MPI a file with all hosts.
pub(super) fn shared(job: &TrainingJob) -> Vec<NewObject> {
    let Ok(spec) = &job.spec else { return Vec::new() };
    let mut objects = vec![service(job)];
    if spec.rendezvous == Rendezvous::Mpi {
        objects.push(hosts_map(job, spec));
    }
    objects
}

fn service(job: &TrainingJob) -> NewObject {
    let name = &*job.reference.name;
    let body = json!({
        "metadata": metadata(job, name),
        // Members look for each other before they are ready.
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": true, "selector": {JOB_LABEL: name}},
    });
    NewObject { namespace: job.reference.namespace.clone(), name: name.into(), plural: "services", body }
}

fn hosts_map(job: &TrainingJob, spec: &TrainingJobSpec) -> NewObject {
    let name: Arc<str> = hosts_name(job, spec).into();
    let body = json!({"metadata": metadata(job, &name), "data": {HOSTS_FILE: hosts(job, spec)}});
    NewObject { namespace: job.reference.namespace.clone(), name, plural: "configmaps", body }
}

/// One for each number of hosts: what was made stays as it is.
fn hosts_name(job: &TrainingJob, spec: &TrainingJobSpec) -> String {
    match spec.elastic_role() {
        Some(_) => format!("{}-hosts-{}", job.reference.name, job.status.size(spec)),
        None => format!("{}-hosts", job.reference.name),
    }
}

fn metadata(job: &TrainingJob, name: &str) -> Value {
    let labels = json!({JOB_LABEL: &*job.reference.name});
    json!({"name": name, "labels": labels, "ownerReferences": owned_by(job)})
}

/// One member, as its role describes it.
pub(super) fn pod(job: &TrainingJob, place: &Place, scheduler: &str) -> NewObject {
    let spec = job.spec.as_ref().expect("pods are made only of what makes sense");
    let role = spec.all_roles().into_iter().find(|role| role.name == place.role);
    let role = role.expect("places are made of the roles of their job");
    let mut body = template(&role);
    let meta = within(&mut body, "metadata");
    meta.insert("name".into(), json!(&*place.name));
    meta.insert("ownerReferences".into(), owned_by(job));
    let labels = within(meta, "labels");
    labels.insert(JOB_LABEL.into(), json!(&*job.reference.name));
    labels.insert(ROLE_LABEL.into(), json!(place.role));
    labels.insert(INDEX_LABEL.into(), json!(place.index.to_string()));
    within(meta, "annotations").insert(ATTEMPT.into(), json!(place.attempt.to_string()));
    if spec.elastic_role().is_some() && spec.rendezvous != Rendezvous::Elastic {
        within(meta, "annotations").insert(SIZE.into(), json!(job.status.size(spec).to_string()));
    }
    if let Some(cores) = &spec.cpu {
        within(meta, "annotations")
            .insert("metronome.dev/cpu".into(), json!(format!("{}-{}", cores.min, cores.max)));
    }
    let pod = within(&mut body, "spec");
    pod.insert("schedulerName".into(), json!(scheduler));
    pod.insert("hostname".into(), json!(&*place.name));
    pod.insert("subdomain".into(), json!(&*job.reference.name));
    pod.entry("restartPolicy").or_insert(json!("Never"));
    if let Some(class) = &spec.priority_class_name {
        pod.insert("priorityClassName".into(), json!(class));
    }
    for container in list(pod, "containers") {
        for (name, value) in variables(job, spec, place) {
            set_unless_said(container, name, json!({"value": value}));
        }
    }
    if spec.rendezvous == Rendezvous::Mpi {
        mount_hosts(job, spec, pod);
    }
    if spec.rendezvous != Rendezvous::None {
        turn::connect(pod);
    }
    let namespace = job.reference.namespace.clone();
    NewObject { namespace, name: place.name.clone(), plural: "pods", body: Value::Object(body) }
}

/// What a role says of its pods, without what they have of their own.
fn template(role: &RoleOf<'_>) -> Map<String, Value> {
    if let Some(Template(template)) = role.template {
        return template.clone();
    }
    let mut container = json!({"name": ONLY_CONTAINER, "image": role.image});
    if !role.command.is_empty() {
        container["command"] = json!(role.command);
    }
    if !role.args.is_empty() {
        container["args"] = json!(role.args);
    }
    if let Some(amounts) = role.resources {
        // Devices must be limited to what is asked for; cores and memory need not be.
        let devices: Map<String, Value> = amounts
            .iter()
            .filter(|(name, _)| name.contains('/'))
            .map(|(name, amount)| (name.clone(), json!(amount)))
            .collect();
        container["resources"] = json!({"requests": amounts, "limits": devices});
    }
    let Value::Object(body) = json!({"spec": {"containers": [container]}}) else { return Map::new() };
    body
}

fn mount_hosts(job: &TrainingJob, spec: &TrainingJobSpec, pod: &mut Map<String, Value>) {
    const VOLUME: &str = "metronome-hosts";
    let volume = json!({"name": VOLUME, "configMap": {"name": hosts_name(job, spec)}});
    push(pod, "volumes", volume);
    for container in list(pod, "containers") {
        push(container, "volumeMounts", json!({"name": VOLUME, "mountPath": HOSTS_FOLDER, "readOnly": true}));
    }
}

/// What the template says itself stays as it is.
pub(super) fn set_unless_said(container: &mut Map<String, Value>, name: &str, mut variable: Value) {
    let said = container.get("env").and_then(Value::as_array);
    if said.is_none_or(|all| all.iter().all(|one| one["name"] != name)) {
        variable["name"] = json!(name);
        push(container, "env", variable);
    }
}

/// The object in a field, which is made where there is none.
fn within<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(field).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was just made one")
}

/// The objects in a list; what is none is left to the API server to refuse.
pub(super) fn list<'a>(
    object: &'a mut Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let items = object.get_mut(field).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

pub(super) fn push(object: &mut Map<String, Value>, field: &str, item: Value) {
    let list = object.entry(field).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
