//! `metronome demo`: the first thing a newcomer runs.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use metronome_sim::report;
use metronome_sim::results::Comparison;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::Keep;

use crate::commands::sim_compare::watched;
use crate::failure::Failure;
use crate::output_file::OutputFile;
use crate::reply::{Format, Reply};
use crate::{policies, runs, table};

/// See what Metronome is for: 400 training jobs under three schedulers, and a report with pictures
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where to write the report, one HTML file
    #[arg(long, value_name = "FILE", default_value = "metronome-demo.html")]
    report: PathBuf,
    /// Run every scheduler on the workloads of the seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// How to print the figures
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

/// The workload, in the binary: the demo needs no file.
const SCENARIO: &str = include_str!("../../../../experiments/thirteen-models/demo.yaml");

const POLICIES: [&str; 3] = ["kubernetes", "coscheduling", "metronome"];

pub(crate) fn run(args: &Demo) -> Result<Reply, Failure> {
    let scenario = Scenario::read_from(SCENARIO.as_bytes(), "thirteen-models", Path::new("."))?;
    let policies = policies::find_all(&POLICIES.map(str::to_owned), &scenario)?;
    let file = OutputFile::create(&args.report)?;
    let outcomes = runs::run(&scenario, &policies, 1..=args.seeds, Keep::Pictures);
    file.write(&report::html(&scenario.name, &outcomes))?;
    let comparison = Comparison::of(&scenario.name, &outcomes).without_times();
    let reply = match args.output {
        Format::Json => Reply::json(&comparison),
        Format::Human => Reply::text(words(&comparison, args)),
    };
    Ok(watched(reply, &outcomes))
}

/// The table, what it means, and where the pictures are.
fn words(comparison: &Comparison, args: &Demo) -> String {
    let mut text = table::comparison(comparison, args.seeds);
    write!(text, "\n{}.\n\n", report::headline(comparison)).expect("a string takes everything");
    for sentence in report::sentences(comparison) {
        text.push_str(&wrapped(&sentence));
    }
    write!(text, "\nThe pictures are in {}: open it in a browser.\n", args.report.display())
        .expect("a string takes everything");
    text
}

/// In lines that fit into a terminal.
fn wrapped(sentence: &str) -> String {
    const COLUMNS: usize = 100;
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(word.to_owned());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_prints_what_the_schema_says_and_writes_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let args = |output| Demo { report: folder.path().join("demo.html"), seeds: 1, output };
        let human = run(&args(Format::Human)).unwrap();
        assert_eq!(human.exit(), crate::exit::Exit::Done);
        assert!(human.said().contains("metronome") && human.said().contains("demo.html"), "{}", human.said());
        let json: Comparison = serde_json::from_str(run(&args(Format::Json)).unwrap().said()).unwrap();
        crate::schema::assert_conforms("compare", &json);
        assert!(std::fs::read_to_string(folder.path().join("demo.html")).unwrap().contains("</html>"));
    }

    #[test]
    fn sentences_are_broken_between_words() {
        let text = wrapped("twelve chars ".repeat(20).trim_end());
        assert!(text.lines().all(|line| line.len() <= 100) && text.lines().count() == 3, "{text}");
    }

    #[test]
    fn a_report_that_cannot_be_written_is_known_before_anything_is_run() {
        let nowhere = PathBuf::from("no/such/folder/demo.html");
        assert!(run(&Demo { report: nowhere, seeds: 1, output: Format::Json }).is_err());
    }
}
