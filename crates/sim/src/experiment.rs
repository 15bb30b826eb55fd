//! An experiment: one question, asked of several scenarios under several policies with several seeds, and the bars
//! that the answer must clear. `definition` is what a folder says, `judge` what came out, `write` what is committed.
//! `study` is for questions about one link, without a cluster around it.

mod beside;
mod chart;
mod definition;
mod judge;
mod metric;
mod pairs;
mod part;
mod scatter;
mod study;
mod waits;
mod write;

use crate::results::Comparison;

pub use beside::{Beside, Spread, beside};
pub use definition::{Across, Along, Bar, Chart, Definition, DefinitionError};
pub use judge::{Verdict, judge};
pub use pairs::{PairTable, Pairs, Published, pairs, picture, published, rows as pair_rows};
pub use part::{Import, Observed, Part, Varied};
pub use scatter::{Point, scatter};
pub use study::{Cells, Kind, Study, StudyError};
pub use waits::{PolicyWaits, Rank, WaitCell, WaitTable, Width, rows as wait_rows, waits};
pub use write::{charts, document, markdown, with_results};

/// What was measured, in the order of the definition and without wall-clock times.
#[derive(Clone, Debug)]
pub struct Measured {
    pub experiment: String,
    pub seeds: u64,
    /// By name of the scenario.
    pub scenarios: Vec<(String, Comparison)>,
    /// By name of the scenario, too; empty unless the definition asks for them.
    pub waits: Vec<(String, Vec<PolicyWaits>)>,
    pub beside: Vec<Beside>,
    /// Empty unless the definition asks for them.
    pub pairs: Vec<Pairs>,
}

impl Measured {
    /// Before anything was run.
    pub fn nothing(experiment: String, seeds: u64) -> Self {
        let (scenarios, waits, beside, pairs) = Default::default();
        Self { experiment, seeds, scenarios, waits, beside, pairs }
    }
}

#[cfg(test)]
mod tests;
