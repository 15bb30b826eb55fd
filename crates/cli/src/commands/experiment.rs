//! `metronome experiment`, hidden: what `cargo xtask experiment` runs. Runs what a folder's `experiment.json` says,
//! writes results and charts beside it and judges its bars.

mod learned;
mod mixes;
mod real;
mod study;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use metronome_sim::experiment::{
    Definition, Import, Measured, Pairs, Part, Published, Study, Verdict, beside, charts, document, judge,
    markdown, pairs, picture, published, wait_rows, waits, with_results,
};
use metronome_sim::import;
use metronome_sim::outcome::Outcome;
use metronome_sim::results::Comparison;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{Estimates, Keep};

use crate::commands::sim_compare::watched;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::reply::Reply;
use crate::{policies, runs, table};
use learned::Profiles;
use mixes::Mixes;
use real::Real;

/// Run an experiment, write its results beside its definition and judge its bars
#[derive(Debug, Args)]
pub(crate) struct Experiment {
    /// Folder with an `experiment.json`
    folder: PathBuf,
    /// Run each policy with the seeds 1 to N, whatever the definition says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: Option<u64>,
    /// Folder of public traces; scenarios that need one are left out without it
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Of an experiment about what is learned, or with mixes of programs, only these; what is known of the others stays
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Of an experiment with mixes of programs the set for this machine
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Interpreter of training programs
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: String,
    /// Begin no run of a program that may end later than N minutes from now; 0 judges the runs that there are
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
}

pub(crate) fn run(args: &Experiment) -> Result<Reply, Failure> {
    let asked = read_definition(&args.folder)?;
    if !args.only.is_empty() && !matches!(asked, Asked::Learned(_) | Asked::Mixes(_)) {
        return Err(Failure::input(format!(
            "run only a part of {}: it is run as a whole",
            args.folder.display()
        )));
    }
    match asked {
        Asked::Scenarios(definition) => run_scenarios(args, &definition),
        Asked::OneLink(study) => study::run(args, &study),
        Asked::ThisMachine(real) => real::run(args, &real),
        Asked::Learned(profiles) => learned::run(args, &profiles),
        Asked::Mixes(mixes) => mixes::run(args, &mixes),
    }
}

/// What a folder asks.
#[derive(Debug)]
enum Asked {
    Scenarios(Definition),
    OneLink(Study),
    ThisMachine(Real),
    Learned(Profiles),
    Mixes(Mixes),
}

fn run_scenarios(args: &Experiment, definition: &Definition) -> Result<Reply, Failure> {
    let seeds = args.seeds.unwrap_or(definition.seeds);
    let (ready, left_out) = read_scenarios(definition, args)?;
    let mut reply = Reply::nothing();
    let experiment = name(&args.folder);
    let mut measured = Measured::nothing(experiment, seeds);
    let published = read_published(definition, args)?;
    for Ready { part, scenario, observed } in ready {
        let policies = policies::find_all(definition.policies_of(part), &scenario)?;
        let mut outcomes = runs::run(&scenario, &policies, 1..=seeds, Keep::Figures);
        // What the runs of one scenario broke stays told, whatever those of the next one do.
        reply = watched(reply, &outcomes);
        if let Some(table) = &definition.waits {
            measured.waits.push((part.name.clone(), waits(table, &outcomes)));
        }
        if let Some(table) = &definition.pairs {
            let first = measured.scenarios.is_empty();
            let beside = if first { &published } else { &Published::new() };
            measured.pairs.extend(pairs(table, &part.name, &outcomes, beside));
        }
        outcomes.extend(observed);
        measured.beside.extend(beside(part, &outcomes));
        let comparison = Comparison::of(&scenario.name, &outcomes).without_times();
        measured.scenarios.push((part.name.clone(), comparison));
    }
    let verdicts = judge(&definition.bars, &measured);
    match left_out.is_empty() {
        true => write(&args.folder, definition, &measured, &verdicts, &published)?,
        false => reply = reply.remarking(left_out.join("\n") + NOT_WRITTEN),
    }
    Ok(judged(reply.saying(words(&measured, &verdicts)), &verdicts))
}

/// What others have published, where a definition asks for it.
fn read_published(definition: &Definition, args: &Experiment) -> Result<Published, Failure> {
    let data = args.data.as_deref().unwrap_or(Path::new(""));
    Ok(definition.pairs.as_ref().map_or(Ok(Published::new()), |table| published(table, data))?)
}

/// Half an answer must not take the place of a whole one.
const NOT_WRITTEN: &str = "\nnothing is written: the results that are there are of all scenarios";

fn name(folder: &Path) -> String {
    let name =
        folder.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| folder.display().to_string())
}

fn read_definition(folder: &Path) -> Result<Asked, Failure> {
    let path = folder.join("experiment.json");
    let text = std::io::read_to_string(input::open(&path)?)
        .map_err(|error| Failure::input(format!("read {}", path.display())).because(&error))?;
    let on_this_machine = Real::parse(&text)
        .map(|real| real.map(Asked::ThisMachine))
        .or_else(|| Profiles::parse(&text).map(|profiles| profiles.map(Asked::Learned)))
        .or_else(|| Mixes::parse(&text).map(|mixes| mixes.map(Asked::Mixes)));
    if let Some(asked) = on_this_machine {
        return asked.map_err(|error| Failure::input(format!("run {}", path.display())).because(&error));
    }
    let asked = match Study::parse(&text) {
        Some(study) => study.map(Asked::OneLink),
        None => Definition::parse(&text).map(Asked::Scenarios),
    };
    asked.map_err(|error| {
        let failure = Failure::input(format!("run {}", path.display()));
        failure.because(&error)
    })
}

/// A scenario that can be run, and what was measured elsewhere on its jobs.
struct Ready<'a> {
    part: &'a Part,
    scenario: Scenario,
    observed: Vec<Outcome>,
}

/// All of them before the first run: a mistake in the last one is better known early. So is an unknown policy. Also
/// says which are left out and why.
fn read_scenarios<'a>(
    definition: &'a Definition,
    args: &Experiment,
) -> Result<(Vec<Ready<'a>>, Vec<String>), Failure> {
    let (mut ready, mut left_out) = (Vec::new(), Vec::new());
    for part in &definition.scenarios {
        if let Some(why) = missing(part, args.data.as_deref()) {
            left_out.push(format!("left out {}: {why}", part.name));
            continue;
        }
        let mut scenario = match (&part.import, &part.varied) {
            (Some(trace), _) => imported(trace, part, args)?,
            (None, Some(varied)) => Scenario::read_varied(&args.folder.join(&varied.file), &varied.with)?,
            (None, None) => Scenario::read(&args.folder.join(&part.name))?,
        };
        if let Some(error) = part.misjudged {
            scenario.estimates = Estimates::Uniform { error };
        }
        policies::find_all(definition.policies_of(part), &scenario)?;
        let observed = read_observed(part, &scenario, args)?;
        ready.push(Ready { part, scenario, observed });
    }
    match ready.is_empty() {
        true => Err(Failure::input(format!("run {}: nothing is left of it", args.folder.display()))
            .noting(&left_out)
            .hint("`METRONOME_DATA` names the folder of public traces to `cargo xtask experiment`")),
        false => Ok((ready, left_out)),
    }
}

/// Why a scenario cannot be run here: what it needs of the folder of data is not there.
fn missing(part: &Part, data: Option<&Path>) -> Option<String> {
    let first = part.data().next()?;
    let Some(data) = data else { return Some(format!("no folder of public traces is given for {first}")) };
    let absent = part.data().map(|file| data.join(file)).find(|path| !path.exists())?;
    Some(format!("there is no {}", absent.display()))
}

/// Writes the scenario and its trace below the folder of the experiment, where they can be looked at and are not
/// committed.
fn imported(trace: &Import, part: &Part, args: &Experiment) -> Result<Scenario, Failure> {
    let imported = trace.read(args.data.as_deref().unwrap_or(Path::new("")), &args.folder)?;
    let folder = args.folder.join("imported");
    fs::create_dir_all(&folder).map_err(|error| input::cannot_write(&folder, &error))?;
    let file = folder.join(format!("{}.yaml", part.name));
    imported.write(&file).map_err(|error| Failure::from_world(&error))?;
    Ok(Scenario::read(&file)?)
}

fn read_observed(part: &Part, scenario: &Scenario, args: &Experiment) -> Result<Vec<Outcome>, Failure> {
    let data = args.data.as_deref().unwrap_or(Path::new(""));
    let gpus = scenario.cluster.capacity().gpus;
    let read = part.observed.iter().map(|of| import::testbed(&data.join(&of.file), &of.name, gpus));
    Ok(read.collect::<Result<_, _>>()?)
}

fn write(
    folder: &Path,
    definition: &Definition,
    measured: &Measured,
    verdicts: &[Verdict],
    published: &Published,
) -> Result<(), Failure> {
    let first = measured.scenarios.first().map(|(name, _)| name);
    let of_first: Vec<Pairs> =
        measured.pairs.iter().filter(|of| Some(&of.scenario) == first).cloned().collect();
    let drawn = definition.pairs.iter().map(|table| picture(table, &of_first, published, measured.seeds));
    let written = Written {
        results: document(measured, verdicts),
        charts: charts(&definition.charts, measured).into_iter().chain(drawn).collect(),
        markdown: markdown(measured, definition, verdicts),
    };
    written.put_into(folder)
}

/// What lies beside a definition after a run.
struct Written {
    results: String,
    charts: Vec<(String, String)>,
    markdown: String,
}

impl Written {
    fn put_into(&self, folder: &Path) -> Result<(), Failure> {
        let put = |file: &str, text: &str| {
            let path = folder.join(file);
            fs::write(&path, text).map_err(|error| input::cannot_write(&path, &error))
        };
        put("results.json", &self.results)?;
        self.charts.iter().try_for_each(|(file, svg)| put(file, svg))?;
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        match with_results(&readme, &self.markdown) {
            Some(readme) => put("README.md", &readme),
            None => Ok(()),
        }
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
impl Experiment {
    /// All of what a folder asks.
    fn of(folder: &Path) -> Self {
        let (seeds, data, only, set, minutes) = Default::default();
        Self { folder: folder.to_owned(), seeds, data, only, set, python: "python3".into(), minutes }
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
        run(&Experiment::of(folder)).unwrap()
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
        let failure = run(&Experiment::of(empty.path())).unwrap_err();
        assert_eq!(failure.tell(), Exit::WrongUse);
    }

    /// Two jobs of 8 GPUs one after the other, as a trace of Muri, and what became of them on a testbed.
    fn with_trace(at_most: f64) -> tempfile::TempDir {
        let folder = folder(at_most);
        let put = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        put(
            "trace.csv",
            "job_id,num_gpu,submit_time,duration,iterations,iteration_time\n0,8,0,60000,60,1000\n1,8,0,60000,60,1000\n",
        );
        put(
            "seen.csv",
            "job_id,num_gpu,submit_time,start_time,end_time,real_executed_time,duration,job_counter\n\
             0,8,0,0,100,90,60,1\n1,8,0,400,500,90,60,1\n",
        );
        let definition = fs::read_to_string(folder.path().join("experiment.json")).unwrap();
        let both = r#"["two-gangs.yaml", {"name": "tiny", "policies": ["volcano", "srtf", "metronome"],
            "import": {"format": "muri", "file": "trace.csv", "nodes": 1, "gpusPerNode": 8},
            "observed": [{"name": "seen", "policy": "srtf", "file": "seen.csv"}]}]"#;
        put("experiment.json", &definition.replace("[\"two-gangs.yaml\"]", both));
        folder
    }

    #[test]
    fn a_trace_is_imported_when_it_is_run_and_what_was_seen_stands_beside() {
        let folder = with_trace(100.0);
        let data = Some(folder.path().to_owned());
        let reply = run(&Experiment { seeds: Some(1), data, ..Experiment::of(folder.path()) }).unwrap();
        assert_eq!(reply.exit(), Exit::Done, "{}", reply.said());
        let results = fs::read_to_string(folder.path().join("results.json")).unwrap();
        let results: serde_json::Value = serde_json::from_str(&results).unwrap();
        let policies: Vec<_> =
            results["scenarios"][1]["summary"].as_array().unwrap().iter().map(|row| &row["policy"]).collect();
        assert_eq!(policies, ["volcano", "srtf", "metronome", "seen"]);
        // 30 s for each start and 60 s of work; the second begins with the second round.
        assert_eq!(results["scenarios"][1]["summary"][1]["jct_s"]["mean"], (90.0 + 450.0) / 2.0);
        assert_eq!(results["scenarios"][1]["summary"][3]["jct_s"]["mean"], 300.0);
        assert_eq!(results["beside"][0]["jct_ratio"]["p90"], 0.9);
    }

    #[test]
    fn without_its_trace_a_scenario_is_left_out_and_nothing_is_written() {
        let folder = with_trace(100.0);
        let reply = run_in(folder.path());
        assert!(!reply.said().contains("trace") && reply.said().contains("two-gangs"), "{}", reply.said());
        assert!(!folder.path().join("results.json").exists());
        let only = fs::read_to_string(folder.path().join("experiment.json")).unwrap();
        let only = only.replace("\"two-gangs.yaml\", ", "");
        fs::write(folder.path().join("experiment.json"), only).unwrap();
        let asked = Experiment::of(folder.path());
        assert_eq!(run(&asked).unwrap_err().tell(), Exit::WrongUse, "nothing is left to run");
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
