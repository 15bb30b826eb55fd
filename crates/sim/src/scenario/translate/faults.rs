//! What goes wrong, on demand.

use metronome_core::model::cluster::{Cluster, Name};
use metronome_core::model::units::{Bandwidth, Duration, Instant, Share};
use serde_saphyr::Spanned;

use super::links;
use crate::near::meant_or_known;
use crate::scenario::documents::{FaultShape, StepsShape};
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{Placed, Text, name, number, quantity, quantity_or_none, share, word};
use crate::scenario::{AgentFault, Fault, Source};

/// A node that is slower than this does nothing.
const MOST_SLOWDOWN: f64 = 1000.0;

pub(super) fn faults(written: &[Spanned<FaultShape>], cluster: &Cluster) -> Result<Vec<Fault>, Problem> {
    let faults: Vec<Fault> =
        written.iter().map(|written| fault(written, cluster)).collect::<Result<_, _>>()?;
    check_apart(&faults, written)?;
    Ok(faults)
}

fn fault(written: &Spanned<FaultShape>, cluster: &Cluster) -> Result<Fault, Problem> {
    let FaultShape { node, link, job, members, slowdown, notice, rate, agent, delay, at, lasts, steps } =
        &written.value;
    let when = |what: &dyn Fn() -> Problem| match at {
        Some(at) => Ok((Instant::START + quantity(at)?, lasts.as_ref().map(quantity).transpose()?)),
        None => Err(what().with_hint("add `at: 10s`")),
    };
    if members.is_some() && node.is_none() {
        return Err(written.problem("members fail on a node").with_hint("add `node: node-0`"));
    }
    if let Some(text) = slowdown.as_ref().filter(|_| node.is_none() || members.is_some()) {
        let problem = text.problem("a node is slow, and nothing else of it is wrong at the same time");
        return Err(problem.with_hint("write `{node: node-0, at: 10s, slowdown: 1.5}`"));
    }
    if let Some(text) = notice.as_ref().filter(|_| node.is_none() || members.is_some() || slowdown.is_some())
    {
        return Err(text.problem("only of a node that goes it is said before that it will"));
    }
    let more = members.is_some() || slowdown.is_some() || notice.is_some();
    if let Some(text) = agent.as_ref().filter(|_| node.is_none() || more) {
        let problem =
            text.problem("an agent is that of a node, of which nothing else is wrong at the same time");
        return Err(problem.with_hint("write `{node: node-0, at: 10s, agent: deaf}`"));
    }
    if let Some(text) = delay.as_ref().filter(|_| agent.as_ref().is_none_or(|agent| agent.value != "late")) {
        return Err(text.problem("only an agent that is late has a delay").with_hint("add `agent: late`"));
    }
    match (node, link, job, steps) {
        (Some(node), None, None, None) if rate.is_none() => {
            let (at, lasts) = when(&|| node.problem("it is not said when the node goes"))?;
            let node = links::find_node(node, cluster)?;
            if let Some(text) = agent {
                return Ok(Fault::Agent { node, at, lasts, what: agent_fault(text, delay.as_ref())? });
            }
            match (members, slowdown) {
                (_, Some(text)) => Ok(Fault::Slow { node, at, lasts, slowdown: slower(text)? }),
                (Some(text), None) => word(text, "word for what members do", &[("fail", ())])
                    .map(|()| Fault::Spoilt { node, at, lasts }),
                (None, None) => Ok(Fault::Node { node, at, lasts, notice: quantity_or_none(notice.as_ref())? }),
            }
        }
        (None, Some(link), None, None) => {
            let (at, lasts) = when(&|| link.problem("it is not said when the link fails"))?;
            let links = links::find_cable(link, cluster)?;
            let own = cluster.fabric.links()[links[0]].rate;
            let rate = rate.as_ref().map(|rate| degraded(rate, own)).transpose()?;
            Ok(Fault::Link { links, at, lasts, rate })
        }
        (None, None, Some(job), None) if rate.is_none() => {
            let (at, lasts) = when(&|| job.problem("it is not said when the job hangs"))?;
            Ok(Fault::Hang { job: Name::from(name(job)?), at, lasts })
        }
        (None, None, None, Some(steps)) if rate.is_none() && at.is_none() && lasts.is_none() => {
            broken_steps(steps)
        }
        _ => Err(written.problem(
            "a fault is one of {node, at, for, notice, members, slowdown, agent, delay}, {link: {from, to}, at, for, rate}, {job, at, for} and \
             {steps: {fail, late, lost, delay}}",
        )),
    }
}

/// How an agent handles traffic policies.
fn agent_fault(text: &Text, delay: Option<&Text>) -> Result<AgentFault, Problem> {
    let late = AgentFault::Late(quantity_or_none(delay)?);
    let words = [
        ("late", late),
        ("deaf", AgentFault::Deaf),
        ("wrong", AgentFault::Wrong),
        ("fails", AgentFault::Fails),
    ];
    let what = word(text, "word for what an agent does", &words)?;
    if what == AgentFault::Late(Duration::ZERO) {
        return Err(text.problem("the agent is late by nothing").with_hint("add `delay: 10s`"));
    }
    Ok(what)
}

/// How many times as long everything takes; more than once.
fn slower(text: &Text) -> Result<f64, Problem> {
    let times = number(text, 1.0..=MOST_SLOWDOWN)?;
    if times > 1.0 {
        return Ok(times);
    }
    let problem = text.problem("on a slow node everything takes longer");
    Err(problem.with_hint("write how many times as long, such as 1.5"))
}

/// A rate, or a part of what the link carries when nothing is wrong; less than that.
fn degraded(text: &Text, own: Bandwidth) -> Result<Bandwidth, Problem> {
    let rate = match text.value.ends_with('%') {
        true => share(text).map(|part| Bandwidth((own.0 as f64 * part.as_f64()).round() as u64)),
        false => quantity(text),
    }?;
    if rate.is_zero() {
        let problem = text.problem("the rate of a link is more than nothing");
        return Err(problem.with_hint("leave `rate` out for a link that carries nothing"));
    }
    if rate >= own {
        let problem = text.problem(format!("the link carries {own} when nothing is wrong"));
        return Err(
            problem.with_hint("a fault takes something away: write a lower rate, or a part such as 50%")
        );
    }
    Ok(rate)
}

/// What a link carries when two faults of it overlap is not said.
fn check_apart(faults: &[Fault], written: &[Spanned<FaultShape>]) -> Result<(), Problem> {
    let spans = |fault: &Fault| match *fault {
        Fault::Link { links, at, lasts, .. } => Some((links, at, lasts.map(|lasts| at + lasts))),
        _ => None,
    };
    let before = |end: Option<Instant>, at: Instant| end.is_some_and(|end| end <= at);
    for (index, second) in faults.iter().enumerate() {
        let Some((links, at, end)) = spans(second) else { continue };
        let overlaps = |first: &Fault| {
            let other = spans(first).filter(|(other, ..)| *other == links);
            other.is_some_and(|(_, from, to)| !before(to, at) && !before(end, from))
        };
        if faults[..index].iter().any(overlaps) {
            let problem = written[index].problem("another fault of the same link is not over then");
            return Err(problem.with_hint("let one begin when the other is over: at, for"));
        }
    }
    Ok(())
}

fn broken_steps(written: &Spanned<StepsShape>) -> Result<Fault, Problem> {
    let StepsShape { fail, late, lost, delay } = &written.value;
    let chance = |text: &Option<Text>| text.as_ref().map_or(Ok(Share::NONE), share);
    let (fail, late, lost) = (chance(fail)?, chance(late)?, chance(lost)?);
    if fail.0 + late.0 + lost.0 > Share::WHOLE.0 {
        return Err(written.problem("the chances of a step sum to more than 1"));
    }
    let delay = quantity_or_none::<Duration>(delay.as_ref())?;
    if late != Share::NONE && delay.is_zero() {
        return Err(written.problem("steps come late by nothing").with_hint("add `delay: 10s`"));
    }
    Ok(Fault::Steps { fail, late, lost, delay })
}

/// Faults name jobs that there are.
pub(super) fn check_jobs(written: &[Spanned<FaultShape>], sources: &[Source]) -> Result<(), Problem> {
    let mut hanging = written.iter().filter_map(|written| written.value.job.as_ref()).peekable();
    if hanging.peek().is_none() {
        return Ok(());
    }
    let names: Vec<Name> = sources.iter().flat_map(Source::names).collect();
    let known = |job: &Text| names.iter().any(|name| **name == *job.value);
    match hanging.find(|job| !known(job)) {
        Some(job) => {
            let problem = job.problem(format!("there is no job {}", quoted(&job.value)));
            Err(problem.with_hint(meant_or_known(&job.value, names.iter().map(|name| &**name))))
        }
        None => Ok(()),
    }
}
