//! How far a simulation is: one bar on standard error, and only if that is a terminal.

use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use metronome_sim::world;

/// Jobs that are over, summed up over all runs.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    /// What each run said last.
    over: Vec<AtomicUsize>,
}

impl Progress {
    pub(crate) fn of(runs: usize, jobs_per_run: usize) -> Self {
        let total = (runs * jobs_per_run) as u64;
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} jobs, {elapsed} so far, {eta} to go");
        bar.set_style(style.expect("the template is a constant"));
        Self { bar, over: (0..runs).map(|_| AtomicUsize::new(0)).collect() }
    }

    pub(crate) fn step(&self, run: usize, at: world::Progress) {
        let before = self.over[run].swap(at.over, Ordering::Relaxed);
        self.bar.inc(at.over.saturating_sub(before) as u64);
    }
}

/// The bar is gone once the work is done, also when that fails.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
