//! What is known about storage, and what pods' claims make of it: which nodes can reach the volumes they are bound
//! to, or could get new ones.

mod attach;
mod volume;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::objects::{Attachment, Claim, CsiDriver, CsiNode, PersistentVolume, Pod, StorageClass};
use crate::rules::Refusal;

pub use attach::TermsOfUse;
pub use volume::Room;
use volume::Volume;
pub use wanted::Wanted;

/// A claim by its namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimKey {
    pub namespace: String,
    pub name: String,
}

impl ClaimKey {
    pub fn of(meta: &ObjectMeta) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self { namespace: text(&meta.namespace), name: text(&meta.name) }
    }
}

impl ClaimKey {
    /// The claim that a volume is bound to, or meant for.
    pub fn of_volume(volume: &PersistentVolume) -> Option<Self> {
        let claim = volume.spec.claim_ref.as_ref()?;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Some(Self { namespace: text(&claim.namespace), name: text(&claim.name) })
    }
}

impl fmt::Display for ClaimKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A claim that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimUse {
    pub claim: ClaimKey,
    /// The pod for which alone it is made, by uid.
    pub made_for: Option<String>,
}

impl ClaimUse {
    /// In the order of the pod's volumes, which is the order in which they choose.
    pub fn all_of(pod: &Pod) -> Result<Vec<Self>, Refusal> {
        let volumes = pod.spec.volumes.iter().flatten();
        volumes.filter_map(|volume| Self::of(pod, volume).transpose()).collect()
    }

    fn of(pod: &Pod, volume: &crate::objects::Volume) -> Result<Option<Self>, Refusal> {
        if let Some(kind) = in_tree(volume) {
            return Err(Refusal::InlineVolume(kind));
        }
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (name, made_for) = match (&volume.persistent_volume_claim, &volume.ephemeral) {
            (Some(named), _) => (named.claim_name.clone(), None),
            (None, Some(_)) => {
                (format!("{}-{}", text(&pod.metadata.name), volume.name), Some(text(&pod.metadata.uid)))
            }
            (None, None) => return Ok(None),
        };
        if name.is_empty() {
            return Err(Refusal::malformed("the claim", &volume.name));
        }
        let claim = ClaimKey { namespace: text(&pod.metadata.namespace), name };
        Ok(Some(Self { claim, made_for }))
    }
}

/// Storage from before drivers whose rules are not followed here.
fn in_tree(volume: &crate::objects::Volume) -> Option<&'static str> {
    [
        ("awsElasticBlockStore", volume.aws_elastic_block_store),
        ("azureDisk", volume.azure_disk),
        ("cinder", volume.cinder),
        ("gcePersistentDisk", volume.gce_persistent_disk),
        ("iscsi", volume.iscsi),
        ("portworxVolume", volume.portworx_volume),
        ("rbd", volume.rbd),
    ]
    .into_iter()
    .find_map(|(name, given)| given.map(|_| name))
}

/// Why no node will do, as far as a claim is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VolumeTrouble {
    #[error("there is no such claim")]
    Missing,
    #[error("the claim is being deleted")]
    Deleted,
    #[error("the claim has lost its volume")]
    Lost,
    #[error("the claim was not made for this pod")]
    NotItsOwn,
    #[error("the claim is not bound yet, and not bound by whoever uses it first")]
    Unbound,
    #[error("the volume it is bound to is not there")]
    VolumeMissing,
    #[error("the volume it is bound to is not served by a driver; such are not supported")]
    InTree,
}

impl VolumeTrouble {
    pub const fn may_pass(self) -> bool {
        !matches!(self, Self::InTree)
    }
}

/// Everything known about storage. Objects come as they are; judgement is passed on demand.
#[derive(Debug, Default)]
pub struct Storage {
    claims: BTreeMap<ClaimKey, Claim>,
    volumes: BTreeMap<String, Volume>,
    volumes_of_class: BTreeMap<String, BTreeSet<String>>,
    classes: BTreeMap<String, StorageClass>,
    /// What drivers say about each node.
    nodes: BTreeMap<String, CsiNode>,
    drivers: BTreeMap<String, CsiDriver>,
    rooms: BTreeMap<ClaimKey, Room>,
    attachments: BTreeMap<String, Attachment>,
    attachments_on: BTreeMap<String, BTreeSet<String>>,
    /// Claims in use by pods on each node that are not of the engine's jobs, and how many times.
    uses_on: BTreeMap<String, BTreeMap<ClaimKey, u32>>,
    users_of: BTreeMap<ClaimKey, BTreeMap<String, u32>>,
    /// Where the engine's jobs use a claim: attachments there are counted with the jobs.
    used_by_jobs: BTreeMap<ClaimKey, BTreeSet<String>>,
}

/// A volume is the affair of the claim it is for, else of all claims of its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concerned {
    Claim(ClaimKey),
    Class(String),
}

fn name_of(meta: &ObjectMeta) -> String {
    meta.name.clone().unwrap_or_default()
}

impl Storage {
    pub fn claim_applied(&mut self, claim: Claim) {
        self.claims.insert(ClaimKey::of(&claim.metadata), claim);
    }

    pub fn claim_deleted(&mut self, key: &ClaimKey) {
        self.claims.remove(key);
    }

    pub fn volume_applied(&mut self, volume: PersistentVolume) {
        let volume = Volume::of(volume);
        self.volume_deleted(&volume.name);
        self.volumes_of_class.entry(volume.class.clone()).or_default().insert(volume.name.clone());
        self.volumes.insert(volume.name.clone(), volume);
    }

    pub fn volume_deleted(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else { return };
        if let Some(names) = self.volumes_of_class.get_mut(&volume.class) {
            names.remove(name);
            if names.is_empty() {
                self.volumes_of_class.remove(&volume.class);
            }
        }
    }

    pub fn class_applied(&mut self, class: StorageClass) {
        self.classes.insert(name_of(&class.metadata), class);
    }

    pub fn class_deleted(&mut self, name: &str) {
        self.classes.remove(name);
    }

    pub fn node_applied(&mut self, node: CsiNode) {
        self.nodes.insert(name_of(&node.metadata), node);
    }

    pub fn node_deleted(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    pub fn driver_applied(&mut self, driver: CsiDriver) {
        self.drivers.insert(name_of(&driver.metadata), driver);
    }

    pub fn driver_deleted(&mut self, name: &str) {
        self.drivers.remove(name);
    }

    pub fn room_applied(&mut self, room: &crate::objects::StorageCapacity) {
        self.rooms.insert(ClaimKey::of(&room.metadata), Room::of(room));
    }

    /// The class it was about.
    pub fn room_deleted(&mut self, namespace: &str, name: &str) -> Option<String> {
        let key = ClaimKey { namespace: namespace.to_owned(), name: name.to_owned() };
        self.rooms.remove(&key).map(|room| room.class)
    }

    /// Whether only one pod at a time may use a claim, wherever it is.
    pub fn is_for_one_pod(&self, key: &ClaimKey) -> bool {
        let modes = self.claims.get(key).and_then(|claim| claim.spec.access_modes.as_ref());
        modes.into_iter().flatten().any(|mode| mode == "ReadWriteOncePod")
    }

    pub fn is_of_class(&self, key: &ClaimKey, class: &str) -> bool {
        self.claims.get(key).is_some_and(|claim| volume::class_of(claim) == class)
    }

    /// Whom it concerns what becomes of a volume.
    pub fn concerned_by(&self, volume: &str) -> Option<Concerned> {
        let volume = self.volumes.get(volume)?;
        Some(match ClaimKey::of_volume(&volume.object) {
            Some(claim) => Concerned::Claim(claim),
            None => Concerned::Class(volume.class.clone()),
        })
    }

    /// The nodes on which somebody uses a claim and volumes are limited.
    pub fn nodes_that_count(&self, claim: &ClaimKey) -> Vec<String> {
        let nodes = self.users_of.get(claim).into_iter().flat_map(BTreeMap::keys);
        nodes.filter(|node| self.limits(node).next().is_some()).cloned().collect()
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests;
