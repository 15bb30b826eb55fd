//! Noise: no two iterations compute for exactly as long. One factor per iteration stretches its compute, the times
//! at which its bytes are ready and the optimiser's step. Each job draws from a stream of its own, so that its noise
//! does not depend on what else runs.

use std::io::Read;
use std::sync::Arc;

use metronome_core::model::units::Share;
use metronome_core::network::Jitter;
use rand::RngExt;
use rand_pcg::Pcg64;

/// How the compute of a job varies from iteration to iteration, around a mean of one.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Noise {
    #[default]
    None,
    /// A normal distribution of this standard deviation, cut at four of them.
    Gaussian(Share),
    /// One of the factors that were measured, each as likely.
    Measured(Arc<Factors>),
}

/// Measured iteration times over their mean, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors(Vec<f64>);

/// Why measurements do not make a distribution.
#[derive(Debug, thiserror::Error)]
pub enum NoiseError {
    #[error("there are no measured iteration times")]
    Empty,
    #[error("iteration time {0} is not a positive number")]
    NotPositive(f64),
    #[error("there is no column `{0}`")]
    NoColumn(String),
    #[error("the table is not well-formed")]
    Table(#[from] csv::Error),
    #[error("`{0}` is not a number")]
    NotANumber(String),
}

impl Factors {
    /// Iteration times in any unit.
    pub fn new(mut times: Vec<f64>) -> Result<Self, NoiseError> {
        if let Some(bad) = times.iter().find(|time| !(time.is_finite() && **time > 0.0)) {
            return Err(NoiseError::NotPositive(*bad));
        }
        if times.is_empty() {
            return Err(NoiseError::Empty);
        }
        times.sort_by(f64::total_cmp);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        Ok(Self(times.into_iter().map(|time| time / mean).collect()))
    }

    /// The iteration times in one column of a table with a header.
    pub fn from_csv(table: impl Read, column: &str) -> Result<Self, NoiseError> {
        let mut table = csv::Reader::from_reader(table);
        let place = table.headers()?.iter().position(|name| name == column);
        let place = place.ok_or_else(|| NoiseError::NoColumn(column.into()))?;
        let mut times = Vec::new();
        for row in table.records() {
            let row = row?;
            let text = row.get(place).unwrap_or_default();
            times.push(text.trim().parse().map_err(|_| NoiseError::NotANumber(text.into()))?);
        }
        Self::new(times)
    }

    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

impl Noise {
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None | Self::Gaussian(Share::NONE))
    }

    /// The factors of one job, from a stream of its own.
    pub fn stream(&self, seed: u64) -> Option<Box<dyn Jitter>> {
        (!self.is_none()).then(|| Box::new(Dice::new(self.clone(), seed)) as Box<dyn Jitter>)
    }

    /// No factor is smaller.
    fn least(&self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Gaussian(sigma) => (1.0 - MOST_DEVIATIONS * sigma.as_f64()).max(LEAST_FACTOR),
            Self::Measured(factors) => factors.0[0],
        }
    }
}

const MOST_DEVIATIONS: f64 = 4.0;

/// However wide a normal distribution is, compute takes some time.
const LEAST_FACTOR: f64 = 0.01;

const COMPUTE: u128 = 3;

/// The noise of one job, iteration by iteration.
#[derive(Clone, Debug)]
struct Dice {
    noise: Noise,
    stream: Pcg64,
    /// Normal deviates come in pairs.
    spare: Option<f64>,
}

impl Dice {
    fn new(noise: Noise, seed: u64) -> Self {
        Self { noise, stream: Pcg64::new(u128::from(seed), COMPUTE), spare: None }
    }

    fn factor(&mut self) -> f64 {
        match &self.noise {
            Noise::None | Noise::Gaussian(Share::NONE) => 1.0,
            Noise::Gaussian(sigma) => {
                let sigma = sigma.as_f64();
                self.normal(sigma)
            }
            Noise::Measured(factors) => factors.0[self.stream.random_range(0..factors.0.len())],
        }
    }

    fn normal(&mut self, sigma: f64) -> f64 {
        loop {
            let deviate = self.deviate();
            let factor = 1.0 + sigma * deviate;
            if deviate.abs() <= MOST_DEVIATIONS && factor >= LEAST_FACTOR {
                return factor;
            }
        }
    }

    /// A standard normal deviate, by the polar method: a point in the unit disc gives two.
    fn deviate(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.stream.random::<f64>() - 1.0;
            let y = 2.0 * self.stream.random::<f64>() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let stretch = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * stretch);
                return x * stretch;
            }
        }
    }
}

impl Jitter for Dice {
    fn draw(&mut self) -> f64 {
        self.factor()
    }

    fn least(&self) -> f64 {
        self.noise.least()
    }

    fn again(&self) -> Box<dyn Jitter> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(mut dice: Dice) -> (f64, f64) {
        let drawn: Vec<f64> = (0..100_000).map(|_| dice.draw()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|factor| (factor - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn factors_have_a_mean_of_one_and_the_deviation_asked_for() {
        let (mean, deviation) = moments(Dice::new(Noise::Gaussian(Share(20_000)), 7));
        assert!((mean - 1.0).abs() < 3e-4, "{mean}");
        assert!((deviation - 0.02).abs() < 2e-4, "{deviation}");
        let measured = Factors::new(vec![5.0, 1.0, 3.0, 3.0]).unwrap();
        assert_eq!(measured.values(), [1.0 / 3.0, 1.0, 1.0, 5.0 / 3.0]);
        let (mean, _) = moments(Dice::new(Noise::Measured(Arc::new(measured)), 7));
        assert!((mean - 1.0).abs() < 5e-3, "{mean}");
    }

    #[test]
    fn no_factor_is_below_the_least() {
        for sigma in [1_000, 200_000, 900_000] {
            let noise = Noise::Gaussian(Share(sigma));
            let mut dice = Dice::new(noise.clone(), 1);
            let least = (0..50_000).map(|_| dice.draw()).fold(f64::INFINITY, f64::min);
            assert!(least >= noise.least() && least > 0.0);
        }
    }

    #[test]
    fn bad_measurements_are_refused() {
        assert!(matches!(Factors::new(vec![]), Err(NoiseError::Empty)));
        assert!(matches!(Factors::new(vec![1.0, 0.0]), Err(NoiseError::NotPositive(_))));
        assert!(matches!(Factors::from_csv(&b"a,b\n1,2\n"[..], "c"), Err(NoiseError::NoColumn(_))));
        assert!(matches!(Factors::from_csv(&b"a,b\n1,x\n"[..], "b"), Err(NoiseError::NotANumber(_))));
        assert_eq!(Factors::from_csv(&b"a,b\n1,2\n1,6\n"[..], "b").unwrap().values(), [0.5, 1.5]);
    }
}
