//! `TrainingJob`, ours: a training job as people write it, and what has become of it.

mod declared;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod traffic;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::CustomResourceExt;
use kube::api::{ApiResource, DynamicObject};

use super::meta::{concerns_scheduling, reference};
use crate::deed::ObjectRef;

pub use spec::{
    Amounts, CheckpointSpec, CoresSpec, DeadlineBinding, DeadlineSpec, FailureAction, FailureRule,
    MembersSpec, OnMiss, PhaseSpec, Port, ProgressSource, ProgressSpec, Rendezvous, Restart, RoleSpec, Span,
    TargetSpec, Template, TopologySpec, TrafficSpec, TrainingJob as TrainingJobObject, TrainingJobSpec,
    WorkSpec,
};
pub use status::{Condition, LastFailure, Phase, RoleStatus, TrainingJobStatus};

pub(super) use declared::group;

/// The label of pods that belong to a `TrainingJob`, with its name.
pub const JOB_LABEL: &str = "metronome.dev/training-job";
/// The label that says which role of its job a pod has, and the one that says its place in it.
pub const ROLE_LABEL: &str = "metronome.dev/role";
pub const INDEX_LABEL: &str = "metronome.dev/index";
/// The annotation that says at which attempt of its job a pod was made.
pub const ATTEMPT: &str = "metronome.dev/attempt";
/// The annotation that says with how many others, itself among them, a pod of a job that may have more was made.
pub const SIZE: &str = "metronome.dev/size";

/// Who makes the pods of jobs that name nobody.
pub const USUAL_SCHEDULER: &str = "metronome";

/// A job as it is read: what cannot be understood is kept as the sentence that says so.
#[derive(Clone, Debug)]
pub struct TrainingJob {
    pub reference: ObjectRef,
    pub metadata: ObjectMeta,
    /// Whom it names, also where the rest cannot be understood: somebody has to say so.
    scheduler: Option<String>,
    pub spec: Result<Arc<TrainingJobSpec>, String>,
    pub status: TrainingJobStatus,
}

impl TrainingJob {
    pub fn read(api: &ApiResource, object: &DynamicObject) -> Self {
        let metadata = &object.metadata;
        let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
        let spec = serde_json::from_value::<TrainingJobSpec>(part("spec"));
        let spec = spec.map_err(|error| format!("its spec makes no sense: {error}"));
        Self {
            reference: reference(api, metadata),
            metadata: kept(metadata),
            scheduler: part("spec")["schedulerName"].as_str().map(str::to_owned),
            spec: spec.and_then(|spec| spec.checked().map(Arc::new)),
            // What we wrote ourselves, and if somebody else did, we write it anew.
            status: serde_json::from_value(part("status")).unwrap_or_default(),
        }
    }

    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether its pods are made and scheduled by one of this name.
    pub fn is_of(&self, scheduler: &str) -> bool {
        self.scheduler.as_deref().unwrap_or(USUAL_SCHEDULER) == scheduler
    }
}

/// Without managed fields, and annotations that are not ours to read.
fn kept(metadata: &ObjectMeta) -> ObjectMeta {
    let annotations = metadata.annotations.iter().flatten().filter(|(key, _)| concerns_scheduling(key));
    let annotations = annotations.map(|(key, value)| (key.clone(), value.clone())).collect();
    ObjectMeta { managed_fields: None, annotations: Some(annotations), ..metadata.clone() }
}

/// A role as it is meant: said in `roles`, or as the only one directly in the job.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleOf<'a> {
    pub name: &'a str,
    /// The least that must run for any to.
    pub least: u32,
    pub most: u32,
    pub resources: Option<&'a BTreeMap<String, super::queue::Quantity>>,
    pub image: Option<&'a str>,
    pub command: &'a [String],
    pub args: &'a [String],
    pub template: Option<&'a Template>,
}

impl RoleOf<'_> {
    pub fn is_elastic(&self) -> bool {
        self.least < self.most
    }
}

/// The role that a job without `roles` has.
pub const ONLY_ROLE: &str = "worker";

impl TrainingJobSpec {
    pub fn all_roles(&self) -> Vec<RoleOf<'_>> {
        if self.roles.is_empty() {
            return vec![self.only_role()];
        }
        self.roles.iter().map(|role| self.role(role)).collect()
    }

    /// The fewest pods with which it runs.
    pub fn least(&self) -> u32 {
        self.all_roles().iter().map(|role| role.least).fold(0, u32::saturating_add)
    }

    /// The role of which there may be more than the least.
    pub fn elastic_role(&self) -> Option<RoleOf<'_>> {
        self.all_roles().into_iter().find(|role| role.is_elastic())
    }

    fn only_role(&self) -> RoleOf<'_> {
        self.workers.role(ONLY_ROLE)
    }

    /// What a role does not say, the job says for all of them.
    fn role<'a>(&'a self, RoleSpec { name, all }: &'a RoleSpec) -> RoleOf<'a> {
        let or = |own: &'a [String], jobs: &'a [String]| if own.is_empty() { jobs } else { own };
        let (role, job) = (all.role(name), self.only_role());
        RoleOf {
            image: role.image.or(job.image),
            command: or(role.command, job.command),
            args: or(role.args, job.args),
            ..role
        }
    }

    /// What a schema cannot say, or an edited one did not.
    fn checked(self) -> Result<Self, String> {
        let roles = self.all_roles();
        for role in &roles {
            if role.template.is_none() && role.image.is_none() {
                return Err(format!("role {} has neither an image nor a template", role.name));
            }
            if role.most < role.least || role.least == 0 {
                return Err(format!("role {} has from {} to {} members", role.name, role.least, role.most));
            }
        }
        if roles.iter().filter(|role| role.is_elastic()).count() > 1 {
            return Err("more than one of its roles may have more members or fewer".into());
        }
        let mut names: Vec<&str> = roles.iter().map(|role| role.name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two roles are called {}", twice[0]));
        }
        if let Some(Err(why)) = self.traffic.as_ref().map(TrafficSpec::traffic) {
            return Err(format!("its traffic makes no sense: {why}"));
        }
        if roles.iter().all(|role| is_server(role.name)) {
            return Err("all of its roles only serve others, so it never ends".into());
        }
        Ok(self)
    }
}

impl MembersSpec {
    fn role<'a>(&'a self, name: &'a str) -> RoleOf<'a> {
        let least = self.members.or(self.min_members).unwrap_or(1);
        RoleOf {
            name,
            least,
            most: self.members.or(self.max_members).unwrap_or(least),
            resources: self.resources.as_ref(),
            image: self.image.as_deref(),
            command: &self.command,
            args: &self.args,
            template: self.template.as_ref(),
        }
    }
}

/// Servers run until the others are done.
pub fn is_server(role: &str) -> bool {
    role == "ps"
}

/// Where there is one, its end is that of the job.
pub fn is_chief(role: &str) -> bool {
    role == "chief"
}

/// What tells an API server that there are such objects, as a file to apply.
pub fn training_job_definition() -> String {
    super::definition_of(&TrainingJobObject::crd())
}
