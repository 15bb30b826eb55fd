//! The policy, from a ConfigMap that is read again whenever it changes.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

const BINDING: &str = "metronome.dev/binding";
const ACCEPT: &str = "metronome.dev/accept-first-plan";
const FILE: &str = "policy.yaml";

/// Whether anything may be bound at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    On,
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDocument {
    pub binding: Binding,
    /// The named policy to decide by.
    pub policy: Option<String>,
    /// The version whose first plan is accepted even if it disturbs running jobs.
    pub accepts: Option<String>,
    /// What of it could not be read.
    pub complaint: Option<String>,
}

impl PolicyDocument {
    pub(super) fn read(map: &ConfigMap) -> Self {
        let annotation = |key| map.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let file = map.data.as_ref().and_then(|data| data.get(FILE));
        let (spec, unreadable) = match file.map(|text| serde_saphyr::from_str::<Value>(text)) {
            Some(Ok(document)) => (document.get("spec").cloned().unwrap_or_default(), None),
            Some(Err(error)) => (Value::Null, Some(format!("{FILE}: {error}"))),
            None => (Value::Null, None),
        };
        let switches = [annotation(BINDING).map(Value::from).unwrap_or_default(), spec["binding"].clone()];
        let (binding, misspelt) = binding(&switches);
        let (policy, nameless) = name(&spec["policy"]);
        Self { binding, policy, accepts: annotation(ACCEPT), complaint: unreadable.or(misspelt).or(nameless) }
    }
}

/// Off if any switch says so, or cannot be understood: whoever reaches for it wants binding to stop.
fn binding(switches: &[Value]) -> (Binding, Option<String>) {
    let positions: Vec<_> = switches.iter().map(switched_on).collect();
    let misspelt = switches.iter().zip(&positions).find(|(_, on)| on.is_none());
    let complaint = misspelt.map(|(said, _)| format!("binding is {said}, neither On nor Off: taken as Off"));
    let on = positions.iter().all(|on| *on == Some(true));
    (if on { Binding::On } else { Binding::Off }, complaint)
}

/// YAML reads a bare `Off` as a text or as a truth value, depending on its age.
fn switched_on(switch: &Value) -> Option<bool> {
    match switch {
        Value::Null => Some(true),
        Value::Bool(on) => Some(*on),
        Value::String(text) if ["on", "true"].contains(&text.to_lowercase().as_str()) => Some(true),
        Value::String(text) if ["off", "false"].contains(&text.to_lowercase().as_str()) => Some(false),
        _ => None,
    }
}

fn name(policy: &Value) -> (Option<String>, Option<String>) {
    match policy {
        Value::Null => (None, None),
        Value::String(name) => (Some(name.clone()), None),
        other => (None, Some(format!("policy is {other}, not a name"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: &[(&str, &str)], file: Option<&str>) -> PolicyDocument {
        let texts = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let mut map = ConfigMap::default();
        map.metadata.annotations = Some(annotations.iter().map(texts).collect());
        map.data = file.map(|text| [texts(&(FILE, text))].into());
        PolicyDocument::read(&map)
    }

    #[test]
    fn an_empty_policy_binds() {
        let document = read(&[], None);
        let expected = PolicyDocument { binding: Binding::On, policy: None, accepts: None, complaint: None };
        assert_eq!(document, expected);
    }

    #[test]
    fn either_switch_stops_binding() {
        assert_eq!(read(&[(BINDING, "off")], Some("spec: {binding: On}")).binding, Binding::Off);
        assert_eq!(read(&[(BINDING, "on")], Some("spec: {binding: Off}")).binding, Binding::Off);
        assert_eq!(read(&[], Some("spec: {binding: off}")).complaint, None);
    }

    #[test]
    fn a_switch_in_no_known_position_stops_binding_and_is_complained_about() {
        for document in [read(&[(BINDING, "of")], None), read(&[], Some("spec: {binding: [1]}"))] {
            assert_eq!(document.binding, Binding::Off);
            assert!(document.complaint.is_some());
        }
    }

    #[test]
    fn a_file_that_is_no_yaml_is_complained_about_and_binding_goes_on() {
        let document = read(&[(ACCEPT, "0.2.0")], Some("spec: {binding: Off"));
        assert_eq!((document.binding, document.accepts.as_deref()), (Binding::On, Some("0.2.0")));
        assert!(document.complaint.is_some());
    }

    #[test]
    fn the_policy_is_named() {
        let document = read(&[], Some("kind: Policy\nspec:\n  policy: metronome:turns=off\n"));
        assert_eq!(document.policy.as_deref(), Some("metronome:turns=off"));
        assert_eq!(
            read(&[], Some("spec: {policy: 3}")).complaint.as_deref(),
            Some("policy is 3, not a name")
        );
    }
}
