//! What a pod demands of the pods around it: affinity, anti-affinity and topology spread, as far as they are
//! required. What is merely preferred is no constraint.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodAffinityTerm, TopologySpreadConstraint};

use crate::objects::Pod;
use crate::rules::Refusal;
use crate::rules::division::Division;
use crate::rules::place::NodeRules;
use crate::rules::selector::{Labels, Requirement, Selector, labels_of};
use crate::rules::tolerations::Tolerations;

/// Pods by namespace and labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pods {
    /// In one of these namespaces,
    pub namespaces: BTreeSet<String>,
    /// or in one with such labels.
    pub namespaces_like: Selector,
    pub like: Selector,
}

impl Pods {
    /// `namespace_labels` are those of the pod's namespace, if it is known.
    pub fn contain(&self, namespace: &str, labels: &Labels, namespace_labels: Option<&Labels>) -> bool {
        let known = || namespace_labels.is_some_and(|labels| self.namespaces_like.matches(labels));
        let named = self.namespaces.contains(namespace) || self.namespaces_like.is_everything() || known();
        named && self.like.matches(labels)
    }
}

/// Pods, and the label of nodes by which near and far are told apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    pub pods: Pods,
    pub key: String,
}

/// The demand that pods be spread evenly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Of the pod's own namespace; those on their way out do not count.
    pub like: Selector,
    pub over: Division,
    pub skew: u32,
    pub least_domains: u32,
    /// Whether the pod itself is one of those it spreads among.
    pub own: bool,
}

/// Everything a pod demands of the pods around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    pub together: Vec<Term>,
    pub apart: Vec<Term>,
    pub spread: Vec<Spread>,
}

impl Demands {
    pub fn of(pod: &Pod) -> Result<Self, Refusal> {
        let affinity = pod.spec.affinity.as_ref();
        let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let near = near.and_then(|near| near.required_during_scheduling_ignored_during_execution.as_deref());
        Ok(Self { together: terms(pod, near)?, apart: carried(pod)?, spread: spreads(pod)? })
    }
}

/// The anti-affinity terms of a pod: they also keep others away from it.
pub fn carried(pod: &Pod) -> Result<Vec<Term>, Refusal> {
    let affinity = pod.spec.affinity.as_ref();
    let far = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    terms(pod, far.and_then(|far| far.required_during_scheduling_ignored_during_execution.as_deref()))
}

/// In order and each once.
fn terms(pod: &Pod, terms: Option<&[PodAffinityTerm]>) -> Result<Vec<Term>, Refusal> {
    let terms = terms.unwrap_or_default().iter();
    let distinct: BTreeSet<Term> = terms.map(|term| Term::of(pod, term)).collect::<Result<_, _>>()?;
    Ok(distinct.into_iter().collect())
}

impl Term {
    /// The API server has written `matchLabelKeys` and `mismatchLabelKeys` into the selector when the pod was made.
    fn of(pod: &Pod, term: &PodAffinityTerm) -> Result<Self, Refusal> {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(pod.metadata.namespace.clone().unwrap_or_default());
        }
        let pods = Pods {
            namespaces,
            namespaces_like: Selector::of(term.namespace_selector.as_ref())?,
            like: Selector::of(term.label_selector.as_ref())?,
        };
        Ok(Self { pods, key: term.topology_key.clone() })
    }
}

fn spreads(pod: &Pod) -> Result<Vec<Spread>, Refusal> {
    let mut hard = Vec::new();
    for constraint in pod.spec.topology_spread_constraints.iter().flatten() {
        match constraint.when_unsatisfiable.as_str() {
            "DoNotSchedule" => hard.push(constraint),
            "ScheduleAnyway" => {}
            other => return Err(Refusal::unknown("what to do about uneven spread:", other)),
        }
    }
    let keys: BTreeSet<String> = hard.iter().map(|constraint| constraint.topology_key.clone()).collect();
    hard.into_iter().map(|constraint| spread(pod, constraint, &keys)).collect()
}

/// Only nodes that have all the pod's keys are counted, and of those the ones the policies include.
fn spread(
    pod: &Pod,
    constraint: &TopologySpreadConstraint,
    keys: &BTreeSet<String>,
) -> Result<Spread, Refusal> {
    let nodes = honoured(constraint.node_affinity_policy.as_deref(), Policy::Honor)?;
    let taints = honoured(constraint.node_taints_policy.as_deref(), Policy::Ignore)?;
    let tolerations = pod.spec.tolerations.as_deref().unwrap_or_default();
    let labels = labels_of(&pod.metadata);
    let by_keys = constraint.match_label_keys.iter().flatten();
    let by_keys = by_keys.filter_map(|key| Some(Requirement::equals(key, labels.get(key)?)));
    let like = Selector::of(constraint.label_selector.as_ref())?.and(by_keys);
    Ok(Spread {
        own: like.matches(labels),
        // Nobody is counted where everybody would be: so it has always been, and so it is documented.
        like: if like.is_everything() { Selector::Nothing } else { like },
        over: Division::Counted {
            key: constraint.topology_key.clone(),
            keys: keys.clone(),
            nodes: nodes.then(|| NodeRules::of(pod)).transpose()?,
            tolerations: taints.then(|| Tolerations::of(tolerations)).transpose()?,
        },
        skew: u32::try_from(constraint.max_skew).unwrap_or(0),
        least_domains: constraint.min_domains.map_or(1, |least| u32::try_from(least).unwrap_or(1)),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Honor,
    Ignore,
}

fn honoured(policy: Option<&str>, default: Policy) -> Result<bool, Refusal> {
    match policy {
        None => Ok(default == Policy::Honor),
        Some("Honor") => Ok(true),
        Some("Ignore") => Ok(false),
        Some(other) => Err(Refusal::unknown("the node inclusion policy", other)),
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests {
    use super::*;

    fn pod(spec: serde_json::Value) -> Pod {
        let metadata = serde_json::json!({"namespace": "home", "labels": {"app": "a", "rev": "7"}});
        serde_json::from_value(serde_json::json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn term(term: serde_json::Value) -> Result<Term, Refusal> {
        Term::of(&pod(serde_json::json!({})), &serde_json::from_value(term).unwrap())
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_term_is_about_its_own_namespace_unless_it_names_others() {
        let (team, none) = (labels(&[("team", "x")]), labels(&[]));
        let about = |namespaces: serde_json::Value, namespace: &str, like: Option<&Labels>| {
            let mut given = serde_json::json!({"labelSelector": {}, "topologyKey": "k"});
            given.as_object_mut().unwrap().extend(namespaces.as_object().unwrap().clone());
            term(given).unwrap().pods.contain(namespace, &none, like)
        };
        let by_label = serde_json::json!({"namespaceSelector": {"matchLabels": {"team": "x"}}});
        assert!(about(serde_json::json!({}), "home", Some(&none)));
        assert!(!about(serde_json::json!({}), "away", Some(&none)));
        assert!(about(serde_json::json!({"namespaces": ["away"]}), "away", None));
        assert!(!about(serde_json::json!({"namespaces": ["away"]}), "home", None));
        assert!(about(serde_json::json!({"namespaceSelector": {}}), "anywhere", None));
        assert!(about(by_label.clone(), "away", Some(&team)));
        assert!(!about(by_label.clone(), "home", Some(&none)) && !about(by_label, "unknown", None));
    }

    #[test]
    fn an_absent_label_selector_matches_no_pod() {
        let nobody = term(serde_json::json!({"topologyKey": "k"})).unwrap();
        assert!(!nobody.pods.contain("home", &labels(&[("app", "a")]), None));
    }

    fn spread_of(constraint: serde_json::Value) -> Result<Vec<Spread>, Refusal> {
        let mut given = serde_json::json!({
            "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}
        });
        given.as_object_mut().unwrap().extend(constraint.as_object().unwrap().clone());
        Demands::of(&pod(serde_json::json!({"topologySpreadConstraints": [given]}))).map(|all| all.spread)
    }

    #[test]
    fn only_hard_spread_constrains() {
        let soft = serde_json::json!({"whenUnsatisfiable": "ScheduleAnyway"});
        assert_eq!(spread_of(soft), Ok(vec![]));
        assert!(spread_of(serde_json::json!({"whenUnsatisfiable": "Whatever"})).is_err());
        assert!(spread_of(serde_json::json!({"nodeTaintsPolicy": "Sometimes"})).is_err());
    }

    #[test]
    fn spreading_among_everybody_counts_nobody_but_the_pod_itself() {
        let all = spread_of(serde_json::json!({})).unwrap();
        assert_eq!((&all[0].like, all[0].own), (&Selector::Nothing, true));
        let none = spread_of(serde_json::json!({"labelSelector": null})).unwrap();
        assert_eq!((&none[0].like, none[0].own), (&Selector::Nothing, false));
    }

    #[test]
    fn label_keys_narrow_spread_to_the_pods_own_values() {
        let keyed = spread_of(serde_json::json!({"matchLabelKeys": ["rev", "missing"]})).unwrap();
        assert_eq!(keyed[0].like, Selector::All(vec![Requirement::equals("rev", "7")]));
    }
}
