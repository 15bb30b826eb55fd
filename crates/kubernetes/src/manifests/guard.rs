//! Who may say which name, queue and priority class. The API server asks nobody of ours: a dead scheduler must not
//! keep a cluster from taking pods.
//!
//! What is said counts where a person says it: on pods, jobs, groups and training jobs. Pods that are made of a job
//! or a training job come from a controller that says what its job says, which was looked at.

use serde_json::{Value, json};

use super::slots::Slots;
use super::{Manifest, NAME, wide_metadata};

const GROUP: &str = "admissionregistration.k8s.io/v1";

/// Something that is said of a job, and who may say it.
struct Said {
    name: &'static str,
    /// Where, below the object's root; a place that is not there says nothing.
    places: &'static [&'static str],
    /// The same, of training jobs alone.
    of_training_jobs: &'static [&'static str],
    /// The same in each role of a training job.
    in_roles: &'static [&'static str],
    /// Whether the request's user may; `variables.NAME[0]` is what is said.
    allowed: &'static str,
    message: &'static str,
}

const SAID: [Said; 3] = [
    Said {
        name: "users",
        places: &[
            "metadata.?labels[?'metronome.dev/user']",
            "metadata.?annotations[?'metronome.dev/user']",
            "?spec.?template.?metadata.?labels[?'metronome.dev/user']",
            "?spec.?template.?metadata.?annotations[?'metronome.dev/user']",
        ],
        of_training_jobs: &[],
        in_roles: &[
            "?template.?metadata.?labels[?'metronome.dev/user']",
            "?template.?metadata.?annotations[?'metronome.dev/user']",
        ],
        allowed: "variables.users[0] == request.userInfo.username || \
                  authorizer.group('metronome.dev').resource('users').name(variables.users[0]).check('as').allowed()",
        message: "says that it is the job of another user: that takes the verb `as` on `users` in `metronome.dev`",
    },
    Said {
        name: "queues",
        places: &[
            "metadata.?labels[?'metronome.dev/queue']",
            "metadata.?annotations[?'metronome.dev/queue']",
            "?spec.?template.?metadata.?labels[?'metronome.dev/queue']",
            "?spec.?template.?metadata.?annotations[?'metronome.dev/queue']",
        ],
        of_training_jobs: &["?spec.?queue"],
        in_roles: &[
            "?template.?metadata.?labels[?'metronome.dev/queue']",
            "?template.?metadata.?annotations[?'metronome.dev/queue']",
        ],
        allowed: "authorizer.group('metronome.dev').resource('queues').name(variables.queues[0]).check('use').allowed()",
        message: "names a queue: that takes the verb `use` on this one of `queues` in `metronome.dev`",
    },
    Said {
        name: "classes",
        places: &["?spec.?priorityClassName", "?spec.?template.?spec.?priorityClassName"],
        of_training_jobs: &[],
        in_roles: &["?template.?spec.?priorityClassName"],
        allowed: "authorizer.group('scheduling.k8s.io').resource('priorityclasses').name(variables.classes[0]).check('use').allowed()",
        message: "names a priority class: that takes the verb `use` on this one of `priorityclasses` in `scheduling.k8s.io`",
    },
];

pub(super) fn manifests(slots: &Slots) -> Vec<Manifest> {
    vec![policy(slots).into(), binding().into()]
}

fn policy(slots: &Slots) -> Value {
    let variables: Vec<Value> = SAID.iter().flat_map(Said::variables).collect();
    let validations: Vec<Value> = SAID.iter().flat_map(Said::validations).collect();
    json!({
        "apiVersion": GROUP, "kind": "ValidatingAdmissionPolicy", "metadata": wide_metadata(NAME),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                made_or_changed("", "pods"),
                made_or_changed("batch", "jobs"),
                made_or_changed("metronome.dev", "trainingjobs"),
                made_or_changed("scheduling.k8s.io", "podgroups"),
                made_or_changed("scheduling.x-k8s.io", "podgroups"),
                made_or_changed("scheduling.volcano.sh", "podgroups"),
            ]},
            "matchConditions": [
                {"name": "for-this-scheduler", "expression": for_this_scheduler(slots)},
                {"name": "said-by-somebody", "expression": said_by_somebody(slots)},
            ],
            "variables": variables,
            "validations": validations,
        },
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": GROUP, "kind": "ValidatingAdmissionPolicyBinding", "metadata": wide_metadata(NAME),
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    })
}

fn made_or_changed(group: &str, resource: &str) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["CREATE", "UPDATE"],
    })
}

/// Pods and jobs of other schedulers are none of our business.
fn for_this_scheduler(slots: &Slots) -> String {
    let name = &slots.scheduler_name;
    format!(
        "request.resource.resource == 'pods' ? object.spec.?schedulerName.orValue('') == '{name}' : \
         request.resource.resource == 'jobs' ? object.spec.template.spec.?schedulerName.orValue('') == '{name}' : true"
    )
}

fn said_by_somebody(slots: &Slots) -> String {
    let ours = format!("system:serviceaccount:{}:{NAME}", slots.namespace);
    format!("!(request.userInfo.username in ['{ours}', 'system:serviceaccount:kube-system:job-controller'])")
}

impl Said {
    /// What is said now, and what was said before, so that changes to anything else need no right.
    fn variables(&self) -> [Value; 2] {
        let before = format!("request.operation == 'UPDATE' ? {} : []", self.all_of("oldObject"));
        [
            json!({"name": self.name, "expression": self.all_of("object")}),
            json!({"name": format!("{}Before", self.name), "expression": before}),
        ]
    }

    /// Everything of it that an object says, in all places.
    fn all_of(&self, object: &str) -> String {
        let places: Vec<String> = self.places.iter().map(|place| format!("?{object}.{place}")).collect();
        let mut all = format!("[{}]", places.join(", "));
        for place in self.of_training_jobs {
            let said = format!("request.resource.resource == 'trainingjobs' ? [?{object}.{place}] : []");
            all = format!("{all} + ({said})");
        }
        for place in self.in_roles {
            let role = format!("role.{place}.orValue('')");
            let roles =
                format!("{object}.?spec.?roles.orValue([]).map(role, {role}).filter(said, said != '')");
            all = format!("{all} + {roles}");
        }
        all
    }

    fn validations(&self) -> [Value; 2] {
        let Self { name, allowed, message, .. } = self;
        [
            // One question is all that one request may ask.
            json!({
                "expression": format!("variables.{name}.all(said, said == variables.{name}[0])"),
                "message": format!("says several {name} in several places"),
            }),
            json!({
                "expression": format!(
                    "variables.{name} == variables.{name}Before || variables.{name}.size() == 0 || {allowed}"
                ),
                "message": message,
                "reason": "Forbidden",
            }),
        ]
    }
}
