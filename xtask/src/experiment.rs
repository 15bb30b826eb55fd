//! `cargo xtask experiment`: runs an experiment of `experiments/` again. The program itself does the work, so that
//! this package stays light.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::shell;
use crate::test::data_folder;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Name of the experiment: a folder of `experiments/`
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Run each policy with the seeds 1 to N, whatever the experiment says
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Only these runs of it, separated by commas, where an experiment can be run in pieces
    #[arg(long, value_name = "NAMES")]
    only: Option<String>,
    /// Of mixes of programs the set for this machine
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Interpreter of training programs
    #[arg(long, value_name = "PROGRAM")]
    python: Option<String>,
    /// Begin no run of a program that may end later than N minutes from now; 0 judges the runs that there are
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Name them all
    #[arg(long, conflicts_with_all = ["name", "seeds", "only", "set", "python", "minutes"])]
    list: bool,
}

/// Ends as the program does: 1 where a bar is missed.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let all = experiments(&shell::root()?.join("experiments"))?;
    let Some(name) = &options.name else {
        all.iter().for_each(|(name, question)| println!("{name:<18} {question}"));
        return Ok(ExitCode::SUCCESS);
    };
    let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(known.contains(&name.as_str()), "no experiment called `{name}`: there are {}", known.join(", "));
    let data = data_folder()?;
    Ok(shell::code(&strs(&command(name, options, data.as_deref())))?.into())
}

fn command(name: &str, options: &Options, data: Option<&Path>) -> Vec<String> {
    let run = ["cargo", "run", "--quiet", "--release", "--package", "metronome-cli", "--", "experiment"];
    let given = [
        ("--seeds", options.seeds.map(|seeds| seeds.to_string())),
        ("--only", options.only.clone()),
        ("--set", options.set.clone()),
        ("--python", options.python.clone()),
        ("--minutes", options.minutes.map(|minutes| minutes.to_string())),
        ("--data", data.map(|folder| folder.display().to_string())),
    ];
    let given = given.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
    let folder = format!("experiments/{name}");
    run.into_iter().map(str::to_owned).chain([folder]).chain(given.flatten()).collect()
}

fn strs(line: &[String]) -> Vec<&str> {
    line.iter().map(String::as_str).collect()
}

/// Name and question of each folder with a definition, by name. The question is the heading of its README.
fn experiments(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.join("experiment.json").exists() {
            let readme = fs::read_to_string(path.join("README.md")).unwrap_or_default();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            found.push((name.unwrap_or_default(), question(&readme)));
        }
    }
    found.sort();
    Ok(found)
}

fn question(readme: &str) -> String {
    let heading = readme.lines().next().unwrap_or_default();
    heading.trim_start_matches(['#', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_is_run_by_the_program_with_its_seeds() {
        let options = |seeds, only| Options {
            name: None,
            seeds,
            only,
            set: None,
            python: None,
            minutes: None,
            list: false,
        };
        let line = command("noise", &options(Some(3), None), Some(Path::new("/data"))).join(" ");
        assert!(line.ends_with("-- experiment experiments/noise --seeds 3 --data /data"), "{line}");
        assert!(command("noise", &options(None, None), None).join(" ").ends_with("experiments/noise"));
        let line = command("noise", &options(None, Some("a,b c".into())), None);
        assert_eq!(line[line.len() - 2..], ["--only", "a,b c"]);
        let of_a_set = Options { set: Some("two-cores".into()), minutes: Some(9), ..options(None, None) };
        let line = command("pytorch", &of_a_set, None).join(" ");
        assert!(line.ends_with("experiments/pytorch --set two-cores --minutes 9"), "{line}");
    }

    #[test]
    fn the_question_is_the_heading() {
        assert_eq!(question("# Does it help?\n\nYes.\n"), "Does it help?");
        assert_eq!(question(""), "");
    }
}
