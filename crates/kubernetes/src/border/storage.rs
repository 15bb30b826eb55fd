//! What becomes of storage, and the sets of nodes that depend on it.

use metronome_core::engine::Engine;
use metronome_core::model::units::Instant;

use super::Border;
use super::wire::Wire;
use crate::objects::{
    Attachment, Claim, CsiDriver, CsiNode, PersistentVolume, StorageCapacity, StorageClass,
};
use crate::rules::storage::{ClaimKey, Concerned, TermsOfUse};

impl Border {
    pub fn claim_applied(&mut self, engine: &mut Engine, now: Instant, claim: Claim) {
        let key = ClaimKey::of(&claim.metadata);
        let before = self.storage.terms_of_use(&key);
        self.storage.claim_applied(claim);
        self.compare_use(&key, &before);
        self.claim_differs(&mut Wire { engine, now }, &key);
    }

    pub fn claim_deleted(&mut self, engine: &mut Engine, now: Instant, namespace: &str, name: &str) {
        let key = ClaimKey { namespace: namespace.to_owned(), name: name.to_owned() };
        self.storage.claim_deleted(&key);
        self.claim_differs(&mut Wire { engine, now }, &key);
    }

    fn compare_use(&mut self, claim: &ClaimKey, before: &TermsOfUse) {
        if self.storage.terms_of_use(claim) != *before {
            self.used_otherwise(claim);
        }
    }

    fn claim_differs(&mut self, wire: &mut Wire<'_>, claim: &ClaimKey) {
        self.reconsider(wire, std::iter::once(claim));
        for node in self.storage.nodes_that_count(claim) {
            self.attached_otherwise(wire, &node);
        }
    }

    pub fn volume_applied(&mut self, engine: &mut Engine, now: Instant, volume: PersistentVolume) {
        let name = volume.metadata.name.clone().unwrap_or_default();
        let before = self.storage.concerned_by(&name);
        let claim = ClaimKey::of_volume(&volume).map(|claim| (self.storage.terms_of_use(&claim), claim));
        self.storage.volume_applied(volume);
        claim.iter().for_each(|(before, claim)| self.compare_use(claim, before));
        let after = self.storage.concerned_by(&name);
        let mut wire = Wire { engine, now };
        if before != after {
            self.volume_differs(&mut wire, before);
        }
        self.volume_differs(&mut wire, after);
    }

    pub fn volume_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        let concerned = self.storage.concerned_by(name);
        self.storage.volume_deleted(name);
        self.volume_differs(&mut Wire { engine, now }, concerned);
    }

    fn volume_differs(&mut self, wire: &mut Wire<'_>, concerned: Option<Concerned>) {
        match concerned {
            Some(Concerned::Claim(claim)) => self.claim_differs(wire, &claim),
            Some(Concerned::Class(class)) => self.class_differs(wire, &class),
            None => {}
        }
    }

    pub fn class_applied(&mut self, engine: &mut Engine, now: Instant, class: StorageClass) {
        let name = class.metadata.name.clone().unwrap_or_default();
        self.storage.class_applied(class);
        self.class_differs(&mut Wire { engine, now }, &name);
    }

    pub fn class_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        self.storage.class_deleted(name);
        self.class_differs(&mut Wire { engine, now }, name);
    }

    fn class_differs(&mut self, wire: &mut Wire<'_>, class: &str) {
        let claims = self.claims_in_question();
        let of_class = claims.iter().filter(|claim| self.storage.is_of_class(claim, class));
        let of_class: Vec<&ClaimKey> = of_class.collect();
        self.reconsider(wire, of_class.into_iter());
    }

    pub fn csi_node_applied(&mut self, engine: &mut Engine, now: Instant, node: CsiNode) {
        let name = node.metadata.name.clone().unwrap_or_default();
        self.storage.node_applied(node);
        self.attached_otherwise(&mut Wire { engine, now }, &name);
    }

    pub fn csi_node_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        self.storage.node_deleted(name);
        self.attached_otherwise(&mut Wire { engine, now }, name);
    }

    pub fn driver_applied(&mut self, engine: &mut Engine, now: Instant, driver: CsiDriver) {
        self.storage.driver_applied(driver);
        self.all_storage_differs(&mut Wire { engine, now });
    }

    pub fn driver_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        self.storage.driver_deleted(name);
        self.all_storage_differs(&mut Wire { engine, now });
    }

    fn all_storage_differs(&mut self, wire: &mut Wire<'_>) {
        let claims = self.claims_in_question();
        self.reconsider(wire, claims.iter());
    }

    pub fn capacity_applied(&mut self, engine: &mut Engine, now: Instant, capacity: &StorageCapacity) {
        self.storage.room_applied(capacity);
        self.class_differs(&mut Wire { engine, now }, &capacity.storage_class_name);
    }

    pub fn capacity_deleted(&mut self, engine: &mut Engine, now: Instant, namespace: &str, name: &str) {
        if let Some(class) = self.storage.room_deleted(namespace, name) {
            self.class_differs(&mut Wire { engine, now }, &class);
        }
    }

    pub fn attachment_applied(&mut self, engine: &mut Engine, now: Instant, attachment: Attachment) {
        let mut wire = Wire { engine, now };
        if let Some(claim) = self.storage.claim_attached_by(&attachment) {
            self.find_where_jobs_use(&wire, &claim);
        }
        let node = self.storage.attachment_applied(attachment);
        self.attached_otherwise(&mut wire, &node);
    }

    pub fn attachment_deleted(&mut self, engine: &mut Engine, now: Instant, name: &str) {
        if let Some(node) = self.storage.attachment_deleted(name) {
            self.attached_otherwise(&mut Wire { engine, now }, &node);
        }
    }

    fn attached_otherwise(&mut self, wire: &mut Wire<'_>, node: &str) {
        self.respecify(wire, node);
        self.readmit_by_storage(wire, node);
    }
}
