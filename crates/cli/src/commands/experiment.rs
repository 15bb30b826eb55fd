//! `metronome experiment`, hidden: what `cargo xtask experiment` runs. Runs what a folder's `experiment.json` says,
//! writes results and charts beside it and judges its bars.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use metronome_sim::experiment::{
    Definition, Measured, Verdict, charts, document, judge, markdown, wait_rows, waits, with_results,
};
use metronome_sim::results::Comparison;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::Keep;

use crate::commands::sim_compare::watched;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::reply::Reply;
use crate::{policies, runs, table};

/// Run an experiment, write its results beside its definition and judge its bars
#[derive(Debug, Args)]
pub(crate) struct Experiment {
    /// Folder with an `experiment.json`
    folder: PathBuf,
    /// Run each policy with the seeds 1 to N, whatever the definition says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: Option<u64>,
}

pub(crate) fn run(args: &Experiment) -> Result<Reply, Failure> {
    let definition = read_definition(&args.folder)?;
    let seeds = args.seeds.unwrap_or(definition.seeds);
    let scenarios = read_scenarios(&definition, &args.folder)?;
    let mut reply = Reply::nothing();
    let mut measured =
        Measured { experiment: name(&args.folder), seeds, scenarios: Vec::new(), waits: Vec::new() };
    for (file, scenario) in scenarios {
        let policies = policies::find_all(&definition.policies, &scenario)?;
        let outcomes = runs::run(&scenario, &policies, 1..=seeds, Keep::Figures);
        // What the runs of one scenario broke stays told, whatever those of the next one do.
        reply = watched(reply, &outcomes);
        if let Some(table) = &definition.waits {
            measured.waits.push((file.clone(), waits(table, &outcomes)));
        }
        measured.scenarios.push((file, Comparison::of(&scenario.name, &outcomes).without_times()));
    }
    let verdicts = judge(&definition.bars, &measured);
    write(&args.folder, &definition, &measured, &verdicts)?;
    Ok(judged(reply.saying(words(&measured, &verdicts)), &verdicts))
}

fn name(folder: &Path) -> String {
    let name =
        folder.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| folder.display().to_string())
}

fn read_definition(folder: &Path) -> Result<Definition, Failure> {
    let path = folder.join("experiment.json");
    let text = std::io::read_to_string(input::open(&path)?)
        .map_err(|error| Failure::input(format!("read {}", path.display())).because(&error))?;
    Definition::parse(&text).map_err(|error| {
        let failure = Failure::input(format!("run {}", path.display()));
        failure.because(&error)
    })
}

/// All of them before the first run: a mistake in the last one is better known early. So is an unknown policy.
fn read_scenarios(definition: &Definition, folder: &Path) -> Result<Vec<(String, Scenario)>, Failure> {
    let mut scenarios = Vec::new();
    for file in &definition.scenarios {
        let scenario = Scenario::read(&folder.join(file))?;
        policies::find_all(&definition.policies, &scenario)?;
        scenarios.push((file.clone(), scenario));
    }
    Ok(scenarios)
}

fn write(
    folder: &Path,
    definition: &Definition,
    measured: &Measured,
    verdicts: &[Verdict],
) -> Result<(), Failure> {
    let put = |file: &str, text: &str| {
        let path = folder.join(file);
        fs::write(&path, text).map_err(|error| input::cannot_write(&path, &error))
    };
    put("results.json", &document(measured, verdicts))?;
    for (file, svg) in charts(&definition.charts, measured) {
        put(&file, &svg)?;
    }
    let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
    match with_results(&readme, &markdown(measured, definition, verdicts)) {
        Some(readme) => put("README.md", &readme),
        None => Ok(()),
    }
}

fn words(measured: &Measured, verdicts: &[Verdict]) -> String {
    let tables: Vec<String> =
        measured.scenarios.iter().map(|(_, of)| table::comparison(of, measured.seeds)).collect();
    let waits = measured.waits.iter();
    let waits: String = waits
        .map(|(file, of)| format!("\nmean waits in {file}\n\n{}\n", table::plain(&wait_rows(of))))
        .collect();
    let bars: String = verdicts.iter().map(|verdict| verdict.sentence() + "\n").collect();
    let gap = if bars.is_empty() { "" } else { "\n" };
    tables.join("\n") + &waits + gap + &bars
}

fn judged(reply: Reply, verdicts: &[Verdict]) -> Reply {
    match verdicts.iter().all(|verdict| verdict.met) {
        true => reply,
        false => reply.ending(Exit::FellShort),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with one small scenario, and this as the largest ratio that will do.
    fn folder(at_most: f64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        put("two-gangs.yaml", include_str!("../../../../examples/two-gangs.yaml"));
        put("README.md", "<!-- results: written by `cargo xtask experiment` -->\n<!-- end of results -->\n");
        put(
            "experiment.json",
            &format!(
                r#"{{"version": 1, "scenarios": ["two-gangs.yaml"], "policies": ["volcano", "metronome"], "seeds": 2,
                "bars": [{{"metric": "jct_s.mean", "policy": "metronome", "against": "volcano", "atMost": {at_most}}}],
                "charts": [{{"metric": "jct_s.mean", "file": "jct.svg", "title": "Mean JCT"}}]}}"#
            ),
        );
        folder
    }

    fn run_in(folder: &Path) -> Reply {
        run(&Experiment { folder: folder.to_owned(), seeds: None }).unwrap()
    }

    #[test]
    fn a_missed_bar_ends_with_one_and_the_results_are_written_all_the_same() {
        let folder = folder(0.1);
        let reply = run_in(folder.path());
        assert_eq!(reply.exit(), Exit::FellShort);
        assert!(reply.said().contains("MISSED: jct_s.mean of metronome over volcano"), "{}", reply.said());
        let results = fs::read_to_string(folder.path().join("results.json")).unwrap();
        assert!(results.contains("\"met\":false"), "{results}");
    }

    #[test]
    fn a_rerun_writes_the_same_bytes() {
        let folder = folder(100.0);
        let files = || {
            assert_eq!(run_in(folder.path()).exit(), Exit::Done);
            ["results.json", "jct.svg", "README.md"].map(|file| fs::read(folder.path().join(file)).unwrap())
        };
        let first = files();
        assert_eq!(first, files());
        assert!(String::from_utf8_lossy(&first[2]).contains("| metronome | 8.0 |"));
    }

    #[test]
    fn a_folder_without_a_definition_is_wrong_use() {
        let empty = tempfile::tempdir().unwrap();
        let failure = run(&Experiment { folder: empty.path().to_owned(), seeds: None }).unwrap_err();
        assert_eq!(failure.tell(), Exit::WrongUse);
    }

    #[test]
    fn every_experiment_of_this_repository_is_well_defined() {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        for folder in
            fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir())
        {
            if let Err(failure) = read_definition(&folder) {
                panic!("{}: {failure:?}", folder.display());
            }
        }
    }
}
