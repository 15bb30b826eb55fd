//! A scheduler starts in a cluster full of bound pods: how soon does it bind the one that waits?

use std::time::Instant;

use anyhow::Result;

use crate::cost::Mark;
use crate::figures::{Figure, Figures};
use crate::options::Sizes;
use crate::schedulers::Contestant;
use crate::sightings::Sight;
use crate::stage::Stage;
use crate::work::{Ask, Work};

/// The bound pods name the `schedulerName` that all serve, so they are those of whoever is restarted.
pub(super) async fn stage(sizes: &Sizes, contestants: &[Contestant]) -> Result<Stage> {
    let contestants: Vec<&Contestant> = contestants.iter().collect();
    let stage = Stage::set(sizes.nodes, &contestants).await?;
    stage.create(&Work::bound(sizes.bound, sizes.nodes)).await?;
    Ok(stage)
}

pub(super) async fn trial(stage: &Stage, contestant: &Contestant, round: usize) -> Result<Figures> {
    let name = format!("waiting-{round}-{}", contestant.scheduler);
    stage.create(&Work::singles(contestant.scheduler, &name, 1, Ask::Little)).await?;
    let binds = stage.watch(Sight::BoundAlone(format!("{name}-0"))).await;
    let before = Mark::before(stage).await?;
    let begin = Instant::now();
    let mut scheduler = stage.launch(contestant)?;
    let span = binds.until(1, &mut scheduler).await?;
    let cost = Mark::settled(stage, &mut scheduler).await?.since(before);
    Ok(Figures::of(&cost, 1).with_seconds(Figure::All, span.last - begin))
}
