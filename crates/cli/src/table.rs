//! Figures for people: a table with one row for each policy, or a list for a single run.

use comfy_table::{Cell, CellAlignment, Table, presets};

use metronome_sim::results::{Comparison, Figures, PolicySummary};

/// One row for each policy.
pub(crate) fn comparison(comparison: &Comparison, seeds: u64) -> String {
    let means = if seeds > 1 { format!("; means over {seeds} seeds") } else { String::new() };
    let jobs = submitted(comparison);
    let head = format!("{}: {jobs} jobs, times in seconds{means}", comparison.scenario);
    let notes: String = comparison.summary.iter().filter_map(never_completed).collect();
    let gap = if notes.is_empty() { "" } else { "\n" };
    format!("{head}\n\n{}\n{gap}{notes}", rows(&comparison.summary))
}

/// Where jobs never completed, low times are no merit; the table alone would not say so.
fn never_completed(summary: &PolicySummary) -> Option<String> {
    let jobs = &summary.figures.jobs;
    let never = jobs.unfinished + jobs.failed;
    (never > 0.0).then(|| {
        let (policy, never, all) = (&summary.policy, count(never), count(jobs.submitted));
        format!("{policy}: {never} of {all} jobs never completed; their times count up to the end of the run only\n")
    })
}

/// The figures of one run, one below the other.
pub(crate) fn single(comparison: &Comparison) -> String {
    let (run, summary) = (&comparison.results[0], &comparison.summary[0]);
    let head =
        format!("{} under {}, seed {}; times in seconds\n\n", comparison.scenario, run.policy, run.seed);
    let mut table = empty_table();
    table.add_row([cell("jobs submitted"), right(submitted(comparison))]);
    let figures = NAMES.iter().zip(values(&summary.figures));
    for (name, value) in figures.filter(|(_, value)| *value != NOT_MEASURED) {
        table.add_row([cell(&on_one_line(name)), right(value)]);
    }
    head + &trimmed(&table) + "\n"
}

fn on_one_line(name: &str) -> String {
    name.replace("-\n", "").replace('\n', " ")
}

fn submitted(comparison: &Comparison) -> String {
    count(comparison.summary.first().map_or(0.0, |summary| summary.figures.jobs.submitted))
}

const NOT_MEASURED: &str = "-";

/// The figures in the table, as they are called above their column.
const NAMES: [&str; 19] = [
    "done",
    "refused",
    "dead-\nlocked",
    "in\ntime",
    "share\nin time",
    "mean\nJCT",
    "median\nJCT",
    "p99\nJCT",
    "make-\nspan",
    "mean\nqueueing",
    "slow-\ndown",
    "GPU\nuse",
    "link\nuse",
    "CPU\nused",
    "preemp-\ntions",
    "moves",
    "resizes",
    "in\nplace",
    "decisions\np99 ms",
];

fn values(figures: &Figures<f64>) -> [String; NAMES.len()] {
    [
        count(figures.jobs.completed),
        count(figures.jobs.refused),
        count(figures.jobs.deadlocked),
        figures.deadlines.share.map_or(NOT_MEASURED.into(), |_| count(figures.deadlines.met)),
        percent(figures.deadlines.share),
        fixed(figures.jct_s.mean),
        seconds(figures.jct_s.median),
        seconds(figures.jct_s.p99),
        seconds(figures.makespan_s),
        fixed(figures.queueing_s.mean),
        fixed(figures.slowdown.mean),
        percent(figures.gpu_utilisation.mean),
        percent(figures.link_utilisation.mean),
        percent(figures.cpu_allocated_utilisation.mean),
        count(figures.preemptions),
        count(figures.moves),
        some(figures.resizes),
        some(figures.resizes_in_place),
        fixed(figures.decisions.p99_ms),
    ]
}

/// What hardly ever happens has no column where it never does.
fn some(number: f64) -> String {
    if number > 0.0 { count(number) } else { NOT_MEASURED.into() }
}

/// A figure that no policy measured has no column.
fn rows(summary: &[PolicySummary]) -> String {
    let all: Vec<_> = summary.iter().map(|policy| values(&policy.figures)).collect();
    let shown: Vec<usize> =
        (0..NAMES.len()).filter(|at| all.iter().any(|values| values[*at] != NOT_MEASURED)).collect();
    let mut table = empty_table();
    table.set_header(std::iter::once(cell("\npolicy")).chain(shown.iter().map(|at| heading(NAMES[*at]))));
    for (policy, values) in summary.iter().zip(all) {
        let figures = shown.iter().map(|at| right(values[*at].clone()));
        table.add_row(std::iter::once(cell(&policy.policy)).chain(figures));
    }
    trimmed(&table)
}

/// Rows of text below their head; what begins with a digit is a figure.
pub(crate) fn plain(rows: &[Vec<String>]) -> String {
    let is_figure = |text: &str| text.starts_with(|first: char| first.is_ascii_digit());
    let cells = |row: &Vec<String>| -> Vec<Cell> {
        row.iter().map(|text| if is_figure(text) { right(text.clone()) } else { cell(text) }).collect()
    };
    let mut table = empty_table();
    rows.iter().for_each(|row| {
        table.add_row(cells(row));
    });
    trimmed(&table)
}

fn empty_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Cells are padded; lines shall not begin or end with blanks.
fn trimmed(table: &Table) -> String {
    let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn cell(text: &str) -> Cell {
    Cell::new(text)
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Short headings stand on the lower of the two lines.
fn heading(name: &str) -> Cell {
    let two_lines = if name.contains('\n') { name.to_owned() } else { format!("\n{name}") };
    right(two_lines)
}

/// A count is whole unless it is a mean over seeds.
fn count(value: f64) -> String {
    shortest(value, 1)
}

/// Means have three decimals, so that they can be compared with published ones.
fn fixed(value: Option<f64>) -> String {
    value.map_or(NOT_MEASURED.into(), |value| format!("{value:.3}"))
}

fn seconds(value: Option<f64>) -> String {
    value.map_or(NOT_MEASURED.into(), |value| shortest(value, 3))
}

fn percent(value: Option<f64>) -> String {
    value.map_or(NOT_MEASURED.into(), |value| format!("{:.1}%", value * 100.0))
}

/// At most that many decimals, and none that say nothing.
fn shortest(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_sim::results::{JctSeconds, Jobs, RunResult};

    fn sample() -> Comparison {
        let jct_s = JctSeconds { mean: Some(178.416_66), median: Some(55.0), p90: None, p99: Some(1234.5) };
        let figures = Figures {
            jobs: Jobs { submitted: 60.0, completed: 59.5, ..Jobs::default() },
            jct_s: jct_s.clone(),
            makespan_s: Some(3271.0),
            ..Figures::default()
        };
        let jobs = Jobs { submitted: 60, completed: 59, ..Jobs::default() };
        let run = Figures { jobs, jct_s, makespan_s: Some(3271.0), ..Figures::default() };
        Comparison {
            version: 1,
            scenario: "sample".into(),
            results: vec![RunResult { policy: "srtf".into(), seed: 3, figures: run }],
            summary: vec![PolicySummary { policy: "srtf".into(), figures }],
        }
    }

    #[test]
    fn means_have_three_decimals_and_counts_none_to_spare() {
        let text = comparison(&sample(), 2);
        let row = text.lines().last().unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let expected = ["srtf", "59.5", "0", "0", "178.417", "55", "1234.5", "3271", "0", "0"];
        assert_eq!(cells, expected);
        assert!(text.starts_with("sample: 60 jobs, times in seconds; means over 2 seeds\n\n"), "{text}");
    }

    #[test]
    fn times_of_jobs_that_never_completed_come_with_a_warning() {
        let mut stuck = sample();
        stuck.summary[0].figures.jobs.unfinished = 7.0;
        let warning = "srtf: 7 of 60 jobs never completed; their times count up to the end of the run only\n";
        let text = comparison(&stuck, 1);
        assert!(text.ends_with(warning), "{text}");
        assert!(!comparison(&sample(), 1).contains("never completed"));
    }

    #[test]
    fn a_single_run_is_a_list() {
        let text = single(&sample());
        assert!(text.starts_with("sample under srtf, seed 3; times in seconds\n\njobs submitted"), "{text}");
        assert!(
            text.lines().any(|line| line.starts_with("mean JCT") && line.ends_with(" 178.417")),
            "{text}"
        );
    }
}
