//! Who does not use what it has beyond its least gives that back, whether somebody waits for it or not.
//!
//! How much that is, its reports tell (`Job::idle`); it does not come to have more again before it uses nearly all of what it
//! has left. Whose size is a matter of the timetable has what its deadline needs.

use std::sync::Arc;

use super::{Extras, PAUSE, TIMES_THE_COST};
use crate::decide::admit::Rules;
use crate::decide::draft::Draft;
use crate::decide::snapshot::Snapshot;
use crate::model::id::JobId;
use crate::model::plan::Assignment;
use crate::model::policy::Sizing;

pub(in crate::decide) fn give_back_what_is_idle<'a>(rules: &Rules<'a>, draft: &mut Draft<'a>) {
    let Snapshot { elastic, plan, jobs, now, .. } = *draft.snapshot;
    let idle =
        elastic.iter().filter(|id| rules.sizing != Sizing::Least && jobs[**id].idle.enough().is_some());
    let unbooked: Vec<JobId> =
        idle.copied().filter(|id| !draft.is_changed(*id) && !draft.timetable.governs(*id)).collect();
    for id in unbooked {
        let Some((gang, held)) = Extras::of(id, &jobs[id]).zip(plan.get(id)) else { continue };
        let Some(smaller) = smaller(draft, &gang, held) else { continue };
        match gang.job.ripe(PAUSE).filter(|rested| *rested > now) {
            Some(rested) => draft.wake = draft.wake.into_iter().chain([rested]).min(),
            None => drop(draft.resize(id, &gang.job.spec, held, Arc::new(smaller))),
        }
    }
}

/// The gang without what it does not use; `None` if it needs all, or is done before that is of use.
fn smaller<'a>(draft: &Draft<'a>, gang: &Extras<'a>, held: &Arc<Assignment>) -> Option<Assignment> {
    let enough = gang.job.idle.enough()?.max(gang.least());
    let count = gang.members(held).saturating_sub(enough) / gang.unit();
    let left = gang.job.time_left(draft.snapshot.now);
    let ends_soon = left.is_some_and(|left| left <= gang.cost().times(TIMES_THE_COST));
    let may = count > 0 && !ends_soon && gang.may_change(draft.snapshot, held);
    may.then(|| gang.without(draft.snapshot.cluster, held, count)).flatten()
}
