//! What the tests need beside Rust, got in the background while the first stages compile: Debian packages are mostly
//! downloaded and unpacked, and Go fills the cores that one long compilation of Rust leaves idle.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use metronome_testprograms::{Program, Unavailable, provide_all};

use crate::needs::NEEDS;

pub(crate) struct Preparation(JoinHandle<Prepared>);

pub(crate) struct Prepared {
    pub(crate) took: Duration,
    /// Names of tools that could not be installed. Tests that need one are skipped.
    pub(crate) missing_tools: Vec<&'static str>,
    pub(crate) programs: Result<(), Unavailable>,
}

impl Preparation {
    pub(crate) fn start(programs: Vec<Program>) -> Self {
        Self(thread::spawn(move || prepare(&programs)))
    }

    pub(crate) fn finish(self) -> Result<Prepared> {
        self.0.join().map_err(|_| anyhow!("the preparation panicked"))
    }
}

fn prepare(programs: &[Program]) -> Prepared {
    let begin = Instant::now();
    let tools = NEEDS.iter().filter(|need| need.stage == "tests");
    let missing_tools = tools.filter(|need| !need.is_met()).map(|need| need.tool).collect();
    let programs = provide_all(programs).map(|_| ());
    Prepared { took: begin.elapsed(), missing_tools, programs }
}
