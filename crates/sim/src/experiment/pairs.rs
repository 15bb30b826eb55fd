//! Each job beside itself under another policy: who is slower for it, and by how much; and completion times by rank, beside
//! those that were published.
//!
//! `pairs.slower` is the share of jobs that take longer than under the policy they are compared with, `pairs.much_slower`
//! of those that take more than a tenth longer; `pairs.best` and `pairs.worst` are the least and the largest ratio.
//! `pairs.distance_s` is how far the times by rank, as means over seeds, are from the published ones, on average, and
//! `pairs.ratio_distance` how far the ratios by rank are.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Along;
use super::chart::{self, Bar};
use super::definition::{lies_below, lies_inside};
use crate::import::{CompletionTimes, completion_times};
use crate::outcome::Outcome;
use crate::scenario::InputError;

/// What a definition says of its pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PairTable {
    pub title: String,
    /// The policy that all others are compared with.
    pub with: String,
    /// The SVG file of completion times by rank, of the first scenario.
    pub file: String,
    /// Published completion times of the jobs of the first scenario: a file in the folder of data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
}

/// One policy in one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pairs {
    pub scenario: String,
    pub policy: String,
    pub slower: f64,
    pub much_slower: f64,
    pub best: f64,
    pub worst: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_distance: Option<f64>,
    /// Completion times by rank, means over seeds.
    pub ranked_s: Vec<f64>,
}

impl PairTable {
    /// Where its files lie.
    pub(super) fn check(&self) -> Result<(), super::DefinitionError> {
        lies_inside(&self.file)?;
        self.published.iter().try_for_each(|file| lies_below(file))
    }
}

/// Published times by policy, job by job.
pub type Published = BTreeMap<String, Vec<f64>>;

/// Those of a file that SpeCon's authors' chart was read off to.
pub fn published(table: &PairTable, data: &Path) -> Result<Published, InputError> {
    let Some(file) = &table.published else { return Ok(Published::new()) };
    let CompletionTimes { default, specon } = completion_times(&data.join(file))?;
    Ok([(table.with.clone(), default), ("specon".to_owned(), specon)].into_iter().collect())
}

impl Pairs {
    /// A figure by its name; nothing if there is none.
    pub(super) fn figure(&self, metric: &str) -> Option<f64> {
        match metric.strip_prefix(PREFIX)? {
            "slower" => Some(self.slower),
            "much_slower" => Some(self.much_slower),
            "best" => Some(self.best),
            "worst" => Some(self.worst),
            "distance_s" => self.distance_s,
            "ratio_distance" => self.ratio_distance,
            _ => None,
        }
    }
}

const PREFIX: &str = "pairs.";

/// Whether a figure is one of these.
pub(super) fn is_figure(metric: &str) -> bool {
    let names = ["slower", "much_slower", "best", "worst", "distance_s", "ratio_distance"];
    metric.strip_prefix(PREFIX).is_some_and(|name| names.contains(&name))
}

/// One for each policy, in the order in which policies first appear.
pub fn pairs(table: &PairTable, scenario: &str, outcomes: &[Outcome], published: &Published) -> Vec<Pairs> {
    let mut policies: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !policies.contains(&outcome.policy.as_str()) {
            policies.push(&outcome.policy);
        }
    }
    let base = times(outcomes, &table.with);
    let said = |policy: &str| Some((published.get(policy)?, published.get(&table.with)?));
    policies.into_iter().map(|policy| of_policy(scenario, policy, outcomes, &base, said(policy))).collect()
}

/// Completion times by seed and place in the scenario.
type Times = BTreeMap<(u64, usize), f64>;

fn times(outcomes: &[Outcome], policy: &str) -> Times {
    let of = outcomes.iter().filter(|outcome| outcome.policy == policy);
    of.flat_map(|outcome| {
        let time = |end: metronome_core::model::units::Instant, submit| end.since(submit).as_secs_f64();
        let jobs = outcome.jobs.iter().enumerate();
        jobs.map(move |(place, job)| {
            ((outcome.seed, place), time(job.end.unwrap_or(outcome.ended), job.submit))
        })
    })
    .collect()
}

fn of_policy(
    scenario: &str,
    policy: &str,
    outcomes: &[Outcome],
    base: &Times,
    published: Option<(&Vec<f64>, &Vec<f64>)>,
) -> Pairs {
    let times = times(outcomes, policy);
    let ratios: Times = times.iter().filter_map(|(job, time)| Some((*job, time / base.get(job)?))).collect();
    let part = |beyond: f64| {
        ratios.values().filter(|ratio| **ratio > beyond).count() as f64 / ratios.len().max(1) as f64
    };
    let ranked_s = ranked(&times);
    let published = published.filter(|(of, _)| of.len() == ranked_s.len());
    let distance_s = published.map(|(of, _)| distance(&ranked_s, sorted(of.clone())));
    let ratio_distance = published.map(|(of, with)| {
        let ratios_said = of.iter().zip(with).map(|(one, other)| one / other).collect();
        distance(&ranked(&ratios), sorted(ratios_said))
    });
    Pairs {
        scenario: scenario.to_owned(),
        policy: policy.to_owned(),
        // What is the same but for the last digit is not slower.
        slower: part(1.0001),
        much_slower: part(1.1),
        best: ratios.values().copied().fold(f64::INFINITY, f64::min),
        worst: ratios.values().copied().fold(0.0, f64::max),
        distance_s,
        ratio_distance,
        ranked_s,
    }
}

/// The mean over seeds of the shortest, of the next, and so on.
fn ranked(times: &Times) -> Vec<f64> {
    let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    times.iter().for_each(|((seed, _), time)| by_seed.entry(*seed).or_default().push(*time));
    by_seed.values_mut().for_each(|times| times.sort_unstable_by(f64::total_cmp));
    let jobs = by_seed.values().map(Vec::len).min().unwrap_or_default();
    let mean = |rank: usize| by_seed.values().map(|times| times[rank]).sum::<f64>() / by_seed.len() as f64;
    (0..jobs).map(mean).collect()
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// By rank, on average.
fn distance(ours: &[f64], published: Vec<f64>) -> f64 {
    let off: f64 = ours.iter().zip(published).map(|(one, other)| (one - other).abs()).sum();
    off / ours.len().max(1) as f64
}

/// File and picture of completion times by rank in one scenario, with the published ones beside.
pub fn picture(table: &PairTable, pairs: &[Pairs], published: &Published, seeds: u64) -> (String, String) {
    let names: Vec<String> = published.keys().map(|policy| format!("{policy}, published")).collect();
    let said: Vec<Vec<f64>> = published.values().cloned().map(sorted).collect();
    let jobs = pairs.iter().map(|of| of.ranked_s.len()).max().unwrap_or_default();
    let groups: Vec<(&str, Vec<Bar>)> = (0..jobs)
        .map(|rank| {
            let ours = pairs.iter().filter_map(|of| Some(Bar::exact(&of.policy, *of.ranked_s.get(rank)?)));
            let theirs = names.iter().zip(&said);
            let theirs = theirs.filter_map(|(name, times)| Some(Bar::exact(name, *times.get(rank)?)));
            ("", ours.chain(theirs).collect())
        })
        .collect();
    let along = Along {
        title: "jobs, the first done first".into(),
        at: (1..=jobs).map(|rank| rank as f64).collect(),
    };
    let note = format!("Completion times in seconds by rank; ours are means over {seeds} seeds.");
    (table.file.clone(), chart::draw_lines(&table.title, &along, &groups, &note))
}

/// Head and rows of a table, as text.
pub fn rows(pairs: &[Pairs]) -> Vec<Vec<String>> {
    let head = [
        "policy",
        "slower",
        "more than 10 % slower",
        "best",
        "worst",
        "distance of ranks",
        "distance of ratios",
    ]
    .map(str::to_owned);
    let row = |of: &Pairs| {
        let distance = of.distance_s.map_or("–".into(), |distance| format!("{distance:.1} s"));
        vec![
            of.policy.clone(),
            format!("{:.1} %", of.slower * 100.0),
            format!("{:.1} %", of.much_slower * 100.0),
            format!("{:.2}", of.best),
            format!("{:.2}", of.worst),
            distance,
            of.ratio_distance.filter(|off| *off > 0.0).map_or("–".into(), |off| format!("{off:.3}")),
        ]
    };
    std::iter::once(head.to_vec()).chain(pairs.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_means_over_seeds() {
        let times: Times = [((1, 0), 4.0), ((1, 1), 2.0), ((2, 0), 3.0), ((2, 1), 5.0)].into_iter().collect();
        assert_eq!(ranked(&times), [2.5, 4.5]);
        assert_eq!(distance(&[2.5, 4.5], sorted(vec![5.0, 2.0])), 0.5);
    }

    #[test]
    fn figures_of_pairs_have_names() {
        assert!(is_figure("pairs.much_slower") && !is_figure("pairs.slow") && !is_figure("slower"));
    }
}
