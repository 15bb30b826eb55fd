//! What is committed beside the definition: `results.json`, charts, and the results in the README. Equal runs write
//! equal bytes.

use serde::Serialize;

use super::waits::{PolicyWaits, rows};
use super::{Beside, Chart, Definition, Measured, Pairs, Verdict, chart, pair_rows};
use crate::results::{Bound, Comparison, PolicySummary};

/// `results.json`: one line for each run and each summary, so that a difference shows what changed.
pub fn document(measured: &Measured, verdicts: &[Verdict]) -> String {
    let waits: Vec<String> = measured.waits.iter().flat_map(|(file, of)| wait_lines(file, of)).collect();
    let waits = match waits.is_empty() {
        true => String::new(),
        false => format!(",\n  \"waits\": [{}]", lines(waits, "    ")),
    };
    let scenarios: Vec<String> = measured.scenarios.iter().map(|(file, of)| scenario(file, of)).collect();
    format!(
        "{{\n  \"version\": 1,\n  \"experiment\": {},\n  \"seeds\": {},\n  \"bars\": [{}],\n{}  \"scenarios\": [{}]{waits}\n}}\n",
        json(&measured.experiment),
        measured.seeds,
        lines(verdicts.iter().map(json), "    "),
        beside(&measured.beside) + &paired(&measured.pairs),
        lines(scenarios, "    "),
    )
}

/// Only where something was measured elsewhere.
fn beside(pairs: &[Beside]) -> String {
    match pairs {
        [] => String::new(),
        pairs => format!("  \"beside\": [{}],\n", lines(pairs.iter().map(json), "    ")),
    }
}

/// Only where jobs were compared with themselves.
fn paired(pairs: &[Pairs]) -> String {
    match pairs {
        [] => String::new(),
        pairs => format!("  \"pairs\": [{}],\n", lines(pairs.iter().map(json), "    ")),
    }
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

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("figures are numbers, names are text")
}

pub(super) fn lines(items: impl IntoIterator<Item = String>, indent: &str) -> String {
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
    let runs = if measured.seeds == 1 {
        "One run each".to_owned()
    } else {
        format!("Means over {} seeds", measured.seeds)
    };
    let mut parts = vec![format!("{runs}; times in seconds.")];
    for (file, comparison) in &measured.scenarios {
        parts.push(table(file, &comparison.summary));
        let pairs: Vec<&Beside> = measured.beside.iter().filter(|pair| pair.scenario == *file).collect();
        parts.extend((!pairs.is_empty()).then(|| job_by_job(&pairs)));
    }
    for (file, _) in measured.scenarios.iter().filter(|_| !measured.pairs.is_empty()) {
        let pairs: Vec<Pairs> = measured.pairs.iter().filter(|of| of.scenario == *file).cloned().collect();
        parts.push(format!("**{file}, job by job**\n\n{}", pair_table(&pairs)));
    }
    let pictured = definition.pairs.iter().map(|table| format!("![{}]({})", table.title, table.file));
    parts.extend(pictured);
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

fn pair_table(pairs: &[Pairs]) -> String {
    let line = |cells: &Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<String> = pair_rows(pairs).iter().map(line).collect();
    lines.insert(1, format!("|---{}|", "|---:".repeat(6)));
    lines.join("\n")
}

fn wait_table(waits: &[PolicyWaits]) -> String {
    let line = |cells: &Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<String> = rows(waits).iter().map(line).collect();
    lines.insert(1, format!("|---|---|---{}|", "|---:".repeat(waits.len())));
    lines.join("\n")
}

/// Where jobs have deadlines, these are what is asked about.
fn deadline_table(file: &str, summary: &[PolicySummary]) -> String {
    let head = "| policy | in time | of | share | strict missed | admitted, missed | promised, missed | mean JCT \
                | best-effort mean JCT | GPU use | CPU used of what was held | the same, serial ≤ 1 % | resizes | in place | preemptions |";
    let mut lines = vec![format!("**{file}**\n"), head.to_owned(), format!("|---{}|", "|---:".repeat(14))];
    lines.extend(summary.iter().map(deadline_row));
    lines.join("\n")
}

fn deadline_row(summary: &PolicySummary) -> String {
    let figures = &summary.figures;
    let due = &figures.deadlines;
    let missed = |of: &Bound<f64>| format!("{:.1}, {:.1}", of.total, of.missed);
    let cells = [
        format!("{:.1}", due.met),
        format!("{:.0}", due.total),
        cell(due.share, 4),
        format!("{:.1}", due.strict.missed),
        missed(&due.admitted),
        missed(&due.promised),
        cell(figures.jct_s.mean, 1),
        cell(figures.best_effort.jct_mean_s, 1),
        cell(figures.gpu_utilisation.mean, 3),
        cell(figures.cpu_allocated_utilisation.mean, 3),
        cell(figures.cpu_allocated_utilisation.nearly_parallel, 3),
        format!("{:.0}", figures.resizes),
        format!("{:.0}", figures.resizes_in_place),
        format!("{:.0}", figures.preemptions),
    ];
    format!("| {} | {} |", summary.policy, cells.join(" | "))
}

fn table(file: &str, summary: &[PolicySummary]) -> String {
    if summary.iter().any(|policy| policy.figures.deadlines.total > 0.0) {
        return deadline_table(file, summary);
    }
    if summary.iter().any(|policy| policy.figures.quality_s.to_90.is_some()) {
        return quality_table(file, summary);
    }
    if summary.iter().all(|policy| policy.figures.gpu_utilisation.mean.is_none()) {
        return plain_table(file, summary);
    }
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

/// Where it is known what jobs learn.
fn quality_table(file: &str, summary: &[PolicySummary]) -> String {
    let head = "| policy | done | deadlocked | to 90 % | to 95 % | to 99 % | mean JCT | p99 JCT | GPU use | moves \
                | resizes | preemptions |";
    let mut lines = vec![format!("**{file}**\n"), head.to_owned(), format!("|---{}|", "|---:".repeat(11))];
    lines.extend(summary.iter().map(|PolicySummary { policy, figures }| {
        let quality = &figures.quality_s;
        let times = [quality.to_90, quality.to_95, quality.to_99, figures.jct_s.mean, figures.jct_s.p99];
        let mut cells =
            [figures.jobs.completed, figures.jobs.deadlocked].map(|count| format!("{count:.1}")).to_vec();
        cells.extend(times.map(|time| cell(time, 0)));
        cells.push(cell(figures.gpu_utilisation.mean, 3));
        cells
            .extend([figures.moves, figures.resizes, figures.preemptions].map(|count| format!("{count:.0}")));
        format!("| {policy} | {} |", cells.join(" | "))
    }));
    lines.join("\n")
}

/// Where there are no GPUs.
fn plain_table(file: &str, summary: &[PolicySummary]) -> String {
    let head = "| policy | done | mean JCT | median JCT | p90 JCT | p99 JCT | makespan | moves |";
    let mut lines = vec![format!("**{file}**\n"), head.to_owned(), format!("|---{}|", "|---:".repeat(7))];
    lines.extend(summary.iter().map(|PolicySummary { policy, figures }| {
        let times = [figures.jct_s.mean, figures.jct_s.median, figures.jct_s.p90, figures.jct_s.p99];
        let times = times.into_iter().chain([figures.makespan_s]).map(|time| cell(time, 1));
        let times: Vec<String> = times.collect();
        format!("| {policy} | {:.1} | {} | {:.1} |", figures.jobs.completed, times.join(" | "), figures.moves)
    }));
    lines.join("\n")
}

fn job_by_job(pairs: &[&Beside]) -> String {
    let mut lines = vec![
        "| job by job | jobs | JCT ratio p10 | median | p90 | mean distance | rank correlation | starts | observed |"
            .to_owned(),
        format!("|---{}|", "|---:".repeat(8)),
    ];
    lines.extend(pairs.iter().map(|pair| {
        let Beside { policy, observed, jobs, jct_ratio, simulated_starts, observed_starts, .. } = pair;
        let ratios = [jct_ratio.p10, jct_ratio.median, jct_ratio.p90, pair.jct_distance].map(Some);
        let cells: Vec<String> =
            ratios.into_iter().chain([pair.rank_correlation]).map(|ratio| cell(ratio, 3)).collect();
        format!(
            "| {policy} over {observed} | {jobs} | {} | {simulated_starts} | {observed_starts} |",
            cells.join(" | ")
        )
    }));
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
