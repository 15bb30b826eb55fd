//! The places where installations differ: filled with values, or with what Helm is to put there.

use serde_json::{Value, json};

use super::values::Values;

/// Around an expression for Helm, in a text that is plain to whoever writes YAML.
const OPEN: &str = "HELM-";
const CLOSE: &str = "-HELM";
/// The same where no text but a number is to stand.
const OPEN_NUMBER: &str = "HELM0-";

pub(super) struct Slots {
    pub(super) namespace: String,
    pub(super) image: String,
    pub(super) replicas: Value,
    pub(super) scheduler_name: String,
    pub(super) policy: String,
    pub(super) levels: Each,
    pub(super) observe: Switch,
    pub(super) journal: Switch,
    pub(super) journal_size: String,
    pub(super) cpu: String,
    pub(super) memory: String,
    pub(super) priority_class_name: String,
    pub(super) definitions: Switch,
    pub(super) guard: Switch,
    pub(super) monitoring: Switch,
    pub(super) agent: Switch,
    pub(super) agent_monitoring: Switch,
    pub(super) agent_image: String,
    pub(super) agent_nodes_with: String,
    pub(super) agent_has_uplink: Switch,
    pub(super) agent_uplink: String,
    pub(super) agent_uplink_rate: String,
}

/// Whether a part is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
    /// Where a value of this name says so.
    If(&'static str),
}

/// One item for each of a list.
pub(super) enum Each {
    Of(Vec<String>),
    Named(&'static str),
}

impl Slots {
    pub(super) fn filled(namespace: &str, values: &Values) -> Self {
        let Values { image, scheduler_name, policy, priority_class_name, .. } = values.clone();
        Self {
            namespace: namespace.to_owned(),
            image,
            replicas: json!(values.replicas),
            scheduler_name,
            policy,
            levels: Each::Of(values.levels.clone()),
            observe: values.observe.into(),
            journal: values.journal.enabled.into(),
            journal_size: values.journal.size.clone(),
            cpu: values.resources.cpu.clone(),
            memory: values.resources.memory.clone(),
            priority_class_name,
            definitions: values.definitions.enabled.into(),
            guard: values.guard.enabled.into(),
            monitoring: values.monitoring.enabled.into(),
            agent: values.agent.enabled.into(),
            agent_monitoring: (values.agent.enabled && values.monitoring.enabled).into(),
            agent_image: values.agent.image.clone(),
            agent_nodes_with: values.agent.nodes_with.clone(),
            agent_has_uplink: (!values.agent.uplink.is_empty()).into(),
            agent_uplink: values.agent.uplink.clone(),
            agent_uplink_rate: values.agent.uplink_rate.clone(),
        }
    }

    /// For the chart: every place holds the name of the value that goes there.
    pub(super) fn named() -> Self {
        let value = |name: &str| format!("{OPEN}.Values.{name}{CLOSE}");
        Self {
            namespace: format!("{OPEN}.Release.Namespace{CLOSE}"),
            image: value("image"),
            replicas: json!(format!("{OPEN_NUMBER}.Values.replicas{CLOSE}")),
            scheduler_name: value("schedulerName"),
            policy: value("policy"),
            levels: Each::Named(".Values.levels"),
            observe: Switch::If(".Values.observe"),
            journal: Switch::If(".Values.journal.enabled"),
            journal_size: value("journal.size"),
            cpu: value("resources.cpu"),
            memory: value("resources.memory"),
            priority_class_name: value("priorityClassName"),
            definitions: Switch::If(".Values.definitions.enabled"),
            guard: Switch::If(".Values.guard.enabled"),
            monitoring: Switch::If(".Values.monitoring.enabled"),
            agent: Switch::If(".Values.agent.enabled"),
            agent_monitoring: Switch::If("and .Values.agent.enabled .Values.monitoring.enabled"),
            agent_image: value("agent.image"),
            agent_nodes_with: value("agent.nodesWith"),
            agent_has_uplink: Switch::If(".Values.agent.uplink"),
            agent_uplink: value("agent.uplink"),
            agent_uplink_rate: value("agent.uplinkRate"),
        }
    }
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

impl Switch {
    /// Items of a list that depend on it.
    pub(super) fn either(&self, if_on: Vec<Value>, if_off: Vec<Value>) -> Vec<Value> {
        let name = match self {
            Self::On => return if_on,
            Self::Off => return if_off,
            Self::If(name) => name,
        };
        let when = |items: Vec<Value>, condition: String| match items.is_empty() {
            true => Vec::new(),
            false => [vec![control(&condition)], items, vec![control("end")]].concat(),
        };
        [when(if_on, format!("if {name}")), when(if_off, format!("if not {name}"))].concat()
    }
}

impl Each {
    pub(super) fn items(&self, item: impl Fn(&str) -> String) -> Vec<Value> {
        match self {
            Self::Of(all) => all.iter().map(|one| item(one).into()).collect(),
            Self::Named(name) => {
                let it = item(&format!("{OPEN}.{CLOSE}"));
                vec![control(&format!("range {name}")), it.into(), control("end")]
            }
        }
    }
}

fn control(word: &str) -> Value {
    format!("{OPEN}{word}{CLOSE}").into()
}

/// A text with expressions for Helm in the places that were left for them.
pub(super) fn templated(text: &str) -> String {
    text.lines().map(|line| templated_line(line) + "\n").collect()
}

fn templated_line(line: &str) -> String {
    let content = line.trim_start();
    let indent = &line[..line.len() - content.len()];
    if let Some(word) = content.strip_prefix("- ").and_then(whole)
        && ["if ", "range ", "end"].iter().any(|begin| word.starts_with(begin))
    {
        return format!("{indent}{{{{- {word} }}}}");
    }
    let value_at = content.find(": ").map_or_else(|| content.len() - list_item(content).len(), |at| at + 2);
    // A text that is all there is in its place is quoted: it might read as a number.
    match whole(&content[value_at..]) {
        Some(name) => format!("{indent}{}{{{{ {name} | quote }}}}", &content[..value_at]),
        None => {
            let numbered = line.replace(OPEN_NUMBER, "{{ ");
            numbered.replace(OPEN, "{{ ").replace(CLOSE, " }}")
        }
    }
}

fn list_item(content: &str) -> &str {
    content.strip_prefix("- ").unwrap_or(content)
}

/// The expression, if there is nothing else.
fn whole(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    (!inner.contains(CLOSE)).then_some(inner)
}
