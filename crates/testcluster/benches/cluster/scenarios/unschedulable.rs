//! Pods that fit nowhere: how soon is each told so, and does the scheduler come to rest afterwards?

use std::time::Instant;

use anyhow::Result;

use crate::cost::Mark;
use crate::figures::{Figure, Figures};
use crate::options::Sizes;
use crate::schedulers::Contestant;
use crate::sightings::Sight;
use crate::stage::Stage;
use crate::work::{Ask, Work};

pub(super) async fn trial(stage: &Stage, contestant: &Contestant, sizes: &Sizes) -> Result<Figures> {
    let work = Work::singles(contestant.scheduler, "pod", sizes.unschedulable, Ask::TooMuch);
    stage.create(&work).await?;
    let verdicts = stage.watch(Sight::Refused).await;
    let before = Mark::before(stage).await?;
    let begin = Instant::now();
    let mut scheduler = stage.launch(contestant)?;
    let span = verdicts.until(work.pods(), &mut scheduler).await?;
    drop(verdicts);
    let settled = Mark::settled(stage, &mut scheduler).await?;
    let cost = settled.clone().since(before);
    tokio::time::sleep(sizes.idle).await;
    let idle = Mark::now(stage, &scheduler).await?.since(settled);
    let figures = Figures::of(&cost, work.pods())
        .with(Figure::Rate, span.rate(work.pods()))
        .with_span(span, begin)
        .with_seconds(Figure::IdleCpu, idle.cpu)
        .with(Figure::IdleWrites, idle.writes().total() as f64);
    Ok(figures)
}
