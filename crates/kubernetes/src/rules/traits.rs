//! What other pods' rules can see of a pod, and what they ask about it.

use crate::objects::Pod;
use crate::rules::Refusal;
use crate::rules::selector::{Labels, Selector, labels_of};
use crate::rules::storage::{ClaimKey, ClaimUse};
use crate::rules::terms::{Pods, Term, carried};

/// All that tells one pod from another in the eyes of other pods' rules. Pods of one workload mostly share them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Traits {
    pub namespace: String,
    pub labels: Labels,
    /// The anti-affinity by which it keeps others away.
    pub carries: Vec<Term>,
    pub claims: Vec<ClaimKey>,
    pub terminating: bool,
}

impl Traits {
    pub fn of(pod: &Pod) -> Result<Self, Refusal> {
        Ok(Self {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            labels: labels_of(&pod.metadata).clone(),
            carries: carried(pod)?,
            claims: claims(&ClaimUse::all_of(pod)?),
            terminating: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// Claims that pods share by name: those made for one pod are nobody else's.
pub fn claims(uses: &[ClaimUse]) -> Vec<ClaimKey> {
    let mut claims: Vec<ClaimKey> =
        uses.iter().filter(|used| used.made_for.is_none()).map(|used| used.claim.clone()).collect();
    claims.sort();
    claims.dedup();
    claims
}

/// What makes a pod one of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// It is among all of these, which are in order and each there once.
    Among(Vec<Pods>),
    /// It keeps others away by this.
    Carries(Term),
    /// It is to be spread: of this namespace, like this, and here to stay.
    Spread { namespace: String, like: Selector },
    /// It uses this claim.
    Uses(ClaimKey),
}

impl Question {
    pub fn among(pods: impl IntoIterator<Item = Pods>) -> Self {
        let mut all: Vec<Pods> = pods.into_iter().collect();
        all.sort();
        all.dedup();
        Self::Among(all)
    }

    /// `namespace_labels` are those of the pod's namespace, if it is known.
    pub fn holds(&self, of: &Traits, namespace_labels: Option<&Labels>) -> bool {
        match self {
            Self::Among(all) => {
                all.iter().all(|pods| pods.contain(&of.namespace, &of.labels, namespace_labels))
            }
            Self::Carries(term) => of.carries.contains(term),
            Self::Spread { namespace, like } => {
                !of.terminating && of.namespace == *namespace && like.matches(&of.labels)
            }
            Self::Uses(claim) => of.claims.contains(claim),
        }
    }

    /// Whether the answer depends on the labels of namespaces.
    pub fn asks_namespaces(&self) -> bool {
        let asks = |pods: &Pods| {
            !matches!(&pods.namespaces_like, Selector::Nothing) && !pods.namespaces_like.is_everything()
        };
        matches!(self, Self::Among(all) if all.iter().any(asks))
    }

    /// A label that every pod of the group has, with its possible values.
    pub fn anchor(&self) -> Option<(&str, &std::collections::BTreeSet<String>)> {
        match self {
            Self::Among(all) => all.iter().find_map(|pods| pods.like.anchor()),
            Self::Spread { like, .. } => like.anchor(),
            Self::Carries(_) | Self::Uses(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(json: serde_json::Value) -> Traits {
        Traits::of(&serde_json::from_value(json).unwrap()).unwrap()
    }

    #[test]
    fn a_pod_on_its_way_out_still_repels_but_is_not_spread() {
        let anti = serde_json::json!([{"topologyKey": "k", "labelSelector": {"matchLabels": {"app": "a"}}}]);
        let leaving = traits(serde_json::json!({
            "metadata": {"namespace": "n", "labels": {"app": "a"}, "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": anti}}},
        }));
        let term = leaving.carries[0].clone();
        let spread = Question::Spread { namespace: "n".into(), like: term.pods.like.clone() };
        assert!(Question::among([term.pods.clone()]).holds(&leaving, None));
        assert!(Question::Carries(term).holds(&leaving, None));
        assert!(!spread.holds(&leaving, None));
    }

    #[test]
    fn a_claim_made_for_the_pod_is_shared_with_nobody() {
        let pod = traits(serde_json::json!({
            "metadata": {"namespace": "n", "name": "p", "uid": "u"},
            "spec": {"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "b", "ephemeral": {}},
            ]},
        }));
        let shared = ClaimKey { namespace: "n".into(), name: "c".into() };
        assert_eq!(pod.claims, std::slice::from_ref(&shared));
        assert!(Question::Uses(shared).holds(&pod, None));
    }
}
