//! Jobs are created at once, and whoever is in charge of them makes their pods: how soon are all placed, and what does
//! that cost with everything that runs for it?

use std::time::Instant;

use anyhow::{Context, Result};

use crate::cost::Mark;
use crate::figures::{Figure, Figures};
use crate::jobs::Jobs;
use crate::options::Sizes;
use crate::schedulers::Contestant;
use crate::sightings::Sight;
use crate::stage::Stage;

/// Events about thousands of pods trail behind for a while, and are part of the cost.
const LOOKS: u32 = 120;

pub(super) async fn trial(stage: &Stage, contestant: &Contestant, sizes: &Sizes) -> Result<Figures> {
    let members = sizes.job_members;
    let mut cast = contestant.launch_with_controllers(stage.plane()).await?;
    let jobs = |name: &str, count: usize| Jobs::of(contestant.scheduler, name, count, members);
    // One job first: then everything is up and listens.
    let binds = stage.watch(Sight::Bound).await;
    jobs("first", 1).create(&stage.client()).await.context("create a job")?;
    binds.until(members, &mut cast).await.context("see the first job placed")?;
    stage.until_running(members as u64).await;
    drop(binds);

    let binds = stage.watch(Sight::Bound).await;
    let before = Mark::settled(stage, &mut cast).await?;
    let (pods, started) = (sizes.jobs * members, stage.started());
    let begin = Instant::now();
    jobs("job", sizes.jobs).create(&stage.client()).await.context("create jobs")?;
    let span = binds.until(pods, &mut cast).await?;
    stage.until_running((pods + members) as u64).await;
    let settled = Mark::settled_within(LOOKS, stage, &mut cast).await?;
    binds.check_room()?;
    let tail = settled.time - span.last;
    let cost = settled.since(before);
    let others = sizes.jobs as u64 + stage.started() - started;
    let figures = Figures::of(&cost, pods)
        .with_calls(&cost, sizes.jobs, others)
        .with_span(span, begin)
        .with_seconds(Figure::Tail, tail);
    Ok(figures)
}
