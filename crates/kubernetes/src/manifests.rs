//! Everything that an installation consists of, as data. `metronome install` prints it with values filled in, and the
//! Helm chart is the same data with the names of values in their places, so that the two cannot disagree.

mod account;
mod agent;
mod chart;
mod guard;
mod monitoring;
mod page;
mod rights;
mod scheduler;
mod slots;
mod values;
mod yaml;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::objects::{definition, fabric_definition, training_job_definition};

pub use chart::{FILES, file};
pub use page::rights_page;
pub use rights::{IN_THE_CLUSTER, IN_THE_OWN_NAMESPACE, OF_THE_AGENT, Right, UNSEEN};
use slots::{Slots, Switch};
pub use values::{Agent, Journal, Part, Resources, Values};

/// What everything of ours is called, and the label by which it is found.
pub(crate) const NAME: &str = "metronome";
/// What the port of its service is called.
pub(crate) const PORT_NAME: &str = "http";
const LABEL: &str = "app.kubernetes.io/name";

/// One object of an installation.
#[derive(Clone, Debug, PartialEq)]
struct Manifest {
    object: Value,
    /// For a role: what it allows.
    rights: Option<&'static [Right]>,
}

/// Objects that lie in one file of the chart.
struct Group {
    file: &'static str,
    /// Whether they are there at all.
    when: Switch,
    manifests: Vec<Manifest>,
}

/// All that is applied to a cluster, as one text of several documents, with the reason for every right.
pub fn yaml(namespace: &str, values: &Values) -> String {
    let slots = Slots::filled(namespace, values);
    let documents = chosen(&slots, namespace).map(|manifest| yaml::write(&manifest, &slots.observe));
    documents.collect::<Vec<_>>().join("---\n")
}

/// The same as one list for programs.
pub fn list(namespace: &str, values: &Values) -> Value {
    let slots = Slots::filled(namespace, values);
    let items: Vec<Value> =
        chosen(&slots, namespace).map(|manifest| manifest.whole(&slots.observe)).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// The definitions of our kinds, as one text.
pub fn definitions() -> String {
    [definition(), fabric_definition(), training_job_definition()].join("---\n")
}

/// Helm makes the namespace itself; whoever applies plain manifests needs it to come first.
fn chosen(slots: &Slots, namespace: &str) -> impl Iterator<Item = Manifest> {
    let own = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace, "labels": labels()},
    });
    let groups = groups(slots).into_iter().filter(|group| group.when == Switch::On);
    [Manifest::from(own)].into_iter().chain(groups.flat_map(|group| group.manifests))
}

/// In the order in which they are best applied: what others need comes first.
fn groups(slots: &Slots) -> Vec<Group> {
    let always = |file, manifests| Group { file, when: Switch::On, manifests };
    vec![
        Group { file: "definitions.yaml", when: slots.definitions.clone(), manifests: kinds() },
        always("account.yaml", account::manifests(slots)),
        always("settings.yaml", vec![scheduler::settings(slots)]),
        always("scheduler.yaml", scheduler::manifests(slots)),
        Group { file: "guard.yaml", when: slots.guard.clone(), manifests: guard::manifests(slots) },
        Group {
            file: "monitoring.yaml",
            when: slots.monitoring.clone(),
            manifests: monitoring::manifests(slots),
        },
        Group { file: "agent.yaml", when: slots.agent.clone(), manifests: agent::manifests(slots) },
        Group {
            file: "agent-monitoring.yaml",
            when: slots.agent_monitoring.clone(),
            manifests: vec![agent::monitor(slots)],
        },
    ]
}

/// Definitions stay when the rest is uninstalled: with them would go every job and queue.
fn kinds() -> Vec<Manifest> {
    let kept = |text: String| {
        let mut definition: CustomResourceDefinition =
            serde_saphyr::from_str(&text).expect("what was just written can be read");
        let annotations = definition.metadata.annotations.get_or_insert_default();
        annotations.insert("helm.sh/resource-policy".to_owned(), "keep".to_owned());
        let mut object = json!(definition);
        object["apiVersion"] = json!("apiextensions.k8s.io/v1");
        object["kind"] = json!("CustomResourceDefinition");
        Manifest::from(object)
    };
    [definition(), fabric_definition(), training_job_definition()].map(kept).into()
}

impl From<Value> for Manifest {
    fn from(object: Value) -> Self {
        Self { object, rights: None }
    }
}

impl Manifest {
    /// The object with what it allows.
    fn whole(&self, observe: &Switch) -> Value {
        let mut object = self.object.clone();
        if let Some(rights) = self.rights {
            let granted = rights.iter().filter(|right| *observe == Switch::Off || right.only_reads());
            object["rules"] = granted.map(Right::rule).collect();
        }
        object
    }
}

fn labels() -> Value {
    json!({LABEL: NAME, "app.kubernetes.io/version": env!("CARGO_PKG_VERSION")})
}

fn metadata(slots: &Slots, name: &str) -> Value {
    json!({"name": name, "namespace": slots.namespace, "labels": labels()})
}

/// Of what belongs to the whole cluster.
fn wide_metadata(name: &str) -> Value {
    json!({"name": name, "labels": labels()})
}

#[cfg(test)]
mod tests;
