//! How many volumes a node has attached, and how many it can.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};

use super::volume::class_of;
use super::{ClaimKey, ClaimUse, Storage};
use crate::objects::{Attachment, Claim};

/// What a claim means to those who use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermsOfUse {
    for_one_pod: bool,
    driver: Option<String>,
}

/// Volumes by driver, each once.
#[derive(Debug, Default)]
pub(super) struct Attached(BTreeMap<String, BTreeSet<String>>);

impl Attached {
    fn insert(&mut self, (driver, volume): (String, String)) {
        self.0.entry(driver).or_default().insert(volume);
    }

    pub(super) fn drivers(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn count(&self, driver: &str) -> usize {
        self.0.get(driver).map_or(0, BTreeSet::len)
    }

    /// How many of a driver's volumes are not among the others.
    pub(super) fn beyond(&self, others: &Self, driver: &str) -> usize {
        let present = |volume: &&String| others.0.get(driver).is_none_or(|there| !there.contains(*volume));
        self.0.get(driver).map_or(0, |volumes| volumes.iter().filter(present).count())
    }
}

impl Storage {
    /// How many volumes of each driver a node takes that limits them, and how many it has, the engine's jobs aside.
    pub fn attach_room(&self, node: &str) -> Vec<(&str, usize, usize)> {
        let limits: Vec<_> = self.limits(node).collect();
        if limits.is_empty() {
            return Vec::new();
        }
        let present = self.attached_on(node);
        limits.into_iter().map(|(driver, limit)| (driver, limit, present.count(driver))).collect()
    }

    /// How many volumes of each driver these claims bring to a node where nobody has them yet.
    pub fn brought(&self, uses: &[ClaimUse]) -> BTreeMap<String, u64> {
        let mut volumes = Attached::default();
        for used in uses.iter().filter(|used| !self.is_used(&used.claim)) {
            let claim = self.claims.get(&used.claim);
            claim
                .and_then(|claim| self.driver_and_volume(claim, None))
                .into_iter()
                .for_each(|one| volumes.insert(one));
        }
        volumes.0.into_iter().map(|(driver, volumes)| (driver, volumes.len() as u64)).collect()
    }

    pub fn terms_of_use(&self, claim: &ClaimKey) -> TermsOfUse {
        let known = self.claims.get(claim);
        let driver = known.and_then(|claim| self.driver_and_volume(claim, None)).map(|(driver, _)| driver);
        TermsOfUse { for_one_pod: self.is_for_one_pod(claim), driver }
    }

    fn is_used(&self, claim: &ClaimKey) -> bool {
        self.users_of.contains_key(claim)
    }

    /// The claims that nobody used before.
    pub fn use_began(&mut self, node: &str, claims: &[ClaimKey]) -> Vec<ClaimKey> {
        let first = claims.iter().filter(|claim| !self.is_used(claim)).cloned().collect();
        for claim in claims {
            *self.uses_on.entry(node.to_owned()).or_default().entry(claim.clone()).or_default() += 1;
            *self.users_of.entry(claim.clone()).or_default().entry(node.to_owned()).or_default() += 1;
        }
        first
    }

    /// The claims that nobody uses any more.
    pub fn use_ended(&mut self, node: &str, claims: &[ClaimKey]) -> Vec<ClaimKey> {
        for claim in claims {
            decrease_in(&mut self.uses_on, node, claim);
            decrease_in(&mut self.users_of, claim, node);
        }
        claims.iter().filter(|claim| !self.is_used(claim)).cloned().collect()
    }

    /// On these nodes jobs of the engine use the claim, and nowhere else.
    pub fn used_by_jobs(&mut self, claim: &ClaimKey, nodes: BTreeSet<String>) {
        if nodes.is_empty() {
            self.used_by_jobs.remove(claim);
        } else {
            self.used_by_jobs.insert(claim.clone(), nodes);
        }
    }

    /// The claim whose volume it is.
    pub fn claim_attached_by(&self, attachment: &Attachment) -> Option<ClaimKey> {
        let volume = self.volumes.get(attachment.spec.source.persistent_volume_name.as_ref()?)?;
        ClaimKey::of_volume(&volume.object)
    }

    /// The node it concerns.
    pub fn attachment_applied(&mut self, attachment: Attachment) -> String {
        let name = super::name_of(&attachment.metadata);
        self.attachment_deleted(&name);
        let node = attachment.spec.node_name.clone();
        self.attachments_on.entry(node.clone()).or_default().insert(name.clone());
        self.attachments.insert(name, attachment);
        node
    }

    pub fn attachment_deleted(&mut self, name: &str) -> Option<String> {
        let attachment = self.attachments.remove(name)?;
        let node = attachment.spec.node_name;
        if let Some(names) = self.attachments_on.get_mut(&node) {
            names.remove(name);
            if names.is_empty() {
                self.attachments_on.remove(&node);
            }
        }
        Some(node)
    }

    pub(super) fn limits(&self, node: &str) -> impl Iterator<Item = (&str, usize)> {
        let drivers = self.nodes.get(node).into_iter().flat_map(|node| node.spec.drivers.iter().flatten());
        drivers.filter_map(|driver| {
            let count = driver.allocatable.as_ref()?.count?;
            Some((driver.name.as_str(), usize::try_from(count).unwrap_or(0)))
        })
    }

    /// Whether the driver is on the node, where it matters.
    pub(super) fn serves(&self, driver: &str, node: &str) -> bool {
        let known = self.drivers.get(driver);
        let matters = known.is_some_and(|driver| driver.spec.prevent_pod_scheduling_if_missing == Some(true));
        let mut present =
            self.nodes.get(node).into_iter().flat_map(|node| node.spec.drivers.iter().flatten());
        !matters || present.any(|present| present.name == driver)
    }

    /// What is attached to a node, or is about to be, the engine's jobs aside.
    pub(super) fn attached_on(&self, node: &str) -> Attached {
        let mut attached = self.used_on(node);
        let attachments = self.attachments_on.get(node).into_iter().flatten();
        let attachments = attachments.map(|name| &self.attachments[name]);
        attachments.filter_map(|one| self.of_others(one)).for_each(|one| attached.insert(one));
        attached
    }

    /// What pods on a node use, the engine's jobs aside.
    pub(super) fn used_on(&self, node: &str) -> Attached {
        let claims = self.uses_on.get(node).into_iter().flat_map(BTreeMap::keys);
        self.attached_by(node, claims)
    }

    pub(super) fn attached_by<'a>(&self, node: &str, claims: impl Iterator<Item = &'a ClaimKey>) -> Attached {
        let mut attached = Attached::default();
        let claims = claims.filter_map(|claim| self.claims.get(claim));
        claims
            .filter_map(|claim| self.driver_and_volume(claim, Some(node)))
            .for_each(|one| attached.insert(one));
        attached
    }

    fn of_others(&self, attachment: &Attachment) -> Option<(String, String)> {
        let volume = self.volumes.get(attachment.spec.source.persistent_volume_name.as_ref()?)?;
        let jobs = ClaimKey::of_volume(&volume.object).and_then(|claim| self.used_by_jobs.get(&claim));
        let counted = jobs.is_some_and(|nodes| nodes.contains(&attachment.spec.node_name));
        let driver =
            Some(attachment.spec.attacher.clone()).filter(|driver| !driver.is_empty() && !counted)?;
        Some((driver, volume.object.spec.csi.as_ref()?.volume_handle.clone()))
    }

    fn driver_and_volume(&self, claim: &Claim, on: Option<&str>) -> Option<(String, String)> {
        if let Some(volume) = self.volume_of(claim) {
            let csi = volume.object.spec.csi.as_ref()?;
            return Some((csi.driver.clone(), csi.volume_handle.clone()));
        }
        let provisioner = self.classes.get(class_of(claim))?.provisioner.as_str();
        let unmade = format!("claim {}", ClaimKey::of(&claim.metadata));
        let migrated = on.is_none_or(|node| self.nodes.contains_key(node));
        driver_of(provisioner, migrated).map(|driver| (driver.to_owned(), unmade))
    }

    fn volume_of(&self, claim: &Claim) -> Option<&super::Volume> {
        self.volumes.get(claim.spec.volume_name.as_deref().filter(|name| !name.is_empty())?)
    }
}

/// The drivers that have taken over from in-tree provisioners, on nodes that say which drivers they have.
fn driver_of(provisioner: &str, migrated: bool) -> Option<&str> {
    const MIGRATED: [(&str, &str); 5] = [
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
        ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
        ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
        ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
        ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ];
    if matches!(provisioner, "kubernetes.io/azure-file" | "kubernetes.io/vsphere-volume") {
        return None;
    }
    match MIGRATED.iter().find(|(old, _)| *old == provisioner) {
        Some((_, driver)) => migrated.then_some(*driver),
        None => Some(provisioner),
    }
}

fn decrease<K: Ord + Borrow<Q>, Q: Ord + ?Sized>(counts: &mut BTreeMap<K, u32>, key: &Q) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// As `decrease`, one map further in.
fn decrease_in<K, L, Q, R>(counts: &mut BTreeMap<K, BTreeMap<L, u32>>, key: &Q, inner: &R)
where
    K: Ord + Borrow<Q>,
    L: Ord + Borrow<R>,
    Q: Ord + ?Sized,
    R: Ord + ?Sized,
{
    if let Some(inside) = counts.get_mut(key) {
        decrease(inside, inner);
        if inside.is_empty() {
            counts.remove(key);
        }
    }
}
