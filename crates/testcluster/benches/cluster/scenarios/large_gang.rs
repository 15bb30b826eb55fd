//! One large gang comes to a scheduler that has nothing else to do: how soon is it bound?

use std::time::Instant;

use anyhow::Result;

use crate::cast::Cast;
use crate::cost::Mark;
use crate::figures::Figures;
use crate::options::Sizes;
use crate::schedulers::Contestant;
use crate::sightings::Sight;
use crate::stage::Stage;
use crate::work::{Ask, Work};

pub(super) async fn trial(stage: &Stage, contestant: &Contestant, sizes: &Sizes) -> Result<Figures> {
    let mut scheduler = awake(stage, contestant).await?;
    let gang = Work::gangs(contestant.scheduler, "gang", 1, sizes.large_gang, Ask::Little);
    let binds = stage.watch(Sight::Bound).await;
    let before = Mark::settled(stage, &mut scheduler).await?;
    stage.create(&gang).await?;
    let begin = Instant::now();
    let span = binds.until(gang.pods(), &mut scheduler).await?;
    let cost = Mark::settled(stage, &mut scheduler).await?.since(before);
    binds.check_room()?;
    Ok(Figures::of(&cost, gang.pods()).with_span(span, begin))
}

/// A scheduler that has bound a pod: it knows the nodes and listens.
async fn awake(stage: &Stage, contestant: &Contestant) -> Result<Cast> {
    let binds = stage.watch(Sight::Bound).await;
    let mut scheduler = stage.launch(contestant)?;
    stage.create(&Work::singles(contestant.scheduler, "first", 1, Ask::Little)).await?;
    binds.until(1, &mut scheduler).await?;
    Ok(scheduler)
}
