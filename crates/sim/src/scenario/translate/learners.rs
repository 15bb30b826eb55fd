//! A workload of processes that share cores: every number is checked here, so that drawing cannot fail.

use metronome_core::model::units::{Cpu, Duration, Share};
use serde_saphyr::Spanned;

use super::poisson::durations;
use super::{Named, World, jobs};
use crate::scenario::documents::{LearnersShape, WorkShareShape, WorkloadSpec};
use crate::scenario::draw::Durations;
use crate::scenario::error::Problem;
use crate::scenario::learners::{Ends, Learners};
use crate::scenario::values::{Placed, Text, check_name, quantity, share, some_quantity, whole, word};

const MOST_JOBS: u64 = 1_000_000;
const MOST_MEMBERS: u64 = 1000;
const USUAL_REPORTS: Duration = Duration::from_secs(10);

/// Jobs that come at any time up to `within`.
pub(super) fn drawn(
    within: &Text,
    workload: &Named<WorkloadSpec>,
    world: &World<'_>,
) -> Result<Learners, Problem> {
    let spec = &workload.spec;
    let Some(written) = &spec.learners else {
        let problem = within.problem("`arrivals.within` is for `learners`");
        return Err(problem
            .with_hint("say what comes: learners: {asks: [1], uses: [4], work: [{share: 1, median: 10m}]}"));
    };
    let count = spec.jobs.as_ref().ok_or_else(|| {
        within.problem("missing field `jobs` beside `arrivals.within`").with_hint("say how many: jobs: 50")
    })?;
    let shape = &written.value;
    let learners = Learners {
        name: workload.name().to_owned(),
        jobs: whole(count, 1..=MOST_JOBS)? as u32,
        within: quantity(within)?,
        members: members(shape.members.as_ref(), written)?,
        asks: amounts(&shape.asks, written)?,
        uses: amounts(&shape.uses, written)?,
        work: kinds(&shape.work, written)?,
        reports: shape
            .reports
            .as_ref()
            .map_or(Ok(USUAL_REPORTS), |text| some_quantity(text, "the time between reports"))?,
        noise: shape.noise.as_ref().map_or(Ok(Share::NONE), share)?,
        ends: shape.ends.as_ref().map_or(Ok(Ends::default()), ends)?,
        checkpointing: spec.checkpoint.as_ref().map(|shape| jobs::checkpointing(&shape.value)).transpose()?,
    };
    check_fit(&learners, written, world)?;
    check_name(&learners.name_of(learners.jobs - 1)).map_err(|message| workload.at().problem(message))?;
    Ok(learners)
}

/// One process each, unless something else is said.
fn members(texts: Option<&Vec<Text>>, written: &Spanned<LearnersShape>) -> Result<Vec<u32>, Problem> {
    match texts {
        None => Ok(vec![1]),
        Some(texts) if texts.is_empty() => {
            Err(written.problem("no number of processes is given").with_hint("for example members: [1, 4]"))
        }
        Some(texts) => texts.iter().map(|text| Ok(whole(text, 1..=MOST_MEMBERS)? as u32)).collect(),
    }
}

fn ends(text: &Text) -> Result<Ends, Problem> {
    word(text, "word for ends", &[("iterations", Ends::Iterations), ("target", Ends::Target)])
}

fn amounts(texts: &[Text], written: &Spanned<LearnersShape>) -> Result<Vec<Cpu>, Problem> {
    if texts.is_empty() {
        return Err(written
            .problem("no amount of CPU is given")
            .with_hint("for example asks: [500m, 2], uses: [4]"));
    }
    texts.iter().map(|text| some_quantity(text, "an amount of CPU")).collect()
}

fn kinds(
    texts: &[Spanned<WorkShareShape>],
    written: &Spanned<LearnersShape>,
) -> Result<Vec<(Share, Durations)>, Problem> {
    let kind =
        |text: &Spanned<WorkShareShape>| Ok((share(&text.value.share)?, durations(&text.value.takes)?));
    let kinds = texts.iter().map(kind).collect::<Result<Vec<_>, Problem>>()?;
    let sum: u64 = kinds.iter().map(|(share, _)| u64::from(share.0)).sum();
    match sum == u64::from(Share::WHOLE.0) {
        true => Ok(kinds),
        false => Err(written.problem("the shares of `work` do not sum to 1")),
    }
}

/// Who asks for more than a node has never runs; who can use more than a node has uses what there is.
fn check_fit(
    learners: &Learners,
    written: &Spanned<LearnersShape>,
    world: &World<'_>,
) -> Result<(), Problem> {
    let largest = world.cluster.nodes().values().map(|node| node.capacity.cpu).max().unwrap_or_default();
    let beyond = |amounts: &[Cpu]| amounts.iter().copied().find(|amount| *amount > largest);
    match beyond(&learners.asks).or(beyond(&learners.uses)) {
        Some(amount) => {
            Err(written.problem(format!("no node has {amount} of CPU: the largest has {largest}")))
        }
        None => Ok(()),
    }
}
