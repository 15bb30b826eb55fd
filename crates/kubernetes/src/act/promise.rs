//! An outcome that is owed. Whatever happens to the one who owes it, it is sent, and sent once.

use tokio::sync::mpsc::UnboundedSender;

use crate::deed::{Bound, Outcome, Seat, Ticket};

/// What became of a deed, before it is known whose.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Result {
    Bound(Vec<(Seat, Bound)>),
    IntentTaken,
    Evicted,
    EvictedInPart(String),
    NotEvicted(String),
    Deleted,
    Resized,
    NotResized(String),
    Made,
    NotMade(String),
    Written,
    GivenUp(String),
}

#[derive(Debug)]
pub(super) struct Promise {
    ticket: Ticket,
    outcomes: Option<UnboundedSender<Outcome>>,
}

impl Promise {
    pub(super) fn new(ticket: Ticket, outcomes: UnboundedSender<Outcome>) -> Self {
        Self { ticket, outcomes: Some(outcomes) }
    }

    pub(super) fn keep(mut self, result: Result) {
        self.send(result);
    }

    fn send(&mut self, result: Result) {
        if let Some(outcomes) = self.outcomes.take() {
            // Nobody may be there to hear it any more.
            let _ = outcomes.send(result.of(self.ticket));
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.send(Result::GivenUp("it was stopped before it was done".into()));
    }
}

impl Result {
    fn of(self, ticket: Ticket) -> Outcome {
        match self {
            Self::Bound(members) => Outcome::Bound { ticket, members },
            Self::IntentTaken => Outcome::IntentTaken { ticket },
            Self::Evicted => Outcome::Evicted { ticket },
            Self::EvictedInPart(refusal) => Outcome::EvictedInPart { ticket, refusal },
            Self::NotEvicted(refusal) => Outcome::NotEvicted { ticket, refusal },
            Self::Deleted => Outcome::Deleted { ticket },
            Self::Resized => Outcome::Resized { ticket },
            Self::NotResized(refusal) => Outcome::NotResized { ticket, refusal },
            Self::Made => Outcome::Made { ticket },
            Self::NotMade(refusal) => Outcome::NotMade { ticket, refusal },
            Self::Written => Outcome::Written { ticket },
            Self::GivenUp(why) => Outcome::GivenUp { ticket, why },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    #[test]
    fn an_outcome_is_sent_exactly_once() {
        let (outcomes, mut heard) = mpsc::unbounded_channel();
        Promise::new(Ticket(1), outcomes.clone()).keep(Result::Deleted);
        drop(Promise::new(Ticket(2), outcomes));
        assert_eq!(heard.blocking_recv(), Some(Outcome::Deleted { ticket: Ticket(1) }));
        assert!(matches!(heard.blocking_recv(), Some(Outcome::GivenUp { ticket: Ticket(2), .. })));
        assert_eq!(heard.blocking_recv(), None);
    }
}
