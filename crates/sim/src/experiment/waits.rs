//! Mean waits by whose job it is, how urgent and how wide: the cross table that a definition may ask for.
//!
//! A wait is all the time in which a job did not train (`queueing` of the figures); jobs of all seeds count alike. A
//! slice of the table is a figure of its own: `wait_s{user=high,urgency=low}` is the mean over all jobs of that kind.

use std::collections::BTreeMap;

use metronome_core::model::job::Priority;
use metronome_core::model::units::Share;
use serde::{Deserialize, Serialize};

use crate::outcome::{Fate, JobOutcome, Outcome};
use crate::results::queueing_time;

/// What a definition says of its table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WaitTable {
    pub title: String,
    /// A gang is wide from so many members on.
    pub wide_from: u32,
}

/// Of a user in their queue, or of a job by its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rank {
    High,
    Normal,
    Low,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    Narrow,
    Wide,
}

const RANKS: [(&str, Rank); 3] = [("high", Rank::High), ("normal", Rank::Normal), ("low", Rank::Low)];
const WIDTHS: [(&str, Width); 2] = [("narrow", Width::Narrow), ("wide", Width::Wide)];

/// The waits under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyWaits {
    pub policy: String,
    pub cells: Vec<WaitCell>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WaitCell {
    pub user: Rank,
    pub urgency: Rank,
    pub width: Width,
    pub jobs: u64,
    /// Their mean wait.
    pub wait_s: f64,
}

/// One table for each policy, in the order in which policies first appear.
pub fn waits(table: &WaitTable, outcomes: &[Outcome]) -> Vec<PolicyWaits> {
    let mut policies: Vec<&str> = Vec::new();
    for outcome in outcomes {
        if !policies.contains(&outcome.policy.as_str()) {
            policies.push(&outcome.policy);
        }
    }
    let of = |policy: &str| {
        let runs = outcomes.iter().filter(|outcome| outcome.policy == policy);
        PolicyWaits { policy: policy.to_owned(), cells: cells(table, runs) }
    };
    policies.into_iter().map(of).collect()
}

fn cells<'a>(table: &WaitTable, runs: impl Iterator<Item = &'a Outcome>) -> Vec<WaitCell> {
    // Nanoseconds are added up as whole numbers, so that a mean does not depend on the order of its parts.
    let mut sums: BTreeMap<(Rank, Rank, Width), (u64, u128)> = BTreeMap::new();
    for outcome in runs {
        for job in outcome.jobs.iter().filter(|job| job.fate != Fate::Refused) {
            let (jobs, waited) = sums.entry(kind(table, job)).or_default();
            *jobs += 1;
            *waited += u128::from(queueing_time(job, outcome.ended).0);
        }
    }
    let cell = |((user, urgency, width), (jobs, waited)): ((Rank, Rank, Width), (u64, u128))| WaitCell {
        user,
        urgency,
        width,
        jobs,
        wait_s: waited as f64 / 1e9 / jobs as f64,
    };
    sums.into_iter().map(cell).collect()
}

fn kind(table: &WaitTable, job: &JobOutcome) -> (Rank, Rank, Width) {
    let user = match job.user {
        share if share >= Share::WHOLE => Rank::High,
        Share::NONE => Rank::Low,
        _ => Rank::Normal,
    };
    let urgency = match job.priority {
        priority if priority >= Priority::HIGH => Rank::High,
        priority if priority <= Priority::LOW => Rank::Low,
        _ => Rank::Normal,
    };
    let width = if job.members >= table.wide_from { Width::Wide } else { Width::Narrow };
    (user, urgency, width)
}

/// Some of the cells: all that have what is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    user: Option<Rank>,
    urgency: Option<Rank>,
    width: Option<Width>,
}

impl Slice {
    /// `wait_s{user=high,width=wide}`; nothing if a text is no such figure.
    pub(super) fn parse(metric: &str) -> Option<Self> {
        let list = metric.strip_prefix("wait_s{")?.strip_suffix('}')?;
        let mut slice = Self::default();
        for pair in list.split(',').filter(|pair| !pair.is_empty()) {
            let (key, word) = pair.split_once('=')?;
            let rank = || named(&RANKS, word);
            match key {
                "user" if slice.user.is_none() => slice.user = Some(rank()?),
                "urgency" if slice.urgency.is_none() => slice.urgency = Some(rank()?),
                "width" if slice.width.is_none() => slice.width = Some(named(&WIDTHS, word)?),
                _ => return None,
            }
        }
        Some(slice)
    }

    /// The mean wait over its cells; nothing where no job is of that kind.
    pub(super) fn mean(self, cells: &[WaitCell]) -> Option<f64> {
        let meant = |cell: &&WaitCell| {
            self.user.is_none_or(|user| user == cell.user)
                && self.urgency.is_none_or(|urgency| urgency == cell.urgency)
                && self.width.is_none_or(|width| width == cell.width)
        };
        let meant: Vec<&WaitCell> = cells.iter().filter(meant).collect();
        let jobs: u64 = meant.iter().map(|cell| cell.jobs).sum();
        let waited: f64 = meant.iter().map(|cell| cell.wait_s * cell.jobs as f64).sum();
        (jobs > 0).then(|| waited / jobs as f64)
    }
}

fn named<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning)
}

/// The table in words, the head first: each kind of job that there is, then all of a user, of an urgency, of a width, and
/// all.
pub fn rows(waits: &[PolicyWaits]) -> Vec<Vec<String>> {
    let head = ["user", "urgency", "width"].map(str::to_owned);
    let policies = waits.iter().map(|of| of.policy.clone());
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().chain(policies).collect()];
    let has_jobs = |slice: &Slice| waits.iter().any(|of| slice.mean(&of.cells).is_some());
    rows.extend(slices().into_iter().filter(has_jobs).map(|slice| row(slice, waits)));
    rows
}

fn slices() -> Vec<Slice> {
    let (ranks, widths) = (RANKS.map(|(_, rank)| Some(rank)), WIDTHS.map(|(_, width)| Some(width)));
    let mut slices = Vec::new();
    for user in ranks {
        for urgency in ranks {
            slices.extend(widths.map(|width| Slice { user, urgency, width }));
        }
    }
    slices.extend(ranks.map(|user| Slice { user, ..Slice::default() }));
    slices.extend(ranks.map(|urgency| Slice { urgency, ..Slice::default() }));
    slices.extend(widths.map(|width| Slice { width, ..Slice::default() }));
    slices.push(Slice::default());
    slices
}

fn row(slice: Slice, waits: &[PolicyWaits]) -> Vec<String> {
    let word = |rank: Option<Rank>| word_of(&RANKS, rank);
    let kind = [word(slice.user), word(slice.urgency), word_of(&WIDTHS, slice.width)];
    let wait = |of: &PolicyWaits| slice.mean(&of.cells).map_or("–".to_owned(), |wait| format!("{wait:.1}"));
    kind.into_iter().map(str::to_owned).chain(waits.iter().map(wait)).collect()
}

fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], meaning: Option<T>) -> &'static str {
    let known = words.iter().find(|(_, known)| Some(*known) == meaning);
    known.map_or("all", |(word, _)| word)
}

#[cfg(test)]
mod tests;
