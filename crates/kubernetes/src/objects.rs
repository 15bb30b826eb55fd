//! API objects, stripped on arrival to what scheduling needs: everything else is skipped while it is read and costs
//! no memory.

#[expect(unreachable_pub, reason = "what the derived schema makes inside itself")]
mod fabric;
mod fields;
mod group;
mod member;
mod meta;
mod node;
mod pod;
mod queue;
mod report;
mod storage;
#[expect(unreachable_pub, reason = "what the derived schema makes inside itself")]
mod training;

use std::borrow::Cow;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;

pub use fabric::{
    Fabric, FabricLevel, FabricObject, FabricSpec, FabricStatus, HOSTNAME, Terrain, fabric_definition,
};
pub use fields::Complaint;
pub use group::{Elastic, Group, GroupKind};
pub use member::{Member, MemberCondition, MemberSpec, MemberStatus, Terminated};
pub use meta::Seconds;
pub use node::{Node, NodeCondition, NodeSpec, NodeStatus};
pub use pod::{
    Claims, Container, ContainerPort, ContainerStatus, Ephemeral, Gate, Needs, Pod, PodCondition, PodSpec,
    PodStatus, RestartRule, SchedulingGroup, Volume, WorkloadRef,
};
pub use queue::{
    Amounts, Described, Doors, OwnQueue, Quantity, Queue, QueueKind, QueueSpec, QueueStatus, ROOT,
    UserPriority, UserSpec, definition,
};
pub use report::{Done, Report, TrainJob};
pub use storage::{
    Attachment, AttachmentSource, AttachmentSpec, Budget, BudgetStatus, Claim, ClaimSpec, ClaimStatus,
    CsiDriver, CsiDriverSpec, CsiNode, CsiNodeSpec, CsiSource, DriverLimit, Job, JobSpec, Namespace,
    PersistentVolume, PersistentVolumeSpec, StorageCapacity, StorageClass,
};

pub use training::{
    ATTEMPT, Amounts as MemberAmounts, CheckpointSpec, Condition, CoresSpec, DeadlineBinding, DeadlineSpec,
    FailureAction, FailureRule, INDEX_LABEL, JOB_LABEL, LastFailure, OnMiss, Phase, PhaseSpec, Port,
    ProgressSource, ProgressSpec, ROLE_LABEL, Rendezvous, Restart, RoleOf, RoleSpec, RoleStatus, SIZE, Span,
    TargetSpec, Template, TopologySpec, TrafficSpec, TrainingJob, TrainingJobObject, TrainingJobSpec,
    TrainingJobStatus, USUAL_SCHEDULER, WorkSpec, is_chief, is_server, training_job_definition,
};

/// What tells an API server of a kind of ours, as a file to apply.
fn definition_of(definition: &CustomResourceDefinition) -> String {
    let yaml =
        serde_saphyr::to_string(definition).expect("a definition is plain data, which always serialises");
    format!("# Written by `cargo xtask codegen`: do not edit.\n{yaml}")
}

/// Lets `kube` list and watch a stripped object.
macro_rules! resource {
    ($name:ty, $kind:literal, $group:literal, $version:literal, $plural:literal, $scope:ty) => {
        impl Resource for $name {
            type DynamicType = ();
            type Scope = $scope;
            fn kind((): &()) -> Cow<'_, str> {
                $kind.into()
            }
            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }
            fn version((): &()) -> Cow<'_, str> {
                $version.into()
            }
            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

use k8s_openapi::{ClusterResourceScope as Wide, NamespaceResourceScope as Spaced};

resource!(Pod, "Pod", "", "v1", "pods", Spaced);
resource!(Member, "Pod", "", "v1", "pods", Spaced);
resource!(Node, "Node", "", "v1", "nodes", Wide);
resource!(Namespace, "Namespace", "", "v1", "namespaces", Wide);
resource!(Claim, "PersistentVolumeClaim", "", "v1", "persistentvolumeclaims", Spaced);
resource!(PersistentVolume, "PersistentVolume", "", "v1", "persistentvolumes", Wide);
resource!(StorageClass, "StorageClass", "storage.k8s.io", "v1", "storageclasses", Wide);
resource!(CsiDriver, "CSIDriver", "storage.k8s.io", "v1", "csidrivers", Wide);
resource!(StorageCapacity, "CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities", Spaced);
resource!(Attachment, "VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", Wide);
resource!(CsiNode, "CSINode", "storage.k8s.io", "v1", "csinodes", Wide);
resource!(Budget, "PodDisruptionBudget", "policy", "v1", "poddisruptionbudgets", Spaced);
resource!(Job, "Job", "batch", "v1", "jobs", Spaced);
