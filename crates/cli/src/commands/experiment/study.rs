//! Experiments on one link, without a cluster.

use std::path::Path;

use metronome_sim::experiment::{Cells, Study, Verdict};

use super::{Experiment, Written, judged, name};
use crate::failure::Failure;
use crate::reply::Reply;
use crate::table;

pub(super) fn run(args: &Experiment, study: &Study) -> Result<Reply, Failure> {
    let data = folder_of_data(args, study)?;
    let cells = study
        .run(data, args.seeds)
        .map_err(|error| Failure::input(format!("run {}", args.folder.display())).because(&error))?;
    let verdicts = cells.judge(study);
    let written = Written {
        results: cells.document(&name(&args.folder), &verdicts),
        charts: cells.charts(study),
        markdown: cells.markdown(study, &verdicts),
    };
    written.put_into(&args.folder)?;
    Ok(judged(Reply::nothing().saying(words(&cells, &verdicts)), &verdicts))
}

/// Half an answer must not take the place of a whole one, so without its data nothing is run.
fn folder_of_data<'a>(args: &'a Experiment, study: &Study) -> Result<&'a Path, Failure> {
    let Some(first) = study.data().first() else { return Ok(Path::new("")) };
    let folder = args.data.as_deref();
    folder.filter(|data| study.data().iter().all(|file| data.join(file).exists())).ok_or_else(|| {
        Failure::input(format!("run {}: there is no folder of data with {first}", args.folder.display()))
            .hint("`METRONOME_DATA` names the folder of public traces to `cargo xtask experiment`")
    })
}

fn words(cells: &Cells, verdicts: &[Verdict]) -> String {
    let tables: Vec<String> = cells.tables().iter().map(|(_, rows)| table::plain(rows) + "\n").collect();
    let bars: String = verdicts.iter().map(|verdict| verdict.sentence() + "\n").collect();
    format!("{}\n\n{}\n{bars}", cells.runs, tables.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::super::run as run_experiment;
    use super::*;
    use crate::exit::Exit;
    use std::fs;

    /// Two small studies of the same link.
    fn asked(link: &str, bar: &str) -> (tempfile::TempDir, Experiment) {
        let folder = tempfile::tempdir().unwrap();
        let definition = format!(
            r#"{{"version": 1, "link": {link}, "policies": ["fair", "classes"], "bars": [{bar}],
            "charts": [{{"metric": "slowdown", "file": "slowdown.svg", "title": "Slowdown"}}]}}"#
        );
        fs::write(folder.path().join("experiment.json"), definition).unwrap();
        let args = Experiment { seeds: Some(1), ..Experiment::of(folder.path()) };
        (folder, args)
    }

    #[test]
    fn loops_are_run_judged_and_written() {
        let link = r#"{"kind": "loops", "sets": 400, "noise": [0, 20]}"#;
        let bar = r#"{"metric": "slowdown", "policy": "classes", "against": "fair", "atMost": 0.5, "scenario": "equal 2%"}"#;
        let (folder, args) = asked(link, bar);
        let reply = run_experiment(&args).unwrap();
        assert_eq!(reply.exit(), Exit::FellShort);
        assert!(
            reply.said().contains("MISSED: slowdown of classes over fair in equal 2% is"),
            "{}",
            reply.said()
        );
        let results = fs::read_to_string(folder.path().join("results.json")).unwrap();
        let results: serde_json::Value = serde_json::from_str(&results).unwrap();
        assert_eq!(results["cells"].as_array().unwrap().len(), 2 * 3 * 2);
        assert!(folder.path().join("slowdown.svg").exists());
    }

    #[test]
    fn without_measured_noise_there_is_nothing_to_draw_from() {
        let link = r#"{"kind": "loops", "sets": 1, "noise": [0], "measured": ["jitter/none.csv.gz"]}"#;
        let (_folder, args) = asked(link, "");
        assert_eq!(run_experiment(&args).unwrap_err().tell(), Exit::WrongUse);
    }

    #[test]
    fn a_figure_that_there_is_not_is_wrong_use() {
        let link = r#"{"kind": "mixes", "triples": 0, "seeds": 1}"#;
        let bar = r#"{"metric": "jct_s.mean", "policy": "classes", "atMost": 1.0}"#;
        let (_folder, args) = asked(link, bar);
        assert_eq!(run_experiment(&args).unwrap_err().tell(), Exit::WrongUse);
    }
}
