//! Three loops made for the purpose on one link: what noise leaves of what sharing otherwise would win.
//!
//! Each computes, with noise, and then sends at full rate; together they would keep the link busy for 80 % of the time.
//! Periods are equal, near-harmonic (1 : 2 : 0.5 within 3 %) or random (log-uniform from 100 ms to 1 s).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use metronome_core::model::policy::Links;
use metronome_core::model::profile::{Bucket, Iteration};
use metronome_core::model::units::{Bytes, Duration, Share};
use metronome_core::network::Pattern;
use metronome_core::traffic::TrafficPolicy;
use metronome_core::traffic::contention_graph::Flow;
use metronome_core::traffic::slowdown_model::SlowdownModel;
use rand::RngExt;
use rand_pcg::Pcg64;
use rayon::prelude::*;
use serde::Deserialize;

use super::StudyError;
use super::cells::{Cell, Cells};
use super::shared_link::{self, RATE};
use crate::noise::{Factors, Noise};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LoopsDefinition {
    /// So many sets of three are drawn of each kind of period.
    pub sets: u64,
    /// Standard deviations of compute, in thousandths of it.
    pub noise: Vec<u32>,
    /// Tables of measured iteration times, in the folder of data.
    #[serde(default)]
    pub measured: Vec<String>,
}

/// `slowdown` is the mean over loops and sets of iteration time over alone; `deviation` how far the mean of 30 sets, drawn
/// from all, is from that of all, as a standard deviation; `gain_kept` what is won over fair sharing, as a part of what
/// is won without noise.
pub(super) const FIGURES: [&str; 3] = ["slowdown", "deviation", "gain_kept"];

const LOAD: f64 = 0.8;
const COLUMN: &str = "batch_time_norm";
const SHAPES: u128 = 11;

/// The published table was made with so many sets.
const PUBLISHED_SETS: f64 = 30.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Periods {
    Equal,
    NearHarmonic,
    Random,
}

const PERIODS: [(&str, Periods); 3] =
    [("equal", Periods::Equal), ("near-harmonic", Periods::NearHarmonic), ("random", Periods::Random)];

impl LoopsDefinition {
    /// `near-harmonic 2%`, or the name of a table of measured times instead of the last.
    pub(super) fn cells(&self) -> impl Iterator<Item = String> {
        PERIODS
            .into_iter()
            .flat_map(|(periods, _)| self.noises().map(move |noise| format!("{periods} {noise}")))
    }

    fn noises(&self) -> impl Iterator<Item = String> {
        let gaussian = self.noise.iter().map(|thousandths| format!("{}%", f64::from(*thousandths) / 10.0));
        gaussian.chain(self.measured.iter().map(|file| stem(file)))
    }

    pub(super) fn run(
        &self,
        ways: &[(&str, Links)],
        data: &Path,
        seeds: Option<u64>,
    ) -> Result<Cells, StudyError> {
        let sets = seeds.unwrap_or(self.sets);
        let mut noises: Vec<Noise> =
            self.noise.iter().map(|thousandths| Noise::Gaussian(Share(1_000 * thousandths))).collect();
        for file in &self.measured {
            noises.push(read(data, file)?);
        }
        let names: Vec<String> = self.noises().collect();
        let mut cells = Vec::new();
        for (periods, kind) in PERIODS {
            let of_set = |set: u64| slowdowns(kind, set, ways, &noises);
            let all: Vec<Vec<Vec<f64>>> = (0..sets).into_par_iter().map(of_set).collect();
            cells.extend(summaries(periods, &names, ways, &all));
        }
        Ok(Cells { cells, runs: format!("{sets} sets of loops in each row") })
    }
}

/// `job_4_norm.csv.gz` is `job_4_norm`.
fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.split('.').next().unwrap_or(name).to_owned()
}

fn read(data: &Path, file: &str) -> Result<Noise, StudyError> {
    let path = data.join(file);
    let table = File::open(&path)
        .map_err(|source| StudyError::Unreadable { file: path.display().to_string(), source })?;
    let factors = Factors::from_csv(MultiGzDecoder::new(table), COLUMN);
    let factors = factors.map_err(|source| StudyError::Noise { file: path.display().to_string(), source })?;
    Ok(Noise::Measured(Arc::new(factors)))
}

/// By noise, then by policy. What is done about the link does not depend on the noise.
fn slowdowns(kind: Periods, set: u64, ways: &[(&str, Links)], noises: &[Noise]) -> Vec<Vec<f64>> {
    let flows = flows(kind, set);
    let mut foresight = SlowdownModel::default();
    let lanes: Vec<Vec<TrafficPolicy>> =
        ways.iter().map(|(_, links)| shared_link::lanes(*links, &flows, &mut foresight)).collect();
    let under = |noise: &Noise| {
        lanes.iter().map(|lanes| shared_link::run(&flows, lanes, noise, set).mean()).collect()
    };
    noises.iter().map(under).collect()
}

fn flows(kind: Periods, set: u64) -> Vec<Flow> {
    let mut dice = Pcg64::new(u128::from(set), SHAPES);
    let periods = periods(kind, &mut dice);
    let parts: [f64; 3] = std::array::from_fn(|_| dice.random_range(0.5..1.5));
    let all: f64 = parts.iter().sum();
    let flow = |(period, part): (f64, f64)| {
        let sends = period * LOAD * part / all;
        shared_link::flow(burst(period - sends, sends), 1.0)
    };
    periods.into_iter().zip(parts).map(flow).collect()
}

/// Periods in nanoseconds.
fn periods(kind: Periods, dice: &mut Pcg64) -> [f64; 3] {
    let mut log_uniform = || 100e6 * 10_f64.powf(dice.random::<f64>());
    match kind {
        Periods::Equal => [log_uniform(); 3],
        Periods::Random => [log_uniform(), log_uniform(), log_uniform()],
        Periods::NearHarmonic => {
            let base = log_uniform();
            [1.0, 2.0, 0.5].map(|ratio| base * ratio * dice.random_range(0.97..1.03))
        }
    }
}

/// Computes for so many nanoseconds, then sends for so many if it has the link for itself.
fn burst(compute: f64, sends: f64) -> Pattern {
    let compute = Duration(compute as u64);
    let bytes = Bytes((sends * RATE.0 as f64 / 8e9) as u64);
    let buckets = vec![Bucket { ready: compute, bytes }];
    Pattern::buckets(&Iteration { compute, buckets, finish: Duration::ZERO }).expect("a burst is not empty")
}

/// `all` is by set, noise and policy.
fn summaries(periods: &str, noises: &[String], ways: &[(&str, Links)], all: &[Vec<Vec<f64>>]) -> Vec<Cell> {
    let fair = ways.iter().position(|(_, links)| *links == Links::Shared);
    let mean =
        |noise: usize, way: usize| all.iter().map(|set| set[noise][way]).sum::<f64>() / all.len() as f64;
    let gain = |noise: usize, way: usize| fair.map(|fair| mean(noise, fair) - mean(noise, way));
    let of = |noise: usize, way: usize| {
        let slowdown = mean(noise, way);
        let squares: f64 = all.iter().map(|set| (set[noise][way] - slowdown).powi(2)).sum();
        let deviation = (squares / all.len() as f64 / PUBLISHED_SETS).sqrt();
        let kept = gain(noise, way).zip(gain(0, way)).filter(|(_, quiet)| *quiet > 0.0);
        let kept = kept.map(|(gain, quiet)| ("gain_kept", gain / quiet));
        let figures = [("slowdown", slowdown), ("deviation", deviation)].into_iter().chain(kept).collect();
        Cell { scenario: format!("{periods} {}", noises[noise]), policy: ways[way].0.to_owned(), figures }
    };
    (0..noises.len())
        .flat_map(|noise| (0..ways.len()).map(move |way| (noise, way)))
        .map(|(noise, way)| of(noise, way))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_send_four_fifths_of_the_time_together() {
        for (_, kind) in PERIODS {
            let duty = |flow: &Flow| shared_link::sends(flow) / flow.alone.as_secs_f64();
            let load: f64 = flows(kind, 5).iter().map(duty).sum();
            assert!((load - LOAD).abs() < 1e-6, "{load}");
        }
    }

    #[test]
    fn a_cell_is_named_by_its_periods_and_its_noise() {
        let loops =
            LoopsDefinition { sets: 1, noise: vec![0, 5], measured: vec!["jitter/job_1_norm.csv.gz".into()] };
        let names: Vec<String> = loops.cells().collect();
        assert_eq!(names[..3], ["equal 0%", "equal 0.5%", "equal job_1_norm"]);
        assert_eq!(names.len(), 9);
    }
}
