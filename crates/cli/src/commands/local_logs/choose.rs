//! The logs that are asked for, or what there is instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use metronome_local::logs::{self, MemberLog};
use metronome_sim::near::{listed, meant_or_known};

use super::LocalLogs;
use crate::failure::Failure;

/// The newest attempt of each job, or the one before.
pub(super) fn chosen(world: &Path, args: &LocalLogs) -> Result<Vec<MemberLog>, Failure> {
    let mut all = logs::list(world);
    if all.is_empty() {
        let failure =
            Failure::input(format!("print logs: no member of the world `{}` has started", args.world));
        return Err(match logs::jobs(world).is_empty() {
            true => failure.hint("`metronome local run` starts jobs, and prints why a job waits or fails"),
            false => failure.hint(format!("its jobs are {}", names(&logs::jobs(world)))),
        });
    }
    if let Some(job) = &args.job {
        all = of_job(all, job)?;
    }
    if let Some(member) = &args.member {
        all = of_member(all, member)?;
    }
    let attempts = attempts(&all);
    let wanted: BTreeMap<String, u32> = attempts
        .iter()
        .filter_map(|(job, attempts)| {
            let attempt = attempts.iter().rev().nth(usize::from(args.previous))?;
            Some((job.clone(), *attempt))
        })
        .collect();
    if wanted.is_empty() {
        let hint = "there is one attempt: leave out `--previous`, or see `metronome local logs --help`";
        return Err(Failure::input("print an attempt before the newest").hint(hint));
    }
    all.retain(|log| wanted.get(&log.job) == Some(&log.attempt));
    Ok(all)
}

fn attempts(logs: &[MemberLog]) -> BTreeMap<String, BTreeSet<u32>> {
    let mut attempts: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for log in logs {
        attempts.entry(log.job.clone()).or_default().insert(log.attempt);
    }
    attempts
}

fn of_job(all: Vec<MemberLog>, job: &str) -> Result<Vec<MemberLog>, Failure> {
    let key = if job.contains('/') { job.to_owned() } else { format!("default/{job}") };
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|log| log.job == key);
    if found.is_empty() {
        let known: BTreeSet<&str> = others.iter().map(|log| short(&log.job)).collect();
        let hint = meant_or_known(short(job), known);
        return Err(Failure::input(format!("find logs of a job `{job}`")).hint(hint));
    }
    Ok(found)
}

fn of_member(all: Vec<MemberLog>, member: &str) -> Result<Vec<MemberLog>, Failure> {
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|log| log.member.to_string() == member);
    if found.is_empty() {
        let known: BTreeSet<String> = others.iter().map(|log| log.member.to_string()).collect();
        let hint = meant_or_known(member, known.iter().map(String::as_str));
        return Err(Failure::input(format!("find logs of a member `{member}`")).hint(hint));
    }
    Ok(found)
}

/// A job as people call it: the usual namespace goes without saying.
pub(super) fn short(job: &str) -> &str {
    job.strip_prefix("default/").unwrap_or(job)
}

fn names(jobs: &[String]) -> String {
    listed(jobs.iter().map(|job| short(job)))
}
