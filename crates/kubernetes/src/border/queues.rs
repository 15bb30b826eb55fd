//! Queues: of the objects that declare them, those that make sense together are in force.
//!
//! An object that makes no sense, by itself or because the queue would lie in itself or in one that there is not, changes
//! nothing: what was last in force of it stays so, and what is wrong with it is to be told. It is tried again whenever
//! another changes, so that it does not matter in which order they come.
//!
//! A queue that is gone lets nobody in. Those who run there go on, as in an open queue of its name.

use std::collections::{BTreeMap, BTreeSet};

use metronome_core::engine::{Engine, Event};
use metronome_core::model::cluster::Name;
use metronome_core::model::id::QueueId;
use metronome_core::model::queue;
use metronome_core::model::units::{Instant, Share};

use crate::deed::ObjectRef;
use crate::objects::{Described, Doors, Queue, QueueKind, ROOT};

/// The queue of who names none. It is there, and open, unless an object of its name says otherwise.
pub const DEFAULT: &str = "default";

/// How much a user counts of whom a queue says nothing.
const NORMAL: Share = Share(Share::WHOLE.0 / 2);

#[derive(Debug)]
pub struct Queues {
    /// As the API server has them.
    objects: BTreeMap<(Name, QueueKind), Queue>,
    in_force: BTreeMap<Name, Described>,
    /// Of queues that are in force, and of those that are gone while somebody may still run there.
    ids: BTreeMap<Name, QueueId>,
    /// What is wrong with objects that are not in force.
    refused: BTreeMap<Name, String>,
    told: BTreeMap<Name, String>,
}

impl Queues {
    /// The engine has the default queue and no other.
    pub fn new() -> Self {
        let default = Name::from(DEFAULT);
        Self {
            objects: BTreeMap::new(),
            in_force: BTreeMap::from([(default.clone(), Described::open(DEFAULT))]),
            ids: BTreeMap::from([(default, QueueId(0))]),
            refused: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    pub fn apply(&mut self, queue: Queue) {
        if queue.kind == QueueKind::Own || &**queue.name() != ROOT {
            self.objects.insert((queue.name().clone(), queue.kind), queue);
        }
    }

    pub fn remove(&mut self, kind: QueueKind, name: &Name) {
        self.objects.remove(&(name.clone(), kind));
    }

    /// All of a kind that there are.
    pub fn replace(&mut self, kind: QueueKind, all: Vec<Queue>) {
        self.objects.retain(|(_, of), _| *of != kind);
        all.into_iter().for_each(|queue| self.apply(queue));
    }

    /// Puts in force what makes sense, and forgets what is gone; true if anything is different now.
    pub fn settle(&mut self, engine: &mut Engine, now: Instant) -> bool {
        let gone = self.forget_the_gone(engine, now);
        let wanted = self.wanted();
        let mut came = false;
        while self.put_in_force_what_fits(engine, now, &wanted) {
            came = true;
        }
        self.refused = self.what_is_wrong();
        gone || came
    }

    fn forget_the_gone(&mut self, engine: &mut Engine, now: Instant) -> bool {
        let declared: BTreeSet<&Name> = self.objects.keys().map(|(name, _)| name).collect();
        let known = self.in_force.keys().filter(|name| &***name != DEFAULT);
        let gone: Vec<Name> = known.filter(|name| !declared.contains(name)).cloned().collect();
        for name in &gone {
            self.in_force.remove(name);
            let described = queue::Queue::open(name);
            engine.observe(now, Event::Queue { queue: self.ids[name], described });
        }
        !gone.is_empty()
    }

    /// What is said of each queue, by itself well said. Of two objects with one name only the first is heeded.
    fn wanted(&self) -> BTreeMap<Name, Described> {
        let mut wanted = BTreeMap::from([(Name::from(DEFAULT), Described::open(DEFAULT))]);
        for queue in self.heeded().filter(|queue| &**queue.name() != ROOT) {
            match &queue.described {
                Ok(described) => wanted.insert(queue.name().clone(), described.clone()),
                Err(_) => wanted.remove(queue.name()),
            };
        }
        wanted
    }

    fn heeded(&self) -> impl Iterator<Item = &Queue> {
        let mut last: Option<&Name> = None;
        self.objects.values().filter(move |queue| last.replace(queue.name()) != Some(queue.name()))
    }

    /// One round over all that are not in force as they should be.
    fn put_in_force_what_fits(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        wanted: &BTreeMap<Name, Described>,
    ) -> bool {
        let mut any = false;
        for (name, described) in wanted {
            if self.in_force.get(name) != Some(described) && self.has_a_place(name, described).is_ok() {
                self.put_in_force(engine, now, name, described);
                any = true;
            }
        }
        any
    }

    fn put_in_force(&mut self, engine: &mut Engine, now: Instant, name: &Name, described: &Described) {
        let parent = described.parent.as_ref().map(|parent| self.ids[parent]);
        let queue = queue::Queue { parent, ..described.queue.clone() };
        self.describe(engine, now, name, queue);
        self.in_force.insert(name.clone(), described.clone());
    }

    fn describe(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        name: &Name,
        described: queue::Queue,
    ) -> QueueId {
        let id = match self.ids.get(name).copied().or_else(|| self.vacate(engine)) {
            Some(queue) => {
                engine.observe(now, Event::Queue { queue, described });
                queue
            }
            None => engine.add_queue(now, described),
        };
        self.ids.insert(name.clone(), id);
        id
    }

    /// The id of a queue that is gone, in which nobody and nothing is left.
    fn vacate(&mut self, engine: &Engine) -> Option<QueueId> {
        let state = engine.state();
        let is_used = |id: QueueId| {
            state.jobs.iter().any(|(_, job)| job.spec.queue == id)
                || state.queues.iter().any(|(_, queue)| queue.parent == Some(id))
        };
        let mut gone = self.ids.iter().filter(|(name, _)| !self.in_force.contains_key(*name));
        let (name, id) = gone.find(|(_, id)| !is_used(**id)).map(|(name, id)| (name.clone(), *id))?;
        self.ids.remove(&name);
        Some(id)
    }

    /// Whether a queue may lie where it says, or why not.
    fn has_a_place(&self, name: &Name, described: &Described) -> Result<(), String> {
        let Some(parent) = &described.parent else { return Ok(()) };
        if self.lineage(parent).any(|above| above == name) {
            return Err(format!("its parent {parent:?} lies in it; name another parent"));
        }
        if !self.in_force.contains_key(parent) {
            return Err(format!(
                "there is no queue {parent:?} for it to lie in; create it, or name another parent"
            ));
        }
        Ok(())
    }

    /// A queue, the one it lies in, and so on to the outermost.
    fn lineage<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Name> {
        let above = |name: &&'a Name| self.in_force.get(*name)?.parent.as_ref();
        std::iter::successors(Some(name), above).take(self.in_force.len() + 1)
    }

    fn what_is_wrong(&self) -> BTreeMap<Name, String> {
        let wrong = self.heeded().filter_map(|queue| {
            let name = queue.name();
            let why = match &queue.described {
                _ if &**name == ROOT => format!("{ROOT:?} is above all queues and has no object; delete it"),
                Err(complaint) => complaint.to_string(),
                Ok(described) if self.in_force.get(name) == Some(described) => return None,
                Ok(described) => self.has_a_place(name, described).err()?,
            };
            Some((name.clone(), why))
        });
        wrong.collect()
    }

    /// What is wrong and was not told yet, with the object it is wrong with, and whether an earlier word of it holds.
    pub fn complaints(&mut self) -> Vec<(ObjectRef, String)> {
        let new = self.refused.iter().filter(|(name, why)| self.told.get(*name) != Some(why));
        let reference =
            |name: &Name| self.heeded().find(|queue| queue.name() == name).map(|queue| &queue.reference);
        let complaints = new.filter_map(|(name, why)| {
            let holds = if self.in_force.contains_key(name) {
                "what it said before stays in force"
            } else {
                "it is not in force"
            };
            Some((reference(name)?.clone(), format!("cannot be as it says: {why}; until then {holds}")))
        });
        let complaints = complaints.collect();
        self.told.clone_from(&self.refused);
        complaints
    }

    pub fn is_known(&self, name: &str) -> bool {
        self.in_force.contains_key(name)
    }

    /// The queue of that name for who does not run yet, or why it takes nobody in.
    pub fn admits(&self, name: &Name) -> Result<QueueId, String> {
        match (self.ids.get(name).filter(|_| self.is_known(name)), self.refused.get(name)) {
            (Some(id), _) => match self.lineage(name).find(|above| self.is_closed(above)) {
                Some(closed) => Err(format!("queue {closed:?} is closed")),
                None => Ok(*id),
            },
            (None, Some(why)) => Err(format!("queue {name:?} cannot be as its object says: {why}")),
            (None, None) => Err(format!("there is no queue {name:?}")),
        }
    }

    fn is_closed(&self, name: &Name) -> bool {
        self.in_force.get(name).is_some_and(|described| described.doors == Doors::Closed)
    }

    /// The queue of that name for who runs already, whether or not it is still there.
    pub fn holds(&mut self, engine: &mut Engine, now: Instant, name: &Name) -> QueueId {
        match self.ids.get(name) {
            Some(id) => *id,
            None => self.describe(engine, now, name, queue::Queue::open(name)),
        }
    }

    /// How much a user counts there.
    pub fn standing(&self, name: &Name, user: Option<&str>) -> Share {
        let users =
            self.in_force.get(name).map(|described| described.queue.users.as_slice()).unwrap_or_default();
        let named = users.iter().find(|known| Some(&*known.name) == user);
        named.map_or(NORMAL, |user| user.priority)
    }

    /// Objects of our own that are in force.
    pub fn own(&self) -> impl Iterator<Item = (&ObjectRef, QueueId)> {
        let own = self.heeded().filter(|queue| queue.kind == QueueKind::Own);
        own.filter(|queue| self.is_known(queue.name()))
            .map(|queue| (&queue.reference, self.ids[queue.name()]))
    }
}

impl Default for Queues {
    fn default() -> Self {
        Self::new()
    }
}
