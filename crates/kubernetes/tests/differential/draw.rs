//! Scenes drawn at random.

mod dice;
mod nodes;
mod pending;
mod pods;
mod selectors;
mod storage;

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub(crate) use dice::Dice;
pub(crate) use pending::{Pending, Rule};

pub(crate) const NAMESPACES: [&str; 3] = ["red", "blue", "green"];
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOST: &str = "kubernetes.io/hostname";
pub(crate) const RACK: &str = "rack";

/// An object with what is to be done to it once it is there.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) status: Option<Value>,
    /// Deleted, but not gone.
    pub(crate) leaving: bool,
}

impl Fixture {
    fn new(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), body, status: None, leaving: false }
    }
}

/// Objects, and pods to ask about.
#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) nodes: Vec<String>,
    pub(crate) fixtures: Vec<Fixture>,
    pub(crate) pending: Vec<Pending>,
}

impl Scene {
    pub(crate) fn draw(dice: &mut Dice, pods: u64) -> Self {
        let names: Vec<String> = (0..dice.between(6, 11)).map(|n| format!("node-{n}")).collect();
        let quiet = dice.percent(20);
        let mut fixtures: Vec<Fixture> = names.iter().map(|name| nodes::node(dice, name, quiet)).collect();
        let shelf = storage::Shelf::draw(dice, &names);
        fixtures.extend((0..dice.between(12, 30)).map(|n| pods::running(dice, n, &names, &shelf)));
        fixtures.extend(shelf.fixtures);
        let pending = (0..pods).map(|n| Pending::draw(dice, n, &names, &shelf.claims)).collect();
        Self { nodes: names, fixtures, pending }
    }
}

/// What is there in every scene.
pub(crate) fn fixtures() -> Vec<Fixture> {
    let namespaces = [
        ("red", json!({"team": "red", "env": "prod"})),
        ("blue", json!({"team": "blue"})),
        ("green", json!({})),
    ];
    let namespace = |(name, labels): (&str, Value)| {
        Fixture::new("/api/v1/namespaces", json!({"metadata": {"name": name, "labels": labels}}))
    };
    let heavy = json!({"metadata": {"name": "heavy"}, "handler": "heavy",
                       "overhead": {"podFixed": {"cpu": "750m", "memory": "512Mi"}}});
    let mut fixtures: Vec<Fixture> = namespaces.into_iter().map(namespace).collect();
    fixtures.push(Fixture::new("/apis/node.k8s.io/v1/runtimeclasses", heavy));
    fixtures.extend(storage::fixtures());
    fixtures
}

/// Puts `given` over `usual`; lists are joined.
pub(crate) fn merge(usual: &mut Value, given: &Value) {
    match (usual, given) {
        (Value::Object(usual), Value::Object(given)) => {
            for (key, value) in given {
                merge(usual.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(usual), Value::Array(given)) => usual.extend(given.iter().cloned()),
        (usual, given) => usual.clone_from(given),
    }
}

/// The names of nodes, for messages.
pub(crate) fn listed(nodes: &BTreeSet<String>) -> String {
    nodes.iter().map(|name| name.trim_start_matches("node-")).collect::<Vec<_>>().join(" ")
}
