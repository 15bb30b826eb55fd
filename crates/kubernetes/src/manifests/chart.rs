//! The files of the Helm chart, all made of the same data.

use std::fmt::Write;

use schemars::schema_for;
use serde_json::{Value, json};

use super::slots::{Slots, Switch, templated};
use super::values::Values;
use super::{Group, NAME, groups, yaml};

const MADE: &str = "# Written by `cargo xtask codegen`: do not edit.\n";

/// Grows with every change of the chart that somebody may have installed, whether or not the program changes.
const VERSION: &str = "0.3.0";

/// Every file that is made, below the chart's folder.
pub const FILES: [&str; 12] = [
    "Chart.yaml",
    "README.md",
    "values.yaml",
    "values.schema.json",
    "templates/account.yaml",
    "templates/agent-monitoring.yaml",
    "templates/agent.yaml",
    "templates/definitions.yaml",
    "templates/guard.yaml",
    "templates/monitoring.yaml",
    "templates/scheduler.yaml",
    "templates/settings.yaml",
];

/// What one of the files says; nothing where there is none of that name.
pub fn file(name: &str) -> Option<String> {
    match name {
        "Chart.yaml" => Some(MADE.to_owned() + &yaml::plain(&chart())),
        "README.md" => Some(readme()),
        "values.yaml" => Some(values()),
        "values.schema.json" => Some(schema_text()),
        _ => template(name.strip_prefix("templates/")?),
    }
}

fn chart() -> Value {
    json!({
        "apiVersion": "v2", "name": NAME, "type": "application",
        "description": "A scheduler for distributed training jobs on shared clusters",
        "version": VERSION, "appVersion": env!("CARGO_PKG_VERSION"),
        // Cores of running pods are changed through `pods/resize`.
        "kubeVersion": ">=1.33.0-0",
    })
}

fn template(file: &str) -> Option<String> {
    let slots = Slots::named();
    let Group { when, manifests, .. } = groups(&slots).into_iter().find(|group| group.file == file)?;
    let documents: Vec<String> =
        manifests.iter().map(|manifest| yaml::write(manifest, &slots.observe)).collect();
    let text = MADE.to_owned() + &templated(&documents.join("---\n"));
    Some(match when {
        Switch::If(name) => format!("{{{{- if {name} }}}}\n{text}{{{{- end }}}}\n"),
        Switch::On | Switch::Off => text,
    })
}

fn schema() -> Value {
    json!(schema_for!(Values))
}

fn schema_text() -> String {
    serde_json::to_string_pretty(&schema()).expect("a schema is plain data") + "\n"
}

/// Every value with what it is if nothing is said, and what it is for.
fn described() -> Vec<(String, Value, String)> {
    let (defaults, schema) = (json!(Values::default()), schema());
    let about =
        |name: &str| schema["properties"][name]["description"].as_str().unwrap_or_default().to_owned();
    let values = defaults.as_object().into_iter().flatten();
    values.map(|(name, value)| (name.clone(), value.clone(), about(name).replace('\n', " "))).collect()
}

fn values() -> String {
    let mut text = MADE.to_owned();
    for (name, value, about) in described() {
        write!(text, "\n# {about}\n{}", yaml::plain(&json!({name: value}))).expect("a string");
    }
    text
}

fn readme() -> String {
    let mut text =
        "<!-- Written by `cargo xtask codegen`: do not edit. -->\n\n# The chart `metronome`\n\n".to_owned();
    text += "A scheduler for distributed training jobs, beside the default one: it schedules the pods that name it and\n";
    text += "nothing else. [How to install it](../../../docs/guide/install.md), and\n";
    text +=
        "[what it may do](../../../docs/reference/rbac.md), verb by verb. One installation in a cluster.\n\n";
    text += "| value | if not given | says |\n|---|---|---|\n";
    for (name, value, about) in described() {
        writeln!(text, "| `{name}` | `{value}` | {about} |").expect("a string takes everything");
    }
    text
}
