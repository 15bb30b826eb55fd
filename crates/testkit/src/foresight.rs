//! How well starts are foreseen: at a random time of a random run every waiting job is told when it will start, and
//! that is compared with what then happens.

mod draw;

use std::collections::BTreeMap;

use metronome_core::engine::forecast::{Sought, look_ahead};
use metronome_core::model::cluster::Name;
use metronome_core::model::job::Life;
use metronome_core::model::policy::Policy;
use metronome_core::model::units::Instant;
use metronome_sim::scenario::{Arrival, Scenario, Source};
use metronome_sim::world::{self, Estimates, RunOptions};

pub use draw::{Case, case};

/// Whether anybody comes after the look ahead. No forecast knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    Nobody,
    AsDrawn,
}

/// One waiting job: what was foreseen, and what came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub at: Instant,
    pub foreseen: Option<Instant>,
    pub came: Option<Instant>,
}

impl Told {
    /// By how many seconds the start was missed; none where one of the two never was.
    pub fn error_s(&self) -> Option<f64> {
        Some((self.foreseen?.as_secs_f64() - self.came?.as_secs_f64()).abs())
    }

    /// The same over the time that the job still waited.
    pub fn relative(&self) -> Option<f64> {
        let waited = self.came?.since(self.at).as_secs_f64();
        self.error_s().filter(|_| waited > 0.0).map(|error| error / waited)
    }
}

/// Everybody who waits at the time of the case, has never started, and is free to.
pub fn told(case: &Case, policy: &Policy, estimates: Estimates, later: Later) -> Vec<Told> {
    let scenario = match later {
        Later::AsDrawn => case.scenario.clone(),
        Later::Nobody => without_later(&case.scenario, case.at),
    };
    let options = || RunOptions { seed: case.seed, estimates, ..RunOptions::new(policy.clone()) };
    let state = world::state_at(&scenario, options(), case.at);
    let outlook = look_ahead(&state, case.at, Sought::Everybody);
    let outcome = world::run(&scenario, options(), &|_| {});
    let came: BTreeMap<Name, Option<Instant>> =
        outcome.jobs.iter().map(|job| (job.name.clone(), job.start)).collect();
    let waits = |id| state.jobs.get(id).is_some_and(|job| job.life == Life::Queued);
    let told = outlook.jobs().filter(|(id, _)| waits(*id)).map(|(_, forecast)| Told {
        at: case.at,
        foreseen: forecast.start,
        came: came.get(&forecast.name).copied().flatten(),
    });
    // Who was stopped and had saved nothing waits as if it had never run, but its first start is past.
    told.filter(|told| told.came.is_none_or(|came| came >= case.at)).collect()
}

fn without_later(scenario: &Scenario, at: Instant) -> Scenario {
    let arrivals: Vec<Arrival> = scenario.arrivals(0).into_iter().filter(|job| job.at <= at).collect();
    Scenario { sources: vec![Source::Listed(arrivals)], ..scenario.clone() }
}

/// How well many were foreseen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub jobs: usize,
    /// Those whose start was not foreseen though it came, or foreseen though it did not.
    pub unmatched: usize,
    /// The share whose start was foreseen to the second.
    pub exact: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p50: f64,
    pub p90: f64,
}

pub fn figures(told: &[Told]) -> Figures {
    let unmatched = told.iter().filter(|told| told.foreseen.is_some() != told.came.is_some()).count();
    let mut seconds: Vec<f64> = told.iter().filter_map(Told::error_s).collect();
    let mut relative: Vec<f64> = told.iter().filter_map(Told::relative).collect();
    seconds.sort_by(f64::total_cmp);
    relative.sort_by(f64::total_cmp);
    let exact = seconds.iter().filter(|error| **error < 1.0).count();
    Figures {
        jobs: told.len(),
        unmatched,
        exact: exact as f64 / seconds.len().max(1) as f64,
        p50_s: nearest_rank(&seconds, 50),
        p90_s: nearest_rank(&seconds, 90),
        p50: nearest_rank(&relative, 50),
        p90: nearest_rank(&relative, 90),
    }
}

/// Zero of nothing.
fn nearest_rank(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}
