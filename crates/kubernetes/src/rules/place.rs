//! Where a pod may go as far as nodes themselves decide: its name, labels, taints, declared features, and the
//! volumes it needs. One canonical form, so that thousands of equal pods share one set of nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

use crate::objects::{Node, Pod};
use crate::rules::Refusal;
use crate::rules::selector::{Labels, Requirement, Test, labels_of};
use crate::rules::storage::ClaimUse;
use crate::rules::tolerations::Tolerations;

/// Everything about a node by itself that a pod depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Where {
    /// The one node it was told to go to.
    pub name: Option<String>,
    pub nodes: NodeRules,
    pub tolerations: Tolerations,
    /// What the node must have declared that it can do.
    pub features: Vec<&'static str>,
    /// Judged with the help of what is known about storage.
    pub claims: Vec<ClaimUse>,
}

impl Where {
    pub fn of(pod: &Pod) -> Result<Self, Refusal> {
        let tolerations = pod.spec.tolerations.as_deref().unwrap_or_default();
        Ok(Self {
            name: pod.spec.node_name.clone().filter(|name| !name.is_empty()),
            nodes: NodeRules::of(pod)?,
            tolerations: Tolerations::of(tolerations)?,
            features: features(pod),
            claims: ClaimUse::all_of(pod)?,
        })
    }

    /// Whether the node is allowed, volumes aside.
    pub fn allows(&self, node: &Node) -> bool {
        let declared = node.status.declared_features.as_deref().unwrap_or_default();
        self.name.as_ref().is_none_or(|name| Some(name) == node.metadata.name.as_ref())
            && self.nodes.match_node(node)
            && self.tolerations.tolerate(node)
            && self.features.iter().all(|feature| declared.iter().any(|declared| declared == feature))
    }
}

/// What a pod uses that not every node can do.
fn features(pod: &Pod) -> Vec<&'static str> {
    let spec = &pod.spec;
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut rules = containers.flat_map(|container| container.restart_policy_rules.iter().flatten());
    let mut needed = Vec::new();
    if rules.any(|rule| rule.action == "RestartAllContainers") {
        needed.push("RestartAllContainersOnContainerExits");
    }
    if spec.host_network == Some(true) && spec.host_users == Some(false) {
        needed.push("UserNamespacesHostNetworkSupport");
    }
    needed
}

/// A pod's node selector and required node affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRules {
    labels: BTreeMap<String, String>,
    /// One of these holds; any node, where the pod says nothing.
    terms: Option<Vec<NodeTerm>>,
}

impl NodeRules {
    pub fn of(pod: &Pod) -> Result<Self, Refusal> {
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required = affinity
            .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        Ok(Self {
            labels: pod.spec.node_selector.clone().unwrap_or_default(),
            terms: required.map(NodeTerm::all_of).transpose()?,
        })
    }

    pub fn match_node(&self, node: &Node) -> bool {
        let labels = labels_of(&node.metadata);
        let name = node.metadata.name.as_deref();
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(labels, name)))
    }
}

/// One way to satisfy a node selector: all of it holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeTerm {
    /// Written so that no node can satisfy it.
    Never,
    All {
        labels: Vec<Requirement>,
        names: Vec<NameTest>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameTest {
    Is(String),
    IsNot(String),
}

impl NodeTerm {
    /// The terms of a selector in order and each once. An empty term selects nothing, and so do no terms at all.
    pub fn all_of(selector: &NodeSelector) -> Result<Vec<Self>, Refusal> {
        let mut terms: Vec<Self> =
            selector.node_selector_terms.iter().map(Self::of).collect::<Result<_, _>>()?;
        terms.retain(|term| *term != Self::Never);
        terms.sort();
        terms.dedup();
        Ok(terms)
    }

    /// As `all_of`, for what is not ours to refuse: what cannot be understood selects nothing.
    pub fn all_understood(selector: &NodeSelector) -> Vec<Self> {
        selector.node_selector_terms.iter().filter_map(|term| Self::of(term).ok()).collect()
    }

    fn of(term: &NodeSelectorTerm) -> Result<Self, Refusal> {
        let expressions = term.match_expressions.as_deref().unwrap_or_default();
        let fields = term.match_fields.as_deref().unwrap_or_default();
        if expressions.is_empty() && fields.is_empty() {
            return Ok(Self::Never);
        }
        let labels = expressions.iter().map(requirement).collect::<Result<Option<Vec<_>>, _>>()?;
        let names = fields.iter().map(NameTest::of).collect::<Result<Option<Vec<_>>, _>>()?;
        let (Some(mut labels), Some(mut names)) = (labels, names) else { return Ok(Self::Never) };
        labels.sort();
        labels.dedup();
        names.sort();
        names.dedup();
        Ok(Self::All { labels, names })
    }

    /// Where no name is given, names are not asked: so volumes look at nodes.
    pub fn matches(&self, labels: &Labels, name: Option<&str>) -> bool {
        match self {
            Self::Never => false,
            Self::All { labels: required, names } => {
                required.iter().all(|requirement| requirement.matches(labels))
                    && name.is_none_or(|name| names.iter().all(|test| test.holds(name)))
            }
        }
    }
}

fn requirement(expression: &NodeSelectorRequirement) -> Result<Option<Requirement>, Refusal> {
    let values = expression.values.as_deref().unwrap_or_default();
    let test = Test::of(&expression.operator, values)?;
    Ok(test.map(|test| Requirement { key: expression.key.clone(), test }))
}

impl NameTest {
    fn of(expression: &NodeSelectorRequirement) -> Result<Option<Self>, Refusal> {
        if expression.key != "metadata.name" {
            return Err(Refusal::unknown("the node field", &expression.key));
        }
        let make = match expression.operator.as_str() {
            "In" => Self::Is,
            "NotIn" => Self::IsNot,
            other => return Err(Refusal::unknown("the node field operator", other)),
        };
        Ok(match expression.values.as_deref().unwrap_or_default() {
            [name] => Some(make(name.clone())),
            _ => None,
        })
    }

    fn holds(&self, name: &str) -> bool {
        match self {
            Self::Is(expected) => name == expected,
            Self::IsNot(unwanted) => name != unwanted,
        }
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests {
    use super::*;

    fn node(name: &str, labels: serde_json::Value) -> Node {
        serde_json::from_value(serde_json::json!({"metadata": {"name": name, "labels": labels}})).unwrap()
    }

    fn place(spec: serde_json::Value) -> Result<Where, Refusal> {
        Where::of(&serde_json::from_value(serde_json::json!({"metadata": {}, "spec": spec})).unwrap())
    }

    fn with_terms(terms: serde_json::Value) -> Result<Where, Refusal> {
        place(serde_json::json!({"affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
        }}}))
    }

    #[test]
    fn selector_and_affinity_hold_together_and_terms_are_alternatives() {
        let fast = node("a", serde_json::json!({"disk": "ssd", "zone": "1"}));
        let slow = node("b", serde_json::json!({"disk": "hdd", "zone": "1"}));
        let either = with_terms(serde_json::json!([
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]},
        ]));
        let either = either.unwrap();
        assert!(either.allows(&fast) && either.allows(&slow));
        let selected = place(serde_json::json!({"nodeSelector": {"disk": "ssd"}})).unwrap();
        assert!(selected.allows(&fast) && !selected.allows(&slow));
    }

    #[test]
    fn empty_terms_select_nothing() {
        let any = node("a", serde_json::json!({}));
        for terms in
            [serde_json::json!([]), serde_json::json!([{}]), serde_json::json!([{"matchExpressions": []}])]
        {
            assert!(!with_terms(terms.clone()).unwrap().allows(&any), "{terms}");
        }
        assert!(place(serde_json::json!({"nodeSelector": {}})).unwrap().allows(&any));
    }

    #[test]
    fn contradictions_and_malformed_values_select_nothing() {
        let one = node("a", serde_json::json!({"x": "1"}));
        let contradiction = with_terms(serde_json::json!([{"matchExpressions": [
            {"key": "x", "operator": "Exists"}, {"key": "x", "operator": "DoesNotExist"},
        ]}]));
        assert!(!contradiction.unwrap().allows(&one));
        let no_number = with_terms(serde_json::json!([
            {"matchExpressions": [{"key": "x", "operator": "Gt", "values": ["many"]}]},
        ]));
        assert!(!no_number.unwrap().allows(&one));
    }

    #[test]
    fn unknown_operators_and_fields_are_refused() {
        let operator =
            with_terms(serde_json::json!([{"matchExpressions": [{"key": "x", "operator": "Near"}]}]));
        assert!(matches!(operator, Err(Refusal::Unknown { .. })));
        let field = with_terms(serde_json::json!([
            {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["1"]}]}
        ]));
        assert!(matches!(field, Err(Refusal::Unknown { .. })));
    }

    #[test]
    fn equal_pods_have_equal_places_however_they_are_written() {
        let one = with_terms(serde_json::json!([
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {},
        ]));
        let other = with_terms(serde_json::json!([
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["2", "1"]}]},
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]},
        ]));
        assert_eq!(one, other);
    }

    #[test]
    fn a_pod_goes_only_where_what_it_uses_is_declared() {
        let pod =
            serde_json::json!({"containers": [{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]});
        let place = place(pod).unwrap();
        let mut able = node("a", serde_json::json!({}));
        assert!(!place.allows(&able));
        able.status.declared_features = Some(vec!["RestartAllContainersOnContainerExits".into()]);
        assert!(place.allows(&able));
    }
}
