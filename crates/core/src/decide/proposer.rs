//! What a proposer is: from a read-only view and the ledger's requests to an optional proposal.

use super::ledger::{Ledger, Proposal};
use super::view::View;

/// One way to start waiting jobs or to improve the plan.
///
/// A proposer chooses what it looks at (a waiting job from the ledger's queue, running jobs, links) and returns the first
/// change that helps. In the ledger it may spend work, refuse requests and ask for wake-ups; what it tries in the draft it
/// puts back, except capacity that its proposal's `Entry::Start` names as taken. A proposer may remember what it found
/// out in this decision, never anything about another one.
pub(super) trait Proposer<'a> {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal>;
}

/// Which proposer is asked after a proposal was applied; after none, the next one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The same again: it may have more to propose.
    SameAgain,
    /// The first that serves waiting jobs: what has changed may let other jobs start.
    ServeAgain,
    /// The next: it proposes once in a decision.
    Next,
}
