//! What each job may do on the links that it shares.
//!
//! Lanes follow from who is where in the plan, from the lanes they have and from what those were decided on: deciding
//! again gives the same.

mod choose;
mod cushion;
mod ground;
mod rotate;
mod shift;

use std::collections::BTreeMap;

pub(super) use ground::why_moved;

use super::draft::Draft;
use crate::id::JobId;
use crate::lane::{Follows, Lane};
use crate::policy::{Links, Policy};

pub(super) fn interleave(policy: &Policy, draft: &mut Draft<'_>) {
    let lanes = match policy.links {
        Links::Shared | Links::Ideal => BTreeMap::new(),
        Links::Weighted => everybody(draft, Follows::BytesSent),
        Links::Classes => everybody(draft, Follows::BytesLeft),
        Links::Shift => shift::turns(draft),
        Links::Chosen => choose::lanes(draft),
        Links::Rotated => rotate::turns(draft),
        Links::Cushioned => cushion::turns(draft),
    };
    draft.lanes = changes(draft.snapshot.lanes, &lanes);
}

/// The same for all that use links.
fn everybody(draft: &Draft<'_>, follows: Follows) -> BTreeMap<JobId, Lane> {
    let flows = draft.meetings.flows().filter(|(_, flow)| !flow.is_local());
    flows.map(|(job, _)| (job, Lane { follows, ..Lane::default() })).collect()
}

fn changes(before: &BTreeMap<JobId, Lane>, after: &BTreeMap<JobId, Lane>) -> Vec<(JobId, Lane)> {
    let given_up = before.keys().filter(|job| !after.contains_key(job)).map(|job| (*job, Lane::default()));
    let new =
        after.iter().filter(|(job, lane)| before.get(job) != Some(lane)).map(|(job, lane)| (*job, *lane));
    let mut changes: Vec<(JobId, Lane)> = given_up.chain(new).collect();
    changes.sort_unstable();
    changes
}
