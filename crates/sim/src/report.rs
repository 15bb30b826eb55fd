//! One HTML file that shows what happened: what it comes down to in words, the figures, and pictures of every policy
//! on common axes. It needs nothing beside itself: no script, font or image from elsewhere.
//!
//! Facts come from outcomes and figures from `results`; nothing is measured here. With several seeds the figures are
//! means over all, and the pictures show the seed that is most like them.

mod areas;
pub mod axis;
mod circle;
mod distribution;
mod heat;
mod legend;
mod links;
mod pace;
mod sharing;
pub mod svg;
mod table;
pub mod text;
mod timeline;
mod tip;
mod verdict;

use crate::outcome::Outcome;
use crate::results::{Comparison, PolicySummary, RunResult};
use text::escape;

pub(crate) use axis::Axis;
pub use verdict::{headline, sentences};

/// The look of reports. Pages of other kinds that are drawn with [`svg`] begin with it.
pub const STYLE: &str = include_str!("report/style.css");

/// What the pictures show of one policy.
#[derive(Clone, Copy)]
struct Shown<'a> {
    outcome: &'a Outcome,
    summary: &'a PolicySummary,
    /// Its place among the policies, from 0.
    index: usize,
}

/// The report as the text of one file.
pub fn html(scenario: &str, outcomes: &[Outcome]) -> String {
    let comparison = Comparison::of(scenario, outcomes);
    let seed = typical_seed(&comparison);
    let shown = runs_with(seed, &comparison, outcomes);
    let parts = [
        opening(&comparison),
        table::section(&comparison.summary),
        timeline::section(&shown),
        links::section(&shown),
        sharing::section(&shown),
        distribution::section(&shown),
        closing(outcomes, seed),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} – Metronome</title>\n<style>\n{}</style>\n</head>\n<body>\n{}\n</main>\n\
         <div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{}</script>\n</body>\n</html>\n",
        escape(scenario),
        STYLE,
        parts.concat(),
        include_str!("report/hover.js"),
    )
}

/// The run of each policy with that seed, in the order of the summary.
fn runs_with<'a>(seed: u64, comparison: &'a Comparison, outcomes: &'a [Outcome]) -> Vec<Shown<'a>> {
    let run = |policy: &str| outcomes.iter().find(|outcome| outcome.policy == policy && outcome.seed == seed);
    let shown = |(index, summary): (usize, &'a PolicySummary)| {
        Some(Shown { outcome: run(&summary.policy)?, summary, index })
    };
    comparison.summary.iter().enumerate().filter_map(shown).collect()
}

/// The seed whose mean completion times are nearest to the means over all seeds, policies taken together: pictures of
/// it show what the figures say, neither better nor worse.
fn typical_seed(comparison: &Comparison) -> u64 {
    let mut seeds: Vec<u64> = comparison.results.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let distance = |seed: u64| -> f64 {
        let runs = comparison.results.iter().filter(|run| run.seed == seed);
        let far = |run: &RunResult| {
            let of_policy = |summary: &&PolicySummary| summary.policy == run.policy;
            let mean = comparison.summary.iter().find(of_policy)?.figures.jct_s.mean?;
            Some((run.figures.jct_s.mean? / mean).ln().abs())
        };
        runs.filter_map(far).sum()
    };
    seeds.into_iter().min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap_or(1)
}

fn opening(comparison: &Comparison) -> String {
    let sentences: String =
        sentences(comparison).iter().map(|sentence| format!("<p>{}</p>\n", escape(sentence))).collect();
    format!(
        "<header>\n<p class=\"name\"><b>Metronome</b> · {}</p>\n<h1>{}</h1>\n{sentences}{}</header>\n<main>\n",
        escape(&comparison.scenario),
        escape(&headline(comparison)),
        legend::tiles(comparison),
    )
}

fn closing(outcomes: &[Outcome], shown: u64) -> String {
    let mut seeds: Vec<u64> = outcomes.iter().map(|outcome| outcome.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let runs = match seeds.as_slice() {
        [] => "nothing was run".to_owned(),
        [seed] => format!("seed {seed}"),
        [first, .., last] => {
            format!(
                "figures are means over the seeds {first} to {last}; pictures show seed {shown}, the most like them"
            )
        }
    };
    format!("<footer><p>Simulated in virtual time, {runs}. The same seed gives the same run.</p></footer>\n")
}

/// A section with a heading and one line that says what is seen.
fn section(heading: &str, says: &str, content: &str) -> String {
    format!("<section>\n<h2>{heading}</h2>\n<p class=\"says\">{says}</p>\n{content}</section>\n")
}

/// A picture under the name of its policy.
fn figure(shown: &Shown, says: &str, picture: &str) -> String {
    format!(
        "<figure><figcaption><b class=\"{}\">{}</b> <span>{}</span></figcaption>\n{picture}</figure>\n",
        legend::class(&shown.summary.policy, shown.index),
        escape(&shown.summary.policy),
        escape(says),
    )
}
