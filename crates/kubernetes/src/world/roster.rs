//! Lists told as single changes: whoever was known and is not in a new list is gone.

use std::collections::BTreeSet;

use kube::{Resource, ResourceExt};

use metronome_core::model::units::Instant;

use super::World;
use crate::objects::{
    Attachment, Claim, CsiDriver, CsiNode, Namespace, Node, PersistentVolume, StorageCapacity, StorageClass,
};
use crate::watch::Delta;

/// The objects of one kind that are known, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Roster(BTreeSet<Key>);

type Key = (String, String);

#[derive(Debug, Default)]
pub(super) struct Rosters {
    nodes: Roster,
    namespaces: Roster,
    claims: Roster,
    volumes: Roster,
    classes: Roster,
    csi_nodes: Roster,
    drivers: Roster,
    capacities: Roster,
    attachments: Roster,
}

impl Roster {
    /// Who came or changed, and who is gone.
    fn take<T: Resource>(&mut self, delta: Delta<T>) -> (Vec<T>, BTreeSet<Key>) {
        match delta {
            Delta::Applied(object) => {
                self.0.insert(key(&object));
                (vec![object], BTreeSet::new())
            }
            Delta::Deleted(object) => {
                self.0.remove(&key(&object));
                (Vec::new(), BTreeSet::from([key(&object)]))
            }
            Delta::Reset(objects) => {
                let there: BTreeSet<Key> = objects.iter().map(key).collect();
                let gone = std::mem::replace(&mut self.0, there);
                let gone = gone.difference(&self.0).cloned().collect();
                (objects, gone)
            }
        }
    }
}

fn key<T: Resource>(object: &T) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// A method for one kind: hands every change on to the border.
macro_rules! handed_on {
    ($name:ident, $kind:ty, $roster:ident, $applied:expr, $deleted:expr) => {
        pub(super) fn $name(&mut self, now: Instant, delta: Delta<$kind>) {
            let (came, gone) = self.rosters.$roster.take(delta);
            for object in came {
                $applied(self, now, object);
            }
            for key in gone {
                $deleted(self, now, key);
            }
            self.volumes_differ();
        }
    };
}

impl World {
    pub(super) fn nodes_changed(&mut self, now: Instant, delta: Delta<Node>) {
        let (came, gone) = self.rosters.nodes.take(delta);
        for node in came {
            let node = self.located(node);
            self.border.node_applied(&mut self.engine, now, node);
        }
        for (_, name) in gone {
            self.border.node_deleted(&mut self.engine, now, &name);
        }
    }

    handed_on!(
        namespaces_changed,
        Namespace,
        namespaces,
        |world: &mut Self, now, object: Namespace| world.border.namespace_applied(
            &mut world.engine,
            now,
            &object
        ),
        |world: &mut Self, now, (_, name): Key| world.border.namespace_deleted(&mut world.engine, now, &name)
    );
    handed_on!(
        claims_changed,
        Claim,
        claims,
        |world: &mut Self, now, object| world.border.claim_applied(&mut world.engine, now, object),
        |world: &mut Self, now, (space, name): Key| world.border.claim_deleted(
            &mut world.engine,
            now,
            &space,
            &name
        )
    );
    handed_on!(
        volumes_changed,
        PersistentVolume,
        volumes,
        |world: &mut Self, now, object| world.border.volume_applied(&mut world.engine, now, object),
        |world: &mut Self, now, (_, name): Key| world.border.volume_deleted(&mut world.engine, now, &name)
    );
    handed_on!(
        classes_changed,
        StorageClass,
        classes,
        |world: &mut Self, now, object| world.border.class_applied(&mut world.engine, now, object),
        |world: &mut Self, now, (_, name): Key| world.border.class_deleted(&mut world.engine, now, &name)
    );
    handed_on!(
        csi_nodes_changed,
        CsiNode,
        csi_nodes,
        |world: &mut Self, now, object| world.border.csi_node_applied(&mut world.engine, now, object),
        |world: &mut Self, now, (_, name): Key| world.border.csi_node_deleted(&mut world.engine, now, &name)
    );
    handed_on!(
        drivers_changed,
        CsiDriver,
        drivers,
        |world: &mut Self, now, object| world.border.driver_applied(&mut world.engine, now, object),
        |world: &mut Self, now, (_, name): Key| world.border.driver_deleted(&mut world.engine, now, &name)
    );
    handed_on!(
        capacities_changed,
        StorageCapacity,
        capacities,
        |world: &mut Self, now, object| world.border.capacity_applied(&mut world.engine, now, &object),
        |world: &mut Self, now, (space, name): Key| world.border.capacity_deleted(
            &mut world.engine,
            now,
            &space,
            &name
        )
    );
    handed_on!(
        attachments_changed,
        Attachment,
        attachments,
        |world: &mut Self, now, object| world.border.attachment_applied(&mut world.engine, now, object),
        |world: &mut Self, now, (_, name): Key| world.border.attachment_deleted(
            &mut world.engine,
            now,
            &name
        )
    );
}
