//! Measured models on one link, two or three at a time: how much of what fair sharing wastes is won back.
//!
//! Rings of eight, the larger batch of each model, 1 % noise of compute, random starts. A mix could use the link for as
//! much of the time as its jobs would one by one, or all of it; the *gap* is what fair sharing leaves of that.

use metronome_core::model::policy::Links;
use metronome_core::model::profile::ring_load;
use metronome_core::model::units::Share;
use metronome_core::network::Pattern;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::SlowdownModel;
use rand::RngExt;
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::Deserialize;

use super::cells::{Cell, Cells};
use super::shared_link::{self, Ran};
use crate::model;
use crate::noise::Noise;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct MixesDefinition {
    /// All pairs are run, and so many triples that are drawn.
    pub triples: usize,
    /// Each mix runs with so many seeds.
    pub seeds: u64,
}

/// `won` is Σ gain / Σ gap over mixes and seeds; `best_gain` that of the mix whose use of the link rises most, as a share
/// of it; `worst_over_fair` the most that the worst off of a mix loses against the worst off under fair sharing;
/// `with_a_circle` the part of all mixes whose periods have a circle in common that is worth keeping to, and
/// `turns_proven` the part of those whose turns there are proven to be the best.
pub(super) const FIGURES: [&str; 7] =
    ["won", "utilisation", "slowdown", "best_gain", "worst_over_fair", "with_a_circle", "turns_proven"];

const ABOUT_TURNS: [&str; 2] = ["with_a_circle", "turns_proven"];

pub(super) const CELLS: [&str; 2] = [SAME, DIFFERENT];
const SAME: &str = "same-model";
const DIFFERENT: &str = "different-models";

const RING: u32 = 8;
const NOISE: Noise = Noise::Gaussian(Share(10_000));
const TRIPLES: u128 = 32;

impl MixesDefinition {
    pub(super) fn run(&self, ways: &[(&str, Links)], seeds: Option<u64>) -> Cells {
        let seeds = seeds.unwrap_or(self.seeds);
        let models = models();
        let mixes = mixes(models.len(), self.triples);
        let measure = |(number, mix): (usize, &Vec<usize>)| {
            let flows: Vec<Flow> = mix.iter().map(|model| models[*model].clone()).collect();
            Mix::measure(&flows, ways, (number as u64, seeds))
        };
        let measured: Vec<Mix> = mixes.par_iter().enumerate().map(measure).collect();
        let is_same = |mix: &Vec<usize>| mix.iter().all(|model| *model == mix[0]);
        let cells = CELLS.into_iter().flat_map(|cell| {
            let meant = mixes.iter().zip(&measured).filter(|(mix, _)| is_same(mix) == (cell == SAME));
            let meant: Vec<&Mix> = meant.map(|(_, mix)| mix).collect();
            summaries(cell, &meant, ways)
        });
        Cells { cells: cells.collect(), runs: format!("{} mixes, {seeds} seeds each", mixes.len()) }
    }
}

/// The larger batch of each model.
fn models() -> Vec<Flow> {
    let larger = model::all().iter().skip(1).step_by(2);
    let pattern =
        |model: &model::Model| Pattern::buckets(&model.iteration).expect("a measured model can be run");
    larger.map(|model| shared_link::flow(pattern(model), ring_load(RING))).collect()
}

/// Every pair, a model with itself included, and triples as they are drawn.
fn mixes(models: usize, triples: usize) -> Vec<Vec<usize>> {
    let pairs = (0..models).flat_map(|one| (one..models).map(move |other| vec![one, other]));
    let mut dice = Pcg64::new(7, TRIPLES);
    let mut triple = || (0..3).map(|_| dice.random_range(0..models)).collect();
    pairs.chain((0..triples).map(|_| triple()).collect::<Vec<_>>()).collect()
}

/// What a mix came to, for fair sharing and for each policy.
struct Mix {
    /// What it could use of the link.
    bound: f64,
    fair: Vec<Ran>,
    /// By policy, then seed.
    runs: Vec<Vec<Ran>>,
    /// Whether turns on a common circle are proven to be the best, where there is one.
    proven: Option<bool>,
}

impl Mix {
    fn measure(flows: &[Flow], ways: &[(&str, Links)], (number, seeds): (u64, u64)) -> Self {
        let duty = |flow: &Flow| shared_link::sends(flow) / flow.alone.as_secs_f64();
        let mut foresight = SlowdownModel::default();
        let mut run = |links: Links| -> Vec<Ran> {
            let lanes = shared_link::lanes(links, flows, &mut foresight);
            (1..=seeds).map(|seed| shared_link::run(flows, &lanes, &NOISE, number * 1_000 + seed)).collect()
        };
        Self {
            bound: flows.iter().map(duty).sum::<f64>().min(1.0),
            fair: run(Links::Shared),
            runs: ways.iter().map(|(_, links)| run(*links)).collect(),
            proven: shared_link::turns_are_proven(flows, &mut foresight),
        }
    }

    fn gap(&self) -> f64 {
        self.fair.iter().map(|ran| (self.bound - ran.utilisation).max(0.0)).sum()
    }
}

fn summaries(cell: &str, mixes: &[&Mix], ways: &[(&str, Links)]) -> Vec<Cell> {
    let summary = |(way, (policy, links)): (usize, &(&str, Links))| {
        // Only those who choose lanes solve for turns.
        let solves = *links == Links::Chosen;
        let meant = FIGURES.into_iter().filter(|figure| solves || !ABOUT_TURNS.contains(figure));
        let figures = meant.map(|figure| (figure, figure_of(figure, mixes, way))).collect();
        Cell { scenario: cell.to_owned(), policy: (*policy).to_owned(), figures }
    };
    ways.iter().enumerate().map(summary).collect()
}

fn figure_of(figure: &str, mixes: &[&Mix], way: usize) -> f64 {
    let used = |runs: &[Ran]| mean(runs, |ran| ran.utilisation);
    let gain = |mix: &&Mix| used(&mix.runs[way]) - used(&mix.fair);
    let over_fair = |mix: &&Mix, of: fn(&Ran) -> f64| mean(&mix.runs[way], of) / mean(&mix.fair, of);
    let count = mixes.len().max(1) as f64;
    match figure {
        "won" => {
            let seeds = |mix: &&Mix| mix.fair.len() as f64;
            mixes.iter().map(|mix| gain(mix) * seeds(mix)).sum::<f64>()
                / mixes.iter().map(|mix| mix.gap()).sum::<f64>()
        }
        "utilisation" => mixes.iter().map(|mix| used(&mix.runs[way])).sum::<f64>() / count,
        "slowdown" => mixes.iter().map(|mix| mean(&mix.runs[way], Ran::mean)).sum::<f64>() / count,
        "best_gain" => {
            mixes.iter().map(|mix| over_fair(mix, |ran| ran.utilisation) - 1.0).fold(0.0, f64::max)
        }
        "with_a_circle" => mixes.iter().filter(|mix| mix.proven.is_some()).count() as f64 / count,
        "turns_proven" => {
            let circles: Vec<bool> = mixes.iter().filter_map(|mix| mix.proven).collect();
            circles.iter().filter(|proven| **proven).count() as f64 / circles.len().max(1) as f64
        }
        _ => mixes.iter().map(|mix| over_fair(mix, Ran::worst)).fold(0.0, f64::max),
    }
}

fn mean(runs: &[Ran], of: impl Fn(&Ran) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_sharing_wins_nothing_and_classes_nearly_all_where_models_are_the_same() {
        let ways = [("fair", Links::Shared), ("classes", Links::Classes)];
        let flow = &models()[10];
        let mix = Mix::measure(&[flow.clone(), flow.clone()], &ways, (1, 2));
        let won = |way: usize| figure_of("won", &[&mix], way);
        assert_eq!(won(0), 0.0);
        assert!(won(1) > 0.9, "{}", won(1));
    }

    #[test]
    fn every_pair_is_there_once() {
        let mixes = mixes(13, 200);
        assert_eq!(mixes.len(), 91 + 200);
        assert!(mixes[91..].iter().all(|mix| mix.len() == 3));
    }
}
