//! Questions that came over HTTP, answered by the world between two turns.

use serde_json::json;

use crate::serve::{Answer, Ask, Question};
use crate::world::World;

impl Question {
    pub(super) fn answer_from(self, world: &World) {
        let answer = match &self.ask {
            Ask::Explain { job } => match world.explain(job) {
                Some(explanation) => Answer::Known(explanation),
                None => Answer::Unknown(format!("no pod or gang of this scheduler is called {job}")),
            },
            Ask::State => Answer::State(Box::new(world.engine().state().clone())),
            Ask::Jobs => Answer::Known(json!({ "version": 1, "jobs": world.jobs() })),
            Ask::Observe => {
                let (totals, last) = world.observed();
                Answer::Known(json!({ "version": 1, "totals": totals, "last": last.collect::<Vec<_>>() }))
            }
        };
        // Whoever asked may have gone.
        let _ = self.answer.send(answer);
    }

    pub(super) fn refuse(self, why: String) {
        let _ = self.answer.send(Answer::Unknown(why));
    }
}
