//! What is committed beside the definition: `results.json`, charts, and the results in the README. Equal runs write
//! equal bytes.

use serde::Serialize;

use super::waits::{PolicyWaits, rows};
use super::{Chart, Definition, Measured, Verdict, chart};
use crate::results::{Comparison, PolicySummary};

/// `results.json`: one line for each run and each summary, so that a difference shows what changed.
pub fn document(measured: &Measured, verdicts: &[Verdict]) -> String {
    let waits: Vec<String> = measured.waits.iter().flat_map(|(file, of)| wait_lines(file, of)).collect();
    let waits = match waits.is_empty() {
        true => String::new(),
        false => format!(",\n  \"waits\": [{}]", lines(waits, "    ")),
    };
    let scenarios: Vec<String> = measured.scenarios.iter().map(|(file, of)| scenario(file, of)).collect();
    format!(
        "{{\n  \"version\": 1,\n  \"experiment\": {},\n  \"seeds\": {},\n  \"bars\": [{}],\n  \"scenarios\": [{}]{waits}\n}}\n",
        json(&measured.experiment),
        measured.seeds,
        lines(verdicts.iter().map(json), "    "),
        lines(scenarios, "    "),
    )
}

fn scenario(file: &str, comparison: &Comparison) -> String {
    format!(
        "{{\"file\": {}, \"scenario\": {},\n     \"summary\": [{}],\n     \"results\": [{}]}}",
        json(&file),
        json(&comparison.scenario),
        lines(comparison.summary.iter().map(json), "      "),
        lines(comparison.results.iter().map(json), "      "),
    )
}

fn wait_lines(file: &str, waits: &[PolicyWaits]) -> Vec<String> {
    let line = |of: &PolicyWaits| format!("{{\"file\": {}, \"waits\": {}}}", json(&file), json(of));
    waits.iter().map(line).collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("figures are numbers, names are text")
}

fn lines(items: impl IntoIterator<Item = String>, indent: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\n{indent}{item}")).collect();
    items.join(",")
}

/// File and text of each chart.
pub fn charts(charts: &[Chart], measured: &Measured) -> Vec<(String, String)> {
    charts.iter().map(|of| (of.file.clone(), chart::draw(of, measured))).collect()
}

const BEGIN: &str = "<!-- results: written by `cargo xtask experiment` -->\n";
const END: &str = "<!-- end of results -->";

/// A README with the results between its two marks; nothing where it has none.
pub fn with_results(readme: &str, results: &str) -> Option<String> {
    let (before, rest) = readme.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{results}\n{END}{after}"))
}

/// The results as tables for each scenario, and the bars.
pub fn markdown(measured: &Measured, definition: &Definition, verdicts: &[Verdict]) -> String {
    let mut parts = vec![format!("Means over {} seeds; times in seconds.", measured.seeds)];
    parts.extend(measured.scenarios.iter().map(|(file, comparison)| table(file, &comparison.summary)));
    for (file, waits) in &measured.waits {
        let title = definition.waits.as_ref().map_or("", |table| &table.title);
        parts.push(format!("**{file}: {title}**\n\n{}", wait_table(waits)));
    }
    parts.extend(definition.charts.iter().map(|chart| format!("![{}]({})", chart.title, chart.file)));
    if !verdicts.is_empty() {
        let items: Vec<String> = verdicts.iter().map(|verdict| format!("- {}", verdict.sentence())).collect();
        parts.push(items.join("\n"));
    }
    parts.join("\n\n") + "\n"
}

fn wait_table(waits: &[PolicyWaits]) -> String {
    let line = |cells: &Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<String> = rows(waits).iter().map(line).collect();
    lines.insert(1, format!("|---|---|---{}|", "|---:".repeat(waits.len())));
    lines.join("\n")
}

fn table(file: &str, summary: &[PolicySummary]) -> String {
    let mut lines = vec![
        format!("**{file}**\n"),
        "| policy | done | deadlocked | mean JCT | p99 JCT | mean queueing | mean slowdown | p99 slowdown \
         | high class p99 | mean exchange | GPU use | link use |"
            .to_owned(),
        format!("|---{}|", "|---:".repeat(11)),
    ];
    lines.extend(summary.iter().map(row));
    lines.join("\n")
}

fn row(summary: &PolicySummary) -> String {
    let figures = &summary.figures;
    let times = [figures.jct_s.mean, figures.jct_s.p99, figures.queueing_s.mean].map(|time| cell(time, 1));
    let slow = [figures.slowdown.mean, figures.slowdown.p99, figures.by_priority.high.slowdown_p99];
    let shares = [figures.gpu_utilisation.mean, figures.link_utilisation.mean];
    let cells: Vec<String> = [figures.jobs.completed, figures.jobs.deadlocked]
        .map(|count| format!("{count:.1}"))
        .into_iter()
        .chain(times)
        .chain(slow.map(|ratio| cell(ratio, 3)))
        .chain([cell(figures.exchange_s.mean, 4)])
        .chain(shares.map(|share| cell(share, 3)))
        .collect();
    format!("| {} | {} |", summary.policy, cells.join(" | "))
}

fn cell(value: Option<f64>, decimals: usize) -> String {
    value.map_or("–".into(), |value| format!("{value:.decimals$}"))
}
