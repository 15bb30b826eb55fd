//! Experiments with training programs of users: mixes of jobs that share links, under several policies and from several
//! starts, beside the same jobs on links of their own.
//!
//! Nothing is declared of the jobs: what is decided is decided by what the agent learns. Runs take minutes, so every one is
//! written down when it is over, and the same command goes on with those that are missing.

mod definition;
mod judge;
mod measure;
mod rows;
mod runs;
mod scenario;
mod simulate;
mod statistics;
mod write;

use std::time::{Duration, Instant};

use super::Experiment;
use super::real::check_rights;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reply::Reply;
pub(super) use definition::Mixes;
use definition::{Mix, SEPARATE, Set};
use judge::{SetReport, missing};
use measure::{Bench, Which};
use runs::{Known, Line, Run};

pub(super) fn run(args: &Experiment, mixes: &Mixes) -> Result<Reply, Failure> {
    let set = mixes.set(args.set.as_deref())?;
    let asked = set.mixes(&args.only)?;
    let mut known = Known::read(&args.folder, set)?;
    let remarks = measure_missing(args, mixes, set, &asked, &mut known)?;
    let reports = reports(args, mixes)?;
    write::written(mixes, &args.folder, &reports).put_into(&args.folder)?;
    let Some(report) = reports.iter().find(|report| report.set == set.name) else {
        return Ok(Reply::nothing().remarking(remarks.join("\n")).ending(Exit::FellShort));
    };
    let reply = Reply::text(write::text(mixes, report));
    let reply = if remarks.is_empty() { reply } else { reply.remarking(remarks.join("\n")) };
    let is_met = report.missing == 0 && report.verdicts.iter().all(|verdict| verdict.met);
    Ok(if is_met { reply } else { reply.ending(Exit::FellShort) })
}

/// Runs what has no result, each once; says why runs failed or were not begun.
fn measure_missing(
    args: &Experiment,
    mixes: &Mixes,
    set: &Set,
    asked: &[&Mix],
    known: &mut Known,
) -> Result<Vec<String>, Failure> {
    let missing = missing(set, asked, known, args.seeds.unwrap_or(set.starts));
    if missing.is_empty() || args.minutes == Some(0) {
        return Ok(Vec::new());
    }
    check_rights()?;
    let bench = Bench::new(mixes, &args.folder, &args.python)?;
    let ends = args.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let (mut remarks, mut longest) = (Vec::new(), Duration::ZERO);
    for (number, (mix, start, policy)) in missing.iter().enumerate() {
        if bench.is_stopped() || ends.is_some_and(|ends| Instant::now() + longest > ends) {
            remarks.push(format!("{} runs were not begun; the same command goes on", missing.len() - number));
            break;
        }
        calibrate(&bench, set, mix, known)?;
        let began = Instant::now();
        let run = bench.run(Which { set, mix, start: *start, policy }, known.batches(&mix.name))?;
        if bench.is_stopped() {
            remarks.push("the run under way was interrupted; the same command goes on with it".to_owned());
            break;
        }
        longest = longest.max(began.elapsed());
        let said = progress(&run, number + 1, missing.len());
        eprintln!("{said}");
        remarks.extend(run.failed.is_some().then_some(said));
        known.add(Line::Run(run))?;
    }
    Ok(remarks)
}

fn calibrate(bench: &Bench, set: &Set, mix: &Mix, known: &mut Known) -> Result<(), Failure> {
    if known.batches(&mix.name).is_none()
        && let Some(calibration) = bench.calibrate(set, mix)?
    {
        known.add(Line::Calibration(calibration))?;
    }
    Ok(())
}

fn progress(run: &Run, number: usize, of: usize) -> String {
    let times: Vec<String> = rows::rows(run, None).iter().map(|row| format!("{:.1}", row.mean_ms)).collect();
    let what = match &run.failed {
        Some(why) => format!("failed: {why}"),
        None => format!("{} ms", times.join(", ")),
    };
    let start = if run.policy == SEPARATE { String::new() } else { format!(" start {}", run.start) };
    format!("{number} of {of}: {} {}{start}: {what}, after {:.1} s", run.mix, run.policy, run.seconds)
}

/// Of all sets that have results, whichever was run now.
fn reports(args: &Experiment, mixes: &Mixes) -> Result<Vec<SetReport>, Failure> {
    let mut reports = Vec::new();
    for set in &mixes.sets {
        let known = Known::read(&args.folder, set)?;
        let simulated = |set: &Set, mix: &Mix, run: &Run, separate: &Run| {
            simulate::simulated(set, mix, run, separate).ok().flatten()
        };
        reports.extend(judge::report(mixes, set, &known, &simulated));
    }
    Ok(reports)
}
