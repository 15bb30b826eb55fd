//! An experiment: one question, asked of several scenarios under several policies with several seeds, and the bars
//! that the answer must clear. `definition` is what a folder says, `judge` what came out, `write` what is committed.

mod chart;
mod definition;
mod judge;
mod metric;
mod waits;
mod write;

use crate::results::Comparison;

pub use definition::{Bar, Chart, Definition, DefinitionError};
pub use judge::{Verdict, judge};
pub use waits::{PolicyWaits, Rank, WaitCell, WaitTable, Width, rows as wait_rows, waits};
pub use write::{charts, document, markdown, with_results};

/// What was measured, in the order of the definition and without wall-clock times.
#[derive(Clone, Debug)]
pub struct Measured {
    pub experiment: String,
    pub seeds: u64,
    /// By scenario file.
    pub scenarios: Vec<(String, Comparison)>,
    /// By scenario file, too; empty unless the definition asks for them.
    pub waits: Vec<(String, Vec<PolicyWaits>)>,
}

#[cfg(test)]
mod tests;
