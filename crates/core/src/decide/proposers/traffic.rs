//! Traffic policies: what each job may do on the links that it shares.
//!
//! They follow from the places of jobs in the plan, from the policies that jobs have and from what those were decided
//! on: deciding again gives the same.

mod choose;
mod cushion;
mod rotate;
mod shift;

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::decide::ledger::{Basis, Entry, Ledger, Proposal};
use crate::decide::proposer::Proposer;
use crate::decide::view::View;
use crate::model::id::JobId;
use crate::model::policy::Links;
use crate::traffic::{Follows, TrafficPolicy};

/// Asked last, because traffic policies depend on the places that all jobs have in the end.
#[derive(Default)]
pub(in crate::decide) struct Traffic;

impl<'a> Proposer<'a> for Traffic {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        let mut basis = Basis::default();
        let draft = &ledger.draft;
        let traffic = match view.policy.links {
            Links::Shared | Links::Ideal => BTreeMap::new(),
            Links::Weighted => for_all_flows(draft, Follows::BytesSent),
            Links::Classes => for_all_flows(draft, Follows::BytesLeft),
            Links::Shift => shift::turns(draft),
            Links::Chosen => choose::traffic(ledger, &mut basis),
            Links::Rotated => rotate::turns(draft),
            Links::Cushioned => cushion::turns(draft),
        };
        let changes = changes(view.snapshot.plan.traffic(), &traffic);
        Some(Proposal::of(vec![Entry::Traffic(changes, basis)]))
    }
}

/// The same policy for all jobs that use links.
fn for_all_flows(draft: &Draft<'_>, follows: Follows) -> BTreeMap<JobId, TrafficPolicy> {
    let flows = draft.contention.flows().filter(|(_, flow)| !flow.is_local());
    flows.map(|(job, _)| (job, TrafficPolicy { follows, ..TrafficPolicy::default() })).collect()
}

fn changes(
    before: &BTreeMap<JobId, TrafficPolicy>,
    after: &BTreeMap<JobId, TrafficPolicy>,
) -> Vec<(JobId, TrafficPolicy)> {
    let given_up =
        before.keys().filter(|job| !after.contains_key(job)).map(|job| (*job, TrafficPolicy::default()));
    let new = after
        .iter()
        .filter(|(job, traffic)| before.get(job) != Some(traffic))
        .map(|(job, traffic)| (*job, *traffic));
    let mut changes: Vec<(JobId, TrafficPolicy)> = given_up.chain(new).collect();
    changes.sort_unstable();
    changes
}
