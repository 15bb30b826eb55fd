//! What a pod's claims ask of a node.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySelectorTerm;

use super::attach::Attached;
use super::volume::{Volume, class_of, has_zone, size_of};
use super::{ClaimUse, Storage, VolumeTrouble};
use crate::objects::{Claim, Node, StorageClass};
use crate::rules::Refusal;
use crate::rules::selector::{Labels, Selector, labels_of};

/// A pod's claims, looked up: what is the same for every node is found out once.
#[derive(Debug)]
pub struct Wanted<'a> {
    storage: &'a Storage,
    bound: Vec<&'a Volume>,
    /// To be bound where the pod goes, the smallest first.
    open: Vec<Open<'a>>,
    uses: &'a [ClaimUse],
}

#[derive(Debug)]
struct Open<'a> {
    claim: &'a Claim,
    class: &'a StorageClass,
    /// Where it was decided already to make a volume for it.
    made_on: Option<&'a str>,
    /// Volumes it could be bound to, if the node reaches them.
    candidates: Vec<&'a Volume>,
}

impl Storage {
    /// What these claims ask of a node, or why no node will do.
    pub fn wanted<'a>(&'a self, uses: &'a [ClaimUse]) -> Result<Wanted<'a>, Refusal> {
        let mut wanted = Wanted { storage: self, bound: Vec::new(), open: Vec::new(), uses };
        for used in uses {
            self.look_up(used, &mut wanted)
                .map_err(|trouble| Refusal::Volume { claim: used.claim.to_string(), trouble })?;
        }
        wanted.open.sort_by_key(|open| size_of(open.claim).unwrap_or_default());
        Ok(wanted)
    }

    fn look_up<'a>(&'a self, used: &ClaimUse, wanted: &mut Wanted<'a>) -> Result<(), VolumeTrouble> {
        let claim = self.claims.get(&used.claim).ok_or(VolumeTrouble::Missing)?;
        usable(claim, used)?;
        let annotations = claim.metadata.annotations.as_ref();
        let completed = annotations.is_some_and(|all| all.contains_key("pv.kubernetes.io/bind-completed"));
        match claim.spec.volume_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) if completed => {
                let volume = self.volumes.get(name).ok_or(VolumeTrouble::VolumeMissing)?;
                if volume.is_in_tree() {
                    return Err(VolumeTrouble::InTree);
                }
                wanted.bound.push(volume);
            }
            Some(_) => return Err(VolumeTrouble::Unbound),
            None => wanted.open.push(self.open(claim).ok_or(VolumeTrouble::Unbound)?),
        }
        Ok(())
    }

    /// `None` where the claim should have been bound without us.
    fn open<'a>(&'a self, claim: &'a Claim) -> Option<Open<'a>> {
        let class = self.classes.get(class_of(claim))?;
        let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
        let annotations = claim.metadata.annotations.as_ref();
        let made_on = annotations.and_then(|all| all.get("volume.kubernetes.io/selected-node"));
        let made_on = made_on.map(String::as_str);
        let candidates = if made_on.is_none() { self.candidates(claim) } else { Vec::new() };
        waits.then_some(Open { claim, class, made_on, candidates })
    }

    fn candidates<'a>(&'a self, claim: &Claim) -> Vec<&'a Volume> {
        let names = self.volumes_of_class.get(class_of(claim)).into_iter().flatten();
        names.map(|name| &self.volumes[name]).filter(|volume| could_be_bound(volume, claim)).collect()
    }
}

fn usable(claim: &Claim, used: &ClaimUse) -> Result<(), VolumeTrouble> {
    if claim.status.phase.as_deref() == Some("Lost") {
        return Err(VolumeTrouble::Lost);
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(VolumeTrouble::Deleted);
    }
    match &used.made_for {
        Some(pod) if !is_owned_by(claim, pod) => Err(VolumeTrouble::NotItsOwn),
        _ => Ok(()),
    }
}

fn is_owned_by(claim: &Claim, pod: &str) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == pod)
}

/// Whether the volume would do for the claim, wherever it is reached from.
fn could_be_bound(volume: &Volume, claim: &Claim) -> bool {
    let (spec, asked) = (&volume.object.spec, &claim.spec);
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_else(|| "Filesystem".to_owned());
    let attributes = |class: &Option<String>| class.clone().unwrap_or_default();
    let suits = volume.size >= size_of(claim).unwrap_or_default()
        && mode(&spec.volume_mode) == mode(&asked.volume_mode)
        && attributes(&spec.volume_attributes_class_name) == attributes(&asked.volume_attributes_class_name)
        && volume.object.metadata.deletion_timestamp.is_none();
    if spec.claim_ref.is_some() {
        return suits && volume.is_meant_for(claim);
    }
    let selected = asked.selector.as_ref().is_none_or(|selector| {
        Selector::of(Some(selector)).is_ok_and(|all| all.matches(labels_of(&volume.object.metadata)))
    });
    let modes: BTreeSet<&String> = spec.access_modes.iter().flatten().collect();
    suits
        && selected
        && volume.object.status.phase.as_deref() == Some("Available")
        && asked.access_modes.iter().flatten().all(|mode| modes.contains(mode))
}

impl Wanted<'_> {
    pub fn allow(&self, node: &Node) -> bool {
        let labels = labels_of(&node.metadata);
        let name = node.metadata.name.as_deref().unwrap_or_default();
        self.bound.iter().all(|volume| volume.is_reached_from(labels))
            && self.zones_hold(labels)
            && self.can_be_bound(name, labels)
            && self.can_be_attached(name)
    }

    fn zones_hold(&self, node: &Labels) -> bool {
        let mut zones = self.bound.iter().flat_map(|volume| &volume.zones);
        !has_zone(node) || zones.all(|zone| zone.holds(node))
    }

    /// Each open claim finds a volume of its own that the node reaches, or one can be made for it there.
    fn can_be_bound(&self, name: &str, node: &Labels) -> bool {
        let mut chosen = BTreeSet::new();
        self.open.iter().all(|open| match open.made_on {
            Some(elsewhere) if elsewhere != name => false,
            Some(_) => self.can_be_made(open, node),
            None => match open.choose(node, &chosen) {
                Some(volume) => chosen.insert(volume),
                None => self.can_be_made(open, node),
            },
        })
    }

    fn can_be_made(&self, open: &Open<'_>, node: &Labels) -> bool {
        let provisioner = open.class.provisioner.as_str();
        !matches!(provisioner, "" | "kubernetes.io/no-provisioner")
            && is_allowed(open.class.allowed_topologies.as_deref().unwrap_or_default(), node)
            && self.has_room(open, node)
    }

    /// Only some drivers say how much room they have.
    fn has_room(&self, open: &Open<'_>, node: &Labels) -> bool {
        let driver = self.storage.drivers.get(&open.class.provisioner);
        let says = driver.is_some_and(|driver| driver.spec.storage_capacity == Some(true));
        let Some(size) = size_of(open.claim).filter(|_| says) else { return true };
        let class = open.class.metadata.name.as_deref().unwrap_or_default();
        let mut rooms = self.storage.rooms.values().filter(|room| room.class == class);
        rooms.any(|room| room.suffices(size, node))
    }

    /// Every driver needed is there, and none has more volumes than it can take.
    fn can_be_attached(&self, node: &str) -> bool {
        let new = self.storage.attached_by(node, self.uses.iter().map(|used| &used.claim));
        new.drivers().all(|driver| self.storage.serves(driver, node)) && self.within_limits(node, &new)
    }

    fn within_limits(&self, node: &str, new: &Attached) -> bool {
        let mut limits =
            self.storage.limits(node).filter(|(driver, _)| new.drivers().any(|new| new == *driver));
        let Some(first) = limits.next() else { return true };
        let (present, used) = (self.storage.attached_on(node), self.storage.used_on(node));
        std::iter::once(first).chain(limits).all(|(driver, limit)| {
            // A volume that is still attached but used by nobody counts twice: kube-scheduler has it so.
            let added = new.beyond(&used, driver);
            added == 0 || present.count(driver) + added <= limit
        })
    }
}

impl<'a> Open<'a> {
    /// A volume that is meant for it, whatever that is, else the smallest.
    fn choose(&self, node: &Labels, taken: &BTreeSet<&str>) -> Option<&'a str> {
        let free = || self.candidates.iter().filter(|volume| !taken.contains(volume.name.as_str()));
        if let Some(meant) = free().find(|volume| volume.object.spec.claim_ref.is_some()) {
            return meant.is_reached_from(node).then_some(meant.name.as_str());
        }
        let reached = free().filter(|volume| volume.is_reached_from(node));
        reached.min_by_key(|volume| volume.size).map(|volume| volume.name.as_str())
    }
}

fn is_allowed(topologies: &[TopologySelectorTerm], node: &Labels) -> bool {
    topologies.is_empty()
        || topologies.iter().any(|term| {
            let expressions = term.match_label_expressions.as_deref().unwrap_or_default();
            let holds =
                |key: &str, values: &[String]| node.get(key).is_some_and(|value| values.contains(value));
            !expressions.is_empty() && expressions.iter().all(|one| holds(&one.key, &one.values))
        })
}
