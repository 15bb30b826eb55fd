//! Tables of what came out, and what is committed of it.

use std::fmt::Write;

use serde_json::{Value, json};

use super::super::real::markdown;
use super::super::{Written, name};
use super::definition::Mixes;
use super::judge::{Alone, MixReport, PolicyReport, SetReport};
use super::rows::Row;
use super::statistics::mean;
use crate::table;

type Table = Vec<Vec<String>>;

/// What the command prints of a set.
pub(super) fn text(mixes: &Mixes, report: &SetReport) -> String {
    let tables = [times(report), gains(report), profiles(report, &mixes.ours)];
    let tables: Vec<String> = tables.iter().map(|rows| table::plain(rows)).collect();
    format!("{}\n\n{}\n", tables.join("\n\n"), lines(report).join("\n"))
}

/// The verdicts, and what they rest on.
fn lines(report: &SetReport) -> Vec<String> {
    let word = |met| if met { "met" } else { "MISSED" };
    let mut lines: Vec<String> =
        report.verdicts.iter().map(|verdict| format!("{}: {}", word(verdict.met), verdict.says)).collect();
    if report.missing > 0 {
        lines.push(format!("{} runs of {} are missing", report.missing, report.set));
    }
    if report.failed > 0 {
        lines.push(format!("{} runs of {} have failed", report.failed, report.set));
    }
    if report.builds > 1 {
        lines.push(format!("runs of {} are of {} builds of the program", report.set, report.builds));
    }
    lines
}

pub(super) fn written(mixes: &Mixes, folder: &std::path::Path, reports: &[SetReport]) -> Written {
    let document = rounded(json!({"version": 1, "experiment": name(folder), "sets": reports}));
    let sections = reports.iter().map(|report| {
        let mut text = format!("### {}\n\n{}\n", report.set, lines(report).join("  \n"));
        let tables = [
            (times(report), "|---|---|---|---:|---:|---:|---:|---|---:|---:|"),
            (gains(report), "|---|---|---:|---:|---|---|"),
            (profiles(report, &mixes.ours), "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"),
        ];
        for (rows, aligned) in tables {
            write!(text, "\n{}\n", markdown(&rows, aligned)).expect("a string takes everything");
        }
        text.trim_end().to_owned()
    });
    Written {
        results: serde_json::to_string_pretty(&document).expect("figures are numbers, names are text") + "\n",
        charts: Vec::new(),
        markdown: sections.collect::<Vec<_>>().join("\n\n"),
    }
}

/// Every figure to four places.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let figure = number.as_f64().unwrap_or_default();
            json!((figure * 1e4).round() / 1e4)
        }
        Value::Array(values) => values.into_iter().map(rounded).collect(),
        Value::Object(values) => values.into_iter().map(|(key, value)| (key, rounded(value))).collect(),
        other => other,
    }
}

fn head(words: &[&str]) -> Table {
    vec![words.iter().map(|word| (*word).to_owned()).collect()]
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

fn milliseconds(value: f64) -> String {
    format!("{value:.1}")
}

fn times(report: &SetReport) -> Table {
    let mut table = head(&[
        "mix",
        "policy",
        "job",
        "separate ms",
        "bound ms",
        "mean ms",
        "second half ms",
        "over fair",
        "simulated ms",
        "error",
    ]);
    for mix in &report.mixes {
        for policy in &mix.policies {
            for (job, alone) in policy.jobs.iter().zip(&mix.jobs) {
                table.push(vec![
                    mix.mix.clone(),
                    policy.policy.clone(),
                    format!("{} {}", job.job, alone.model),
                    milliseconds(alone.mean_ms),
                    milliseconds(alone.bound_ms),
                    milliseconds(job.mean_ms),
                    milliseconds(job.second_half_ms),
                    or_none(job.over_fair.map(|ratio| ratio.text())),
                    or_none(job.simulated_ms.map(milliseconds)),
                    or_none(job.simulated_error().map(|error| format!("{:+.1} %", error * 100.0))),
                ]);
            }
        }
    }
    table
}

fn gains(report: &SetReport) -> Table {
    let mut table = head(&["mix", "models", "duty", "fair over bound", "policy", "gain over gap"]);
    let row = |mix: &MixReport, policy: &PolicyReport| {
        let gain = policy.gain?;
        let over_bound = or_none(mix.fair_over_bound.map(|ratio| format!("{ratio:.3}")));
        let (duty, models) = (format!("{:.2}", mix.duty), mix.models.words().to_owned());
        Some(vec![mix.mix.clone(), models, duty, over_bound, policy.policy.clone(), gain.text()])
    };
    for mix in &report.mixes {
        table.extend(mix.policies.iter().filter_map(|policy| row(mix, policy)));
    }
    table
}

/// What is learned beside other jobs against what is learned alone and what is true, and what it leads to.
fn profiles(report: &SetReport, ours: &str) -> Table {
    let mut table = head(&[
        "mix",
        "job",
        "period ms",
        "learned alone ms",
        "learned beside ms",
        "kB",
        "learned alone kB",
        "learned beside kB",
        "first used after",
        "first directive after",
        "directives",
        "settling over fair",
    ]);
    for mix in &report.mixes {
        table.extend(mix.jobs.iter().map(|job| profile(mix, job, ours)));
    }
    table
}

fn profile(mix: &MixReport, job: &Alone, ours: &str) -> Vec<String> {
    let rows: Vec<&Row> = mix.rows.iter().filter(|row| row.policy == ours && row.job == job.job).collect();
    let average = |figure: &dyn Fn(&Row) -> Option<f64>| {
        mean(&rows.iter().filter_map(|row| figure(row)).collect::<Vec<_>>())
    };
    let count =
        |figure: &dyn Fn(&Row) -> Option<f64>| or_none(average(figure).map(|value| format!("{value:.0}")));
    let kilobytes = |bytes: f64| format!("{:.0}", bytes / 1e3);
    let first_directive =
        |row: &Row| Some(row.directives.iter().find(|told| told.what.is_some())?.iteration as f64);
    vec![
        mix.mix.clone(),
        format!("{} {}", job.job, job.model),
        milliseconds(job.mean_ms),
        or_none(job.learned.map(|learned| milliseconds(learned.period_ms))),
        or_none(average(&|row| Some(row.learned?.period_ms)).map(milliseconds)),
        kilobytes(job.bytes as f64),
        or_none(job.learned.map(|learned| kilobytes(learned.bytes))),
        or_none(average(&|row| Some(row.learned?.bytes)).map(kilobytes)),
        count(&|row| row.first_used.map(|after| after as f64)),
        count(&first_directive),
        or_none(average(&|row| Some(row.directives.len() as f64)).map(|count| format!("{count:.1}"))),
        or_none(
            average(&|row| Some(row.settling_ms? / row.settling_fair_ms?)).map(|ratio| format!("{ratio:.3}")),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::definition::tests::mixes;
    use super::super::judge::{report, tests::known};
    use super::*;

    #[test]
    fn results_have_a_table_for_times_gains_and_profiles() {
        let folder = tempfile::tempdir().unwrap();
        let (mixes, known) = (mixes(), known(folder.path(), &[[150.0, 120.0], [152.0, 121.0]]));
        let report = report(&mixes, &mixes.sets[0], &known, &|_, _, _, _| None).unwrap();
        let text = text(&mixes, &report);
        assert!(text.contains("\nmet: metronome gains 0.598 ± 0.024 of the gap"), "{text}");
        assert!(text.contains("\n9 runs of small are missing"), "{text}");
        let written = written(&mixes, folder.path(), &[report]);
        assert!(
            written.markdown.starts_with("### small\n\nmet: metronome gains 0.598"),
            "{}",
            written.markdown
        );
        let row =
            "| twins | metronome | job-0 sleep | 100.0 | 100.0 | 120.5 | 120.5 | 0.798 ± 0.025 | – | – |";
        assert!(written.markdown.contains(row), "{}", written.markdown);
        let results: serde_json::Value = serde_json::from_str(&written.results).unwrap();
        assert_eq!(results["sets"][0]["mixes"][0]["rows"].as_array().unwrap().len(), 8);
        assert_eq!(results["sets"][0]["mixes"][0]["policies"][1]["gain"]["mean"], 0.598);
        assert!(!written.results.contains("seconds"), "wall-clock times of runs are no results");
    }
}
