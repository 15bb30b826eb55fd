//! Queues: parents exist and lead to the root, and users have their standing.

use std::collections::BTreeMap;

use metronome_core::model::cluster::Name;
use metronome_core::model::id::{Id, IdVec, QueueId};
use metronome_core::model::policy::Weights;
use metronome_core::model::queue::{Queue, QueueUser};
use metronome_core::model::units::{Cpu, Gpus, Memory, Resources, Share};

use super::Named;
use super::policies::weights;
use crate::near::meant_or_known;
use crate::scenario::documents::{QueueSpec, ResourcesShape};
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{Placed, Text, name, quantity, some_quantity, whole, word};

/// What is above all queues; it needs no document and cannot have one.
const ROOT: &str = "root";
const DEFAULT: &str = "default";

/// Standing of a user that no queue names.
pub(super) const NORMAL_USER: Share = Share(500_000);

const STANDINGS: [(&str, Share); 3] = [("high", Share::WHOLE), ("normal", NORMAL_USER), ("low", Share::NONE)];

#[derive(Debug)]
pub(super) struct Queues {
    list: IdVec<QueueId, Queue>,
    ids: BTreeMap<Name, QueueId>,
}

impl Queues {
    /// Queues that are there already.
    pub(super) fn known(list: &IdVec<QueueId, Queue>) -> Self {
        let ids = list.iter().map(|(id, queue)| (queue.name.clone(), id)).collect();
        Self { list: list.clone(), ids }
    }

    pub(super) fn find(&self, name: &str) -> Option<QueueId> {
        self.ids.get(name).copied()
    }

    /// The queue of that name; or what is wrong, and a hint.
    pub(super) fn for_jobs(&self, name: &str) -> Result<QueueId, (String, String)> {
        self.find(name).ok_or_else(|| (format!("there is no queue {}", quoted(name)), self.near(name)))
    }

    fn near(&self, name: &str) -> String {
        meant_or_known(name, self.list.values().map(|queue| &*queue.name))
    }

    /// How much a user counts there.
    pub(super) fn standing(&self, queue: QueueId, user: Option<&str>) -> Share {
        let users = &self.list[queue].users;
        let named = user.and_then(|user| users.iter().find(|known| &*known.name == user));
        named.map_or(NORMAL_USER, |user| user.priority)
    }

    pub(super) fn into_list(self) -> IdVec<QueueId, Queue> {
        self.list
    }
}

/// Queue 0 is `default`, declared or not; the others follow in the order of appearance.
pub(super) fn queues(documents: &[Named<QueueSpec>]) -> Result<Queues, Problem> {
    let mut ids = BTreeMap::from([(Name::from(DEFAULT), QueueId(0))]);
    for document in documents {
        if document.name() == ROOT {
            let message = format!("`{ROOT}` is above all queues and has no document");
            return Err(document.metadata.name.problem(message));
        }
        let next = QueueId::from_index(ids.len());
        ids.entry(Name::from(document.name())).or_insert(next);
    }
    let mut list: IdVec<QueueId, Queue> = (0..ids.len()).map(|_| Queue::open(DEFAULT)).collect();
    let mut queues = Queues { list: IdVec::new(), ids };
    for document in documents {
        list[queues.ids[document.name()]] = queue(document, &queues)?;
    }
    queues.list = list;
    check_parents(documents, &queues)?;
    check_quotas(documents, &queues)?;
    Ok(queues)
}

/// Queues inside another together may call their own no more than it does.
fn check_quotas(documents: &[Named<QueueSpec>], queues: &Queues) -> Result<(), Problem> {
    for document in documents {
        let id = queues.ids[document.name()];
        let Some(own) = queues.list[id].quota else { continue };
        let inside = queues.list.values().filter(|queue| queue.parent == Some(id));
        let theirs: Resources =
            inside.filter_map(|queue| queue.quota).map(|quota| named(quota, Resources::NONE)).sum();
        if !theirs.fits_in(own) {
            let message = format!("the quotas inside {} exceed its own", quoted(document.name()));
            return Err(document.at().problem(message).with_hint(format!("they come to {theirs}")));
        }
    }
    Ok(())
}

fn queue(document: &Named<QueueSpec>, queues: &Queues) -> Result<Queue, Problem> {
    let spec = &document.spec;
    let parent = spec.parent.as_ref().filter(|parent| parent.value != ROOT);
    Ok(Queue {
        name: Name::from(document.name()),
        parent: parent.map(|parent| find_parent(parent, queues)).transpose()?,
        weight: spec.weight.as_ref().map_or(Ok(1), |weight| whole(weight, 1..=1_000_000))? as u32,
        quota: spec.quota.as_ref().map(quota).transpose()?,
        limit: limit(document)?,
        lends: spec.lends.unwrap_or(true),
        kept: None,
        borrows: spec.borrows.unwrap_or(true),
        gives_back: true,
        users: spec
            .users
            .iter()
            .map(|user| standing(&user.name, user.priority.as_ref(), user.limit.as_ref()))
            .collect::<Result<_, _>>()?,
        order: spec.order.as_ref().map(|shape| weights(shape, Weights::DEFAULT)).transpose()?,
        history: spec.history.as_ref().map(|half| some_quantity(half, "the half-life")).transpose()?,
    })
}

/// The most a queue may hold, which is no less than what it may call its own.
fn limit(document: &Named<QueueSpec>) -> Result<Option<Resources>, Problem> {
    let QueueSpec { quota: own, limit: most, .. } = &document.spec;
    let Some(limit) = most.as_ref().map(quota).transpose()? else { return Ok(None) };
    let own = own.as_ref().map(quota).transpose()?;
    if own.is_some_and(|own| !named(own, limit).fits_in(limit)) {
        let message = format!("queue {} may hold less than its quota", quoted(document.name()));
        return Err(document.at().problem(message).with_hint("the limit is at least the quota"));
    }
    Ok(Some(limit))
}

/// Of a quota what a limit bounds, too.
fn named(quota: Resources, limit: Resources) -> Resources {
    let known = |amount: u64, limit: u64| if amount == u64::MAX { limit } else { amount };
    Resources {
        cpu: Cpu(known(quota.cpu.0, limit.cpu.0)),
        memory: Memory(known(quota.memory.0, limit.memory.0)),
        gpus: Gpus(known(quota.gpus.0, limit.gpus.0)),
    }
}

fn find_parent(parent: &Text, queues: &Queues) -> Result<QueueId, Problem> {
    queues.find(&parent.value).ok_or_else(|| {
        let known = queues.ids.keys().map(|name| &**name).chain([ROOT]);
        parent
            .problem(format!("there is no queue {}", quoted(&parent.value)))
            .with_hint(meant_or_known(&parent.value, known))
    })
}

fn standing(
    user: &Text,
    priority: Option<&Text>,
    limit: Option<&ResourcesShape>,
) -> Result<QueueUser, Problem> {
    let priority = priority.map_or(Ok(NORMAL_USER), |text| word(text, "priority", &STANDINGS))?;
    let limit = limit.map(quota).transpose()?;
    Ok(QueueUser { name: Name::from(name(user)?), priority, limit })
}

/// What a quota does not name is not bounded by it.
fn quota(shape: &ResourcesShape) -> Result<Resources, Problem> {
    let Resources { cpu, memory, gpus } = Resources::UNBOUNDED;
    Ok(Resources {
        cpu: shape.cpu.as_ref().map_or(Ok(cpu), quantity)?,
        memory: shape.memory.as_ref().map_or(Ok(memory), quantity)?,
        gpus: shape.gpus.as_ref().map_or(Ok(gpus), quantity)?,
    })
}

/// Every queue reaches the root in as many steps as there are queues, or never.
fn check_parents(documents: &[Named<QueueSpec>], queues: &Queues) -> Result<(), Problem> {
    let mut sound = vec![false; queues.list.len()];
    for document in documents {
        let mut path = Vec::new();
        let mut next = queues.find(document.name());
        while let Some(queue) = next.filter(|queue| !sound[queue.index()]) {
            if path.len() > queues.list.len() {
                let place = document.spec.parent.as_ref().map_or_else(|| document.at(), Placed::at);
                return Err(place.problem(format!("queue {} is above itself", quoted(document.name()))));
            }
            path.push(queue);
            next = queues.list[queue].parent;
        }
        path.into_iter().for_each(|queue| sound[queue.index()] = true);
    }
    Ok(())
}
