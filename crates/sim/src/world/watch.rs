//! What is seen of links and loops, and how soon the engine answers.
//!
//! The counters of links are read once a second, so a link that changes is known to have changed a second later. A loop
//! is known after some iterations: where it is noticeably other than was declared, the engine is told what it is.

use metronome_core::model::id::IdVec;
use metronome_core::model::profile::Profile;
use metronome_core::model::units::{Duration, Instant};
use metronome_core::network::{self, Pattern, Route};
use metronome_core::traffic::decision_inputs::Why;

use crate::outcome::{Change, Reconfigured};

/// How long it takes until it is seen that a link has changed.
pub(super) const LINK_SEEN_AFTER: Duration = Duration::SECOND;

/// So many iterations, as they take alone, tell what a loop does.
pub(super) const ITERATIONS_SEEN: u64 = 20;

/// A loop that computes or sends so much more or less than declared is another one.
const NOTICEABLE: f64 = 0.05;

#[derive(Debug, Default)]
pub(super) struct Watch {
    /// When links changed of which the engine has heard, and has not decided since.
    unanswered: Vec<Instant>,
    pub(super) answered: Vec<Duration>,
    pub(super) reconfigured: Reconfigured,
    /// The same one by one, where somebody keeps it.
    pub(super) changes: Vec<Change>,
}

impl Watch {
    /// The engine hears of a link that changed a while ago.
    pub(super) fn told_of_link(&mut self, changed: Instant) {
        self.unanswered.push(changed);
    }

    /// The engine has decided, and that is why it changed something for running jobs.
    pub(super) fn decided(&mut self, now: Instant, why: impl Iterator<Item = Why>) {
        self.answered.extend(self.unanswered.drain(..).map(|since| now.since(since)));
        why.for_each(|why| self.reconfigured.add(why));
    }
}

/// Whether a loop is not what was declared. A job of which nothing was declared is watched, too; where only its compute was,
/// there is nothing to put right.
pub(super) fn is_other(declared: Option<&Profile>, is: &Pattern) -> bool {
    let Some(declared) = declared else { return true };
    let declared = Some(declared).and_then(Profile::exchange).and_then(|exchange| Pattern::of(exchange).ok());
    declared.is_some_and(|declared| {
        differs(computes(&declared), computes(is)) || differs(declared.bytes(), is.bytes())
    })
}

fn computes(pattern: &Pattern) -> f64 {
    network::alone(pattern, &Route::nothing(), &IdVec::new()).as_secs_f64()
}

fn differs(declared: f64, is: f64) -> bool {
    (is - declared).abs() > NOTICEABLE * declared
}
