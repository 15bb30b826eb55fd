//! Drawn jobs of one process each, whose cores may be changed while they run.

use metronome_core::model::job::JobSpec;
use metronome_core::model::units::Share;
use serde_saphyr::Spanned;

use super::{World, chosen};
use crate::scenario::cores::Cores;
use crate::scenario::documents::{CpusShape, SerialShape, WorkloadSpec};
use crate::scenario::draw::Processes;
use crate::scenario::error::Problem;
use crate::scenario::values::{Placed, share};

pub(super) fn drawn(
    written: &Spanned<CpusShape>,
    spec: &WorkloadSpec,
    world: &World<'_>,
) -> Result<Processes, Problem> {
    if let Some(models) = &spec.models {
        return Err(models.problem("`models` are trained on GPUs, and jobs take `cpus`"));
    }
    if let Some(servers) = &spec.servers {
        return Err(servers.problem("`servers` are for jobs of several members, and jobs take `cpus`"));
    }
    let CpusShape { min, max, asks } = &written.value;
    let cores = chosen::cores(min.as_ref(), max, asks.as_ref())?;
    fits(cores, written, world)?;
    let (from, to) = spec.serial.as_ref().map_or(Ok((Share::NONE, Share::NONE)), serial)?;
    Ok(Processes { cores, serial: (from, to), topology: Cores::topology(world.cluster) })
}

/// At what is asked for: more is the scheduler's to give, where there is more.
fn fits(cores: Cores, written: &Spanned<CpusShape>, world: &World<'_>) -> Result<(), Problem> {
    let mut job = JobSpec::workers("", cores.role().gang, cores.role().shape.each);
    job.roles = vec![Cores { min: cores.asks, max: cores.asks, ..cores }.role()];
    job.topology = Cores::topology(world.cluster);
    match world.fit.refusal(&job, &world.gpu_types) {
        Some(why) => {
            Err(written.problem(format!("jobs of {} cores can never run: such a job {why}", cores.asks)))
        }
        None => Ok(()),
    }
}

fn serial(written: &Spanned<SerialShape>) -> Result<(Share, Share), Problem> {
    let SerialShape { from, to } = &written.value;
    let (least, most) = (share(from)?, share(to)?);
    match least > most {
        true => Err(to.problem("`from` is above `to`")),
        false => Ok((least, most)),
    }
}
