//! Queues, as the world describes them: they come and change while jobs wait and run in them.

use super::Engine;
use super::index::Index;
use super::state::State;
use crate::model::id::QueueId;
use crate::model::queue::{Holdings, Queue, has_valid_parent};

impl Engine {
    pub(super) fn queue(&mut self, id: QueueId, described: Queue) {
        let queues = &mut self.state.queues;
        let known = queues.get(id) == Some(&described);
        if known || !has_valid_parent(queues, id, &described) || queues.put(id, described).is_none() {
            return;
        }
        self.index.recount_queues(&self.state);
        // Whoever was held up by what queues may hold is looked at anew.
        self.index.room.grow();
        self.state.plan.timetable.made = None;
        self.state.dirty = true;
    }

    /// Whether what queues hold, counted from nothing, is what was kept, and what the checker has in its books.
    pub(super) fn queues_are_right(&self) -> bool {
        let anew = held(&self.state);
        anew == self.index.held && anew.by_queue() == self.index.checker.queues()
    }
}

impl Index {
    /// Where queues lie, and whom they bound, has changed.
    fn recount_queues(&mut self, state: &State) {
        self.held = held(state);
        self.checker.queues_changed(&state.queues, &state.jobs);
    }
}

fn held(state: &State) -> Holdings {
    let mut held = Holdings::nothing(state.queues.len());
    for (id, assignment) in state.plan.iter() {
        held.add(&state.queues, &state.jobs[id].spec, assignment.total());
    }
    held
}
