//! All work is there when the scheduler starts: how fast can it bind?

use std::time::Instant;

use anyhow::Result;

use crate::cost::Mark;
use crate::figures::{Figure, Figures};
use crate::schedulers::Contestant;
use crate::sightings::Sight;
use crate::stage::Stage;
use crate::work::Work;

pub(super) async fn trial(stage: &Stage, contestant: &Contestant, work: &Work) -> Result<Figures> {
    stage.create(work).await?;
    let binds = stage.watch(Sight::Bound).await;
    let before = Mark::before(stage).await?;
    let begin = Instant::now();
    let mut scheduler = stage.launch(contestant)?;
    let span = binds.until(work.pods(), &mut scheduler).await?;
    let settled = Mark::settled(stage, &mut scheduler).await?;
    binds.check_room()?;
    let tail = settled.time - span.last;
    let figures = Figures::of(&settled.since(before), work.pods())
        .with(Figure::Rate, span.rate(work.pods()))
        .with_span(span, begin)
        .with_seconds(Figure::Tail, tail);
    Ok(figures)
}
