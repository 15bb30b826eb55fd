//! Objects that declare a queue, ours or Volcano's, as the core describes queues.
//!
//! One that makes no sense is kept with a complaint. Who lies in whom is a matter of all queues together, and settled by
//! `border::queues`.

#[expect(unreachable_pub, reason = "what the derived schema makes inside itself")]
mod own;
mod volcano;

use std::sync::Arc;

use kube::api::{ApiResource, DynamicObject};

use metronome_core::model::cluster::Name;
use metronome_core::model::queue;
use metronome_core::model::units::{Cpu, Gpus, Memory, Resources};

use super::fields::{Complaint, Fields};
use super::meta::reference;
use crate::deed::ObjectRef;
use crate::rules::load::GPU;

pub use own::{
    Amounts, Quantity, Queue as OwnQueue, QueueSpec, QueueStatus, UserPriority, UserSpec, definition,
};

/// What is above all queues. It needs no object; Volcano makes one, which says nothing that counts here.
pub const ROOT: &str = "root";

/// Which API declares it. Where both declare a queue of one name, the first here is heeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueKind {
    /// `metronome.dev` Queue.
    Own,
    /// `scheduling.volcano.sh` Queue.
    Volcano,
}

/// A declared queue.
#[derive(Clone, Debug)]
pub struct Queue {
    pub kind: QueueKind,
    pub reference: ObjectRef,
    /// What it says, or why that cannot be.
    pub described: Result<Described, Complaint>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Described {
    /// The name of the queue it lies in.
    pub parent: Option<Name>,
    pub doors: Doors,
    /// Everything else; in none.
    pub queue: queue::Queue,
}

/// Whether a queue takes in who does not run yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doors {
    Open,
    Closed,
}

impl Described {
    /// A queue that holds nobody back.
    pub fn open(name: &str) -> Self {
        Self { parent: None, doors: Doors::Open, queue: queue::Queue::open(name) }
    }
}

impl Queue {
    pub fn read(kind: QueueKind, api: &ApiResource, object: &DynamicObject) -> Self {
        let reference = reference(api, &object.metadata);
        let body = Fields::of(&object.data);
        let described = match kind {
            QueueKind::Own => own::read(&reference.name, &body),
            QueueKind::Volcano => volcano::read(&reference.name, &body),
        };
        Self { kind, reference, described: described.and_then(may_hold_its_own) }
    }

    pub fn name(&self) -> &Name {
        &self.reference.name
    }
}

/// A limit below what a queue may call its own is a mistake, whichever of the two is meant.
fn may_hold_its_own(described: Described) -> Result<Described, Complaint> {
    let (quota, limit) = (described.queue.quota, described.queue.limit);
    let (Some(quota), Some(limit)) = (quota, limit) else { return Ok(described) };
    let exceeds = |quota: u64, limit: u64| quota != u64::MAX && quota > limit;
    let too_much = exceeds(quota.cpu.0, limit.cpu.0)
        || exceeds(quota.memory.0, limit.memory.0)
        || exceeds(quota.gpus.0, limit.gpus.0);
    if too_much { Err(Complaint::LimitBelowQuota) } else { Ok(described) }
}

/// Where a queue lies, if not outermost.
fn parent(named: Option<String>) -> Option<Name> {
    named.filter(|name| !name.is_empty() && name != ROOT).map(Arc::from)
}

/// What a list of resources says. What it does not name it does not bound; one that names nothing says nothing.
fn amounts(list: &Fields<'_>) -> Result<Option<Resources>, Complaint> {
    let mut said = Resources::UNBOUNDED;
    for (name, field) in list.entries() {
        let Some(amount) = field.quantity()? else { continue };
        match &*name {
            "cpu" => said.cpu = Cpu(amount.thousandths()),
            "memory" => said.memory = Memory(amount.whole()),
            GPU => said.gpus = Gpus::whole(amount.whole()),
            _ => {}
        }
    }
    Ok(Some(said).filter(|said| *said != Resources::UNBOUNDED))
}

#[cfg(test)]
mod tests;
