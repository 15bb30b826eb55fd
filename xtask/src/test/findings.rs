//! What a stage finds.

use std::time::Duration;

use metronome_skip::Skip;

/// A test that failed, with its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) test: String,
    pub(crate) output: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) passed: usize,
    pub(crate) failures: Vec<Failure>,
    pub(crate) skips: Vec<Skip>,
    /// How long tests took, where that was measured.
    pub(crate) times: Vec<(Duration, String)>,
}

impl Findings {
    /// Of a stage that is one check.
    pub(crate) fn passed() -> Self {
        Self { passed: 1, ..Self::default() }
    }

    pub(crate) fn failed(test: &str, output: impl Into<String>) -> Self {
        let failure = Failure { test: test.to_owned(), output: output.into() };
        Self { failures: vec![failure], ..Self::default() }
    }

    pub(crate) fn skipped(test: &str, reason: &str) -> Self {
        Self { skips: vec![Skip::new(test, reason)], ..Self::default() }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
        self.times.extend(other.times);
    }
}
