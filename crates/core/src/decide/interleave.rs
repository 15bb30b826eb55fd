//! What each job may do on the links that it shares.
//!
//! Traffic policies follow from who is where in the plan, from the traffic policies they have and from what those were decided on: deciding
//! again gives the same.

mod choose;
mod cushion;
mod inputs;
mod rotate;
mod shift;

use std::collections::BTreeMap;

pub(super) use inputs::why_moved;

use super::draft::Draft;
use crate::model::id::JobId;
use crate::model::policy::{Links, Policy};
use crate::traffic::{Follows, TrafficPolicy};

pub(super) fn interleave(policy: &Policy, draft: &mut Draft<'_>) {
    let traffic = match policy.links {
        Links::Shared | Links::Ideal => BTreeMap::new(),
        Links::Weighted => everybody(draft, Follows::BytesSent),
        Links::Classes => everybody(draft, Follows::BytesLeft),
        Links::Shift => shift::turns(draft),
        Links::Chosen => choose::traffic(draft),
        Links::Rotated => rotate::turns(draft),
        Links::Cushioned => cushion::turns(draft),
    };
    draft.traffic = changes(draft.snapshot.plan.traffic(), &traffic);
}

/// The same for all that use links.
fn everybody(draft: &Draft<'_>, follows: Follows) -> BTreeMap<JobId, TrafficPolicy> {
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
