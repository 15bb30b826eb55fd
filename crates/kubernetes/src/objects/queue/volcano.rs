//! Volcano's `Queue`.
//!
//! | Volcano | here |
//! |---|---|
//! | `weight` | weight |
//! | `capability` | limit |
//! | `deserved` | quota: lent, and taken back |
//! | `guarantee.resource` | what of the quota is never lent; without `deserved`, the quota itself |
//! | `reclaimable: false` | gives nothing back of what it holds beyond its own |
//! | `parent` | parent; `root` is above all |
//! | `status.state`, `Closed` or `Closing` | takes nobody in who does not run yet |

use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Cpu, Gpus, Memory, Resources};

use super::{Described, Doors, amounts, parent};
use crate::objects::fields::{Complaint, Fields};

pub(super) fn read(name: &str, body: &Fields<'_>) -> Result<Described, Complaint> {
    let spec = body.at("spec");
    let deserved = amounts(&spec.at("deserved"))?;
    let guarantee = amounts(&spec.at("guarantee").at("resource"))?;
    let queue = Queue {
        weight: spec.at("weight").weight()?,
        quota: deserved.map(|deserved| at_least(deserved, guarantee)).or(guarantee),
        limit: amounts(&spec.at("capability"))?,
        kept: guarantee,
        gives_back: spec.at("reclaimable").flag()?.unwrap_or(true),
        ..Queue::open(name)
    };
    Ok(Described { parent: parent(spec.at("parent").text()?), doors: doors(&body.at("status"))?, queue })
}

/// What is guaranteed is its own, too, whatever it is said to deserve.
fn at_least(deserved: Resources, guarantee: Option<Resources>) -> Resources {
    let Some(guarantee) = guarantee else { return deserved };
    let more = |deserved: u64, guarantee: u64| {
        if guarantee == u64::MAX { deserved } else { deserved.max(guarantee) }
    };
    Resources {
        cpu: Cpu(more(deserved.cpu.0, guarantee.cpu.0)),
        memory: Memory(more(deserved.memory.0, guarantee.memory.0)),
        gpus: Gpus(more(deserved.gpus.0, guarantee.gpus.0)),
    }
}

/// One of which nothing is said yet is about to be opened by Volcano's own controllers, or has none.
fn doors(status: &Fields<'_>) -> Result<Doors, Complaint> {
    let state = status.at("state").text()?;
    Ok(match state.as_deref() {
        Some("Closed" | "Closing") => Doors::Closed,
        _ => Doors::Open,
    })
}
