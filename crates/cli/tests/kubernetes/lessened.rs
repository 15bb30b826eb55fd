//! The roles of an installation with one verb less, given to somebody who has no others.

use std::collections::BTreeMap;
use std::fmt;

use futures::{StreamExt, stream};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use metronome_testcluster::Corner;
use serde_json::{Value, json};

use crate::audit::Asked;
use crate::everything::Steps;

const RBAC: &str = "rbac.authorization.k8s.io";

/// What was asked for and not forbidden, each once, with the first step that asked for it.
pub(crate) struct Needed(BTreeMap<Request, &'static str>);

/// As roles say it, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Request {
    group: String,
    resource: String,
    verb: String,
    namespace: String,
}

impl Needed {
    /// Of what was never forbidden.
    pub(crate) fn of(asked: Vec<Asked>, steps: &Steps) -> Self {
        let mut needed = BTreeMap::new();
        for one in asked {
            let step = steps.at(one.at);
            let Asked { group, resource, verb, namespace, .. } = one;
            needed.entry(Request { group, resource, verb, namespace }).or_insert(step);
        }
        Self(needed)
    }
}

/// All rights but one.
pub(crate) struct Lessened {
    user: String,
    /// The namespace of the installation.
    home: String,
    /// What was taken away, and from which kind of role.
    without: (String, String, String),
    from: &'static str,
    rules: [(&'static str, Vec<Value>); 2],
}

impl Lessened {
    /// The installed roles, once without each verb on each resource.
    pub(crate) fn all(installed: &[Value], home: &str) -> Vec<Self> {
        let rules_of = |kind: &str| {
            let role = installed.iter().find(|object| object["kind"] == kind).unwrap();
            role["rules"].as_array().unwrap().clone()
        };
        let full = ["ClusterRole", "Role"].map(|kind| (kind, rules_of(kind)));
        let mut all = Vec::new();
        for (table, (kind, rules)) in full.iter().enumerate() {
            for (at, rule) in rules.iter().enumerate() {
                for verb in rule["verbs"].as_array().unwrap() {
                    let mut rules = full.clone();
                    let verbs = rules[table].1[at]["verbs"].as_array_mut().unwrap();
                    verbs.retain(|kept| kept != verb);
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    all.push(Self {
                        user: format!("lessened-{}", all.len()),
                        home: home.to_owned(),
                        without: (text(&rule["apiGroups"][0]), text(&rule["resources"][0]), text(verb)),
                        from: kind,
                        rules,
                    });
                }
            }
        }
        all
    }

    pub(crate) fn is_on(&self, group: &str, resource: &str) -> bool {
        (&*self.without.0, &*self.without.1) == (group, resource)
    }

    pub(crate) fn is_about(&self, request: &Request) -> bool {
        let Request { group, resource, verb, .. } = request;
        self.is_on(group, resource) && self.without.2 == *verb
    }

    pub(crate) async fn install(&self, corner: &Corner) {
        for (kind, rules) in &self.rules {
            // A rule without verbs is none.
            let rules: Vec<&Value> = rules.iter().filter(|rule| rule["verbs"] != json!([])).collect();
            let mut metadata = json!({"name": self.user});
            if *kind == "Role" {
                metadata["namespace"] = json!(self.home);
            }
            let role = json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules,
            });
            let binding = json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": self.user},
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": self.user}],
            });
            corner.plane.apply_yaml(&role.to_string()).await.unwrap();
            corner.plane.apply_yaml(&binding.to_string()).await.unwrap();
        }
    }

    /// What would have been forbidden, with the step that asked for it.
    pub(crate) async fn denied(&self, corner: &Corner, needed: &Needed) -> Vec<(Request, &'static str)> {
        // Roles take a moment until they count: then what is not meant is allowed. Leases are of the own namespace alone.
        let kept = || needed.0.keys().filter(|request| !self.is_about(request));
        let wide = kept().find(|request| request.namespace.is_empty());
        let own = kept().find(|request| request.resource == "leases");
        for request in [wide, own].into_iter().flatten() {
            corner
                .until("its roles count", async |corner| self.may(corner, request).await.then_some(()))
                .await;
        }
        let judged = stream::iter(&needed.0).map(async |(request, step)| {
            (!self.may(corner, request).await).then(|| (request.clone(), *step))
        });
        judged.buffered(16).filter_map(async |denied| denied).collect().await
    }

    async fn may(&self, corner: &Corner, request: &Request) -> bool {
        let (resource, part) = match request.resource.split_once('/') {
            Some((resource, part)) => (resource, part),
            None => (&*request.resource, ""),
        };
        let review = json!({"spec": {
            "user": self.user,
            "resourceAttributes": {
                "group": request.group, "resource": resource, "subresource": part,
                "verb": request.verb, "namespace": request.namespace,
            },
        }});
        let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
        let reviews: Api<SubjectAccessReview> = Api::all(corner.client.clone());
        reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed
    }
}

impl fmt::Display for Lessened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, resource, verb) = &self.without;
        let of = if group.is_empty() { String::new() } else { format!(" of {group}") };
        write!(f, "{verb} on {resource}{of} in the {}", self.from)
    }
}
