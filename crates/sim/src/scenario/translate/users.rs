//! Users that own drawn jobs, as written.

use metronome_core::model::cluster::Name;
use metronome_core::model::id::QueueId;
use metronome_core::model::units::Share;
use serde_saphyr::Spanned;

use super::World;
use super::jobs;
use crate::scenario::documents::DrawnUserShape;
use crate::scenario::error::{Problem, quoted};
use crate::scenario::users::{Owner, Owners};
use crate::scenario::values::{Placed, name, share};

/// Nobody in particular, in the default queue, where none are listed.
pub(super) fn owners(
    written: Option<&Spanned<Vec<DrawnUserShape>>>,
    world: &World<'_>,
) -> Result<Owners, Problem> {
    let Some(written) = written else {
        let standing = world.queues.standing(QueueId(0), None);
        return Ok(Owners(vec![Owner { name: None, share: Share::WHOLE, queue: QueueId(0), standing }]));
    };
    let mut seen = Vec::new();
    let mut owners = Vec::new();
    for user in &written.value {
        let owner = owner(user, world)?;
        if seen.contains(&(&user.name.value, owner.queue)) {
            return Err(user.name.problem(format!("user {} is given twice", quoted(&user.name.value))));
        }
        seen.push((&user.name.value, owner.queue));
        owners.push(owner);
    }
    let sum: u64 = owners.iter().map(|owner| u64::from(owner.share.0)).sum();
    if sum != u64::from(Share::WHOLE.0) {
        let sum = sum as f64 / f64::from(Share::WHOLE.0);
        return Err(written.problem(format!("the shares of the users sum to {sum} instead of 1")));
    }
    Ok(Owners(owners))
}

fn owner(user: &DrawnUserShape, world: &World<'_>) -> Result<Owner, Problem> {
    let queue = jobs::queue(user.queue.as_ref(), world.queues)?;
    let name = name(&user.name)?;
    let standing = world.queues.standing(queue, Some(name));
    Ok(Owner { name: Some(Name::from(name)), share: share(&user.share)?, queue, standing })
}
