//! Taints that keep pods off a node, and the tolerations that let them on.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use crate::objects::Node;
use crate::rules::Refusal;

/// What a pod tolerates, each once and in order: whether it tolerates a taint is a few look-ups, however many there
/// are.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tolerations(BTreeSet<Tolerated>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Tolerated {
    /// Any, where absent.
    key: Option<String>,
    value: Option<String>,
    effect: Option<String>,
}

/// The taint that stands for `spec.unschedulable`.
const UNSCHEDULABLE: (&str, &str, &str) = ("node.kubernetes.io/unschedulable", "", "NoSchedule");

impl Tolerations {
    pub fn of(tolerations: &[Toleration]) -> Result<Self, Refusal> {
        tolerations.iter().map(Tolerated::of).collect::<Result<_, _>>().map(Self)
    }

    /// Whether nothing about the node's taints keeps the pod off it.
    pub fn tolerate(&self, node: &Node) -> bool {
        let cordoned = node.spec.unschedulable == Some(true);
        let unschedulable = (cordoned).then_some(UNSCHEDULABLE);
        repelling(node).chain(unschedulable).all(|taint| self.tolerate_one(taint))
    }

    /// As `tolerate`, but whether the node was cordoned is not asked: so topology spread counts nodes.
    pub fn tolerate_taints(&self, node: &Node) -> bool {
        repelling(node).all(|taint| self.tolerate_one(taint))
    }

    fn tolerate_one(&self, (key, value, effect): (&str, &str, &str)) -> bool {
        let either = |one: &str| [None, Some(one.to_owned())];
        either(key).into_iter().any(|key| {
            either(value).into_iter().any(|value| {
                either(effect).into_iter().any(|effect| {
                    self.0.contains(&Tolerated { key: key.clone(), value: value.clone(), effect })
                })
            })
        })
    }
}

impl Tolerated {
    fn of(toleration: &Toleration) -> Result<Self, Refusal> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let effect = given(&toleration.effect);
        if let Some(effect) = effect.as_deref()
            && !matches!(effect, "NoSchedule" | "PreferNoSchedule" | "NoExecute")
        {
            return Err(Refusal::unknown("the taint effect", effect));
        }
        let value = match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => Some(toleration.value.clone().unwrap_or_default()),
            "Exists" => None,
            other => return Err(Refusal::unknown("the toleration operator", other)),
        };
        Ok(Self { key: given(&toleration.key), value, effect })
    }
}

/// The taints that keep pods away: what merely discourages them is no constraint.
fn repelling(node: &Node) -> impl Iterator<Item = (&str, &str, &str)> {
    let repels = |taint: &&Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
    let taints = node.spec.taints.iter().flatten().filter(repels);
    taints
        .map(|taint| (taint.key.as_str(), taint.value.as_deref().unwrap_or_default(), taint.effect.as_str()))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests {
    use super::*;

    fn tolerations(json: serde_json::Value) -> Result<Tolerations, Refusal> {
        Tolerations::of(&serde_json::from_value::<Vec<Toleration>>(json).unwrap())
    }

    fn node(spec: serde_json::Value) -> Node {
        serde_json::from_value(serde_json::json!({"metadata": {"name": "n"}, "spec": spec})).unwrap()
    }

    #[test]
    fn a_taint_is_tolerated_by_key_value_and_effect() {
        let tainted =
            node(serde_json::json!({"taints": [{"key": "a", "value": "1", "effect": "NoSchedule"}]}));
        for (given, tolerated) in [
            (serde_json::json!([]), false),
            (serde_json::json!([{"key": "a", "value": "1"}]), true),
            (serde_json::json!([{"key": "a", "operator": "Equal", "value": "2"}]), false),
            (serde_json::json!([{"key": "a", "operator": "Exists"}]), true),
            (serde_json::json!([{"key": "b", "operator": "Exists"}]), false),
            (serde_json::json!([{"operator": "Exists"}]), true),
            (serde_json::json!([{"operator": "Exists", "effect": "NoExecute"}]), false),
            (serde_json::json!([{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]), true),
        ] {
            assert_eq!(tolerations(given.clone()).unwrap().tolerate(&tainted), tolerated, "{given}");
        }
    }

    #[test]
    fn what_discourages_does_not_keep_off() {
        let preferring = serde_json::json!({"taints": [{"key": "a", "effect": "PreferNoSchedule"}]});
        assert!(Tolerations::default().tolerate(&node(preferring)));
    }

    #[test]
    fn a_cordoned_node_takes_who_tolerates_its_taint() {
        let cordoned = node(serde_json::json!({"unschedulable": true}));
        assert!(!Tolerations::default().tolerate(&cordoned));
        assert!(Tolerations::default().tolerate_taints(&cordoned));
        let key = "node.kubernetes.io/unschedulable";
        let daemon = tolerations(serde_json::json!([{"key": key, "operator": "Exists"}])).unwrap();
        assert!(daemon.tolerate(&cordoned));
    }

    #[test]
    fn numeric_operators_are_refused_as_long_as_they_are_not_on_by_default() {
        let numeric = tolerations(serde_json::json!([{"key": "a", "operator": "Gt", "value": "1"}]));
        assert!(matches!(numeric, Err(Refusal::Unknown { .. })));
        let effect = tolerations(serde_json::json!([{"key": "a", "operator": "Exists", "effect": "Never"}]));
        assert!(matches!(effect, Err(Refusal::Unknown { .. })));
    }

    #[test]
    fn ten_thousand_tolerations_cost_no_more_than_one() {
        let many: Vec<_> =
            (0..10_000).map(|i| serde_json::json!({"key": "a", "value": i.to_string()})).collect();
        let many = tolerations(many.into()).unwrap();
        let tainted = |value: u32| {
            node(serde_json::json!({"taints": [
                {"key": "a", "value": value.to_string(), "effect": "NoExecute"}
            ]}))
        };
        assert!(many.tolerate(&tainted(9_999)) && !many.tolerate(&tainted(10_000)));
    }
}
