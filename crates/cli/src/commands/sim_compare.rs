//! `metronome sim compare`

use std::path::{Path, PathBuf};

use clap::Args;

use metronome_sim::outcome::Outcome;
use metronome_sim::report;
use metronome_sim::results::{Comparison, per_job_csv};
use metronome_sim::world::Keep;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::{self, ScenarioFile};
use crate::output_file::OutputFile;
use crate::reply::{Format, Reply};
use crate::{policies, runs, table};

/// Simulate a scenario under several policies and put their figures side by side
#[derive(Debug, Args)]
pub(crate) struct SimCompare {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Policies to compare, separated by commas; `sim policies` lists them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    policies: Vec<String>,
    /// Run each policy with the seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Write a report with pictures to FILE, as HTML
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    figures: FigureOptions,
}

/// How the figures of simulations are printed.
#[derive(Debug, Args)]
pub(crate) struct FigureOptions {
    /// Write one CSV row for each job of each run to FILE
    #[arg(long, value_name = "FILE")]
    per_job: Option<PathBuf>,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) output: Format,
    /// Leave out how long decisions took, so that equal runs print equal figures
    #[arg(long)]
    no_times: bool,
}

impl FigureOptions {
    pub(crate) fn figures(&self, scenario: &str, outcomes: &[Outcome]) -> Comparison {
        let comparison = Comparison::of(scenario, outcomes);
        if self.no_times { comparison.without_times() } else { comparison }
    }

    /// Makes the file before the runs: a wrong path is better known early.
    pub(crate) fn open_per_job(&self) -> Result<PerJob<'_>, Failure> {
        let Some(path) = self.per_job.as_deref() else { return Ok(PerJob(None)) };
        Ok(PerJob(Some((path, input::create(path)?))))
    }
}

/// The file for one row per job, if it was asked for.
#[derive(Debug)]
pub(crate) struct PerJob<'a>(Option<(&'a Path, std::fs::File)>);

impl PerJob<'_> {
    pub(crate) fn write(self, outcomes: &[Outcome]) -> Result<(), Failure> {
        let Some((path, file)) = self.0 else { return Ok(()) };
        per_job_csv(outcomes, file).map_err(|error| input::cannot_write(path, &error))
    }
}

pub(crate) fn run(args: &SimCompare) -> Result<Reply, Failure> {
    let scenario = args.scenario.read()?;
    let policies = policies::find_all(&args.policies, &scenario)?;
    let per_job = args.figures.open_per_job()?;
    let report = args.report.as_deref().map(OutputFile::create).transpose()?;
    let keep = if report.is_some() { Keep::Pictures } else { Keep::Figures };
    let outcomes = runs::run(&scenario, &policies, 1..=args.seeds, keep);
    per_job.write(&outcomes)?;
    report.map_or(Ok(()), |file| file.write(&report::html(&scenario.name, &outcomes)))?;
    let comparison = args.figures.figures(&scenario.name, &outcomes);
    let reply = match args.figures.output {
        Format::Json => Reply::json(&comparison),
        Format::Human => Reply::text(table::comparison(&comparison, args.seeds)),
    };
    Ok(watched(reply, &outcomes))
}

/// A scheduler that was caught breaking a rule has fallen short, whatever its figures.
pub(crate) fn watched(reply: Reply, outcomes: &[Outcome]) -> Reply {
    let alarms: u64 = outcomes.iter().map(|outcome| outcome.alarms).sum();
    let violations: usize = outcomes.iter().map(|outcome| outcome.violations.len()).sum();
    if alarms == 0 && violations == 0 {
        return reply;
    }
    let told = outcomes.iter().flat_map(|outcome| outcome.violations.first().or(outcome.last_alarm.as_ref()));
    let example = told.map(|what| format!(": {what}")).next().unwrap_or_default();
    reply.ending(Exit::FellShort).remarking(format!(
        "rules were broken, which is a bug ({alarms} plans refused by the checker, {violations} caught by the world){example}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::model::cluster::Name;
    use metronome_core::model::job::Priority;
    use metronome_core::model::units::{Duration, GpuTime, Gpus, Instant, Share};
    use metronome_sim::outcome::{Fate, JobOutcome};

    fn outcome(policy: &str, fate: Fate) -> Outcome {
        let minute = Instant::from_secs(60);
        let job = JobOutcome {
            name: Name::from("a"),
            model: None,
            priority: Priority::HIGH,
            user: Share(500_000),
            submit: Instant::START,
            start: Some(Instant::START),
            end: Some(minute),
            ran: Duration::MINUTE,
            alone: Duration::MINUTE,
            deadline: None,
            binding: None,
            taken: None,
            cpu: None,
            gpus: Gpus::whole(1),
            members: 1,
            nodes: 1,
            fate,
            preemptions: 0,
            moves: 0,
            resizes: 0,
            resizes_in_place: 0,
            reached: None,
            wait_reason: None,
            slowdown: None,
            exchange: None,
            segments: Vec::new(),
        };
        Outcome {
            policy: policy.into(),
            seed: 1,
            jobs: vec![job],
            ended: minute,
            gpu_capacity: Gpus::whole(1),
            gpu_peak: None,
            gpu_busy: GpuTime::gpu_seconds(60),
            links: Vec::new(),
            bin: Duration::ZERO,
            encounter: None,
            lane_changes: 0,
            changes: Vec::new(),
            events: 3,
            alarms: 0,
            last_alarm: None,
            violations: Vec::new(),
            link_answers: Vec::new(),
            reconfigured: Default::default(),
            decision_nanos: vec![1000],
        }
    }

    #[test]
    fn a_broken_rule_is_told_and_ends_with_one() {
        let sound = outcome("fifo", Fate::Completed);
        assert_eq!(watched(Reply::nothing(), std::slice::from_ref(&sound)).exit(), Exit::Done);
        let broken = Outcome { violations: vec!["n0 held too much".into()], ..sound };
        assert_eq!(watched(Reply::nothing(), &[broken]).exit(), Exit::FellShort);
    }

    #[test]
    fn figures_are_what_the_schema_says() {
        let outcomes = [outcome("fifo", Fate::Completed), outcome("srtf", Fate::Refused)];
        let comparison = Comparison::of("sample", &outcomes);
        crate::schema::assert_conforms("compare", &comparison);
        crate::schema::assert_conforms("compare", &comparison.without_times());
        crate::schema::assert_conforms("compare", &Comparison::of("nothing", &[]));
    }
}
