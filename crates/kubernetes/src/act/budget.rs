//! Whether budgets allow all victims together. The API server answers for one eviction at a time: of two that share
//! a budget of one, each alone may go, and the second is refused once the first is gone.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use serde::Deserialize;

use super::hands::{Hands, Stop};
use super::seen::Seen;
use crate::deed::PodRef;
use crate::request::{Answer, Call, Verb};

#[derive(Debug, Deserialize)]
struct Budgets {
    items: Vec<Budget>,
}

#[derive(Debug, Deserialize)]
struct Budget {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    selector: Option<LabelSelector>,
    unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    disruptions_allowed: i64,
    current_healthy: i64,
    desired_healthy: i64,
}

impl Hands {
    /// The first budget that would have to give more than it has.
    pub(super) async fn too_many_for_a_budget(&self, victims: &[PodRef]) -> Result<Option<String>, Stop> {
        let namespaces: BTreeSet<_> = victims.iter().map(|victim| &*victim.namespace).collect();
        for namespace in namespaces {
            let here: Vec<_> = victims.iter().filter(|victim| *victim.namespace == *namespace).collect();
            if here.len() > 1
                && let Some(refusal) = self.too_many_in(namespace, &here).await?
            {
                return Ok(Some(refusal));
            }
        }
        Ok(None)
    }

    async fn too_many_in(&self, namespace: &str, victims: &[&PodRef]) -> Result<Option<String>, Stop> {
        let budgets = self.budgets(namespace).await?;
        if budgets.is_empty() {
            return Ok(None);
        }
        let seen = try_join_all(victims.iter().map(|victim| self.see(&self.urgent, victim))).await?;
        let seen: Vec<_> = seen.into_iter().flatten().collect();
        Ok(budgets.iter().find_map(|budget| budget.refusal(&seen)))
    }

    async fn budgets(&self, namespace: &str) -> Result<Vec<Budget>, Stop> {
        let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
        let call = Call { verb: Verb::List, ..Call::get("poddisruptionbudgets", path) };
        match self.settle(&self.urgent, &call).await? {
            Answer::Done(body) => match serde_json::from_slice::<Budgets>(&body) {
                Ok(budgets) => Ok(budgets.items),
                Err(error) => Err(Stop::Unreachable(error.to_string())),
            },
            other => Err(Stop::Unreachable(format!("budgets cannot be read: {other:?}"))),
        }
    }
}

impl Budget {
    fn refusal(&self, victims: &[Seen]) -> Option<String> {
        let counted = victims.iter().filter(|victim| self.counts(victim)).count();
        let allowed = self.status.disruptions_allowed;
        let too_many = i64::try_from(counted).unwrap_or(i64::MAX) > allowed;
        let name = &self.metadata.name;
        too_many.then(|| {
            format!("the disruption budget {name} allows {allowed} evictions of the {counted} needed")
        })
    }

    /// Whether evicting this pod costs the budget one, by the same rules as the API server's.
    fn counts(&self, victim: &Seen) -> bool {
        victim.is_running()
            && !victim.is_leaving()
            && self.selects(victim)
            && (victim.is_ready() || !self.spares_unready())
    }

    fn selects(&self, victim: &Seen) -> bool {
        let selector = self.spec.selector.clone().map(Selector::try_from);
        matches!(selector, Some(Ok(selector)) if selector.matches(victim.labels()))
    }

    fn spares_unready(&self) -> bool {
        let Status { current_healthy, desired_healthy, .. } = self.status;
        self.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow")
            || (desired_healthy > 0 && current_healthy >= desired_healthy)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn budget(allowed: i64) -> Budget {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 2},
        }))
        .unwrap()
    }

    fn pod(app: &str, phase: &str, ready: &str) -> Seen {
        serde_json::from_value(json!({
            "metadata": {"uid": "u", "resourceVersion": "1", "labels": {"app": app}},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    #[test]
    fn a_budget_of_one_does_not_give_two() {
        let two = [pod("web", "Running", "True"), pod("web", "Running", "True")];
        assert!(budget(1).refusal(&two).is_some());
        assert_eq!(budget(2).refusal(&two), None);
    }

    #[test]
    fn only_its_own_running_pods_cost_a_budget() {
        let others = [
            pod("web", "Running", "True"),
            pod("db", "Running", "True"),
            pod("web", "Pending", "False"),
            pod("web", "Failed", "False"),
        ];
        assert_eq!(budget(1).refusal(&others), None);
    }

    #[test]
    fn unready_pods_are_free_where_the_budget_says_so() {
        let unready = [pod("web", "Running", "False")];
        assert!(budget(0).refusal(&unready).is_some(), "too few are healthy to lose even these");
        let mut generous = budget(0);
        generous.spec.unhealthy_pod_eviction_policy = Some("AlwaysAllow".into());
        assert_eq!(generous.refusal(&unready), None);
    }
}
