//! Whether a job is slower in the windows of its rotation than in windows of fair sharing.
//!
//! Every iteration sends the same bytes, so bytes a second are iterations a second. The time before the job's first directive
//! counts as fair: it shared its links with the same jobs then.

/// Bytes sent in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sent {
    bytes: f64,
    nanos: f64,
}

impl Sent {
    fn add(&mut self, bytes: f64, nanos: f64) {
        self.bytes += bytes;
        self.nanos += nanos;
    }

    fn rate(&self) -> f64 {
        self.bytes / self.nanos.max(1.0)
    }
}

/// How links are shared at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Fair,
    /// In an order that was decided.
    Directed,
}

/// Counts of one job since the jobs on its links last changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowCounts {
    fair: Sent,
    directed: Sent,
}

/// A comparison of both kinds of windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// How much longer an iteration takes in directed windows, over its time in fair ones; negative where it is shorter.
    pub(crate) measured: f64,
    /// The lower end of the 95 % interval of that.
    pub(crate) at_least: f64,
    pub(crate) fair_iterations: f64,
    pub(crate) directed_iterations: f64,
}

/// Fewer iterations of either kind say nothing.
const MIN_ITERATIONS: f64 = 12.0;

/// Iterations vary by at least so much where links are shared, whatever the profile says.
const MIN_NOISE: f64 = 0.05;

/// Standard errors on either side of a mean in a 95 % interval.
const STANDARD_ERRORS: f64 = 2.0;

impl WindowCounts {
    pub(crate) fn add(&mut self, window: Window, bytes: u64, nanos: u64) {
        let sent = match window {
            Window::Fair => &mut self.fair,
            Window::Directed => &mut self.directed,
        };
        sent.add(bytes as f64, nanos as f64);
    }

    /// None while there are too few iterations. `volume` are the bytes of an iteration, `noise` is the deviation of its time
    /// over its mean.
    pub(crate) fn compare(&self, volume: f64, noise: f64) -> Option<Comparison> {
        let [fair_iterations, directed_iterations] =
            [&self.fair, &self.directed].map(|sent| sent.bytes / volume.max(1.0));
        if fair_iterations.min(directed_iterations) < MIN_ITERATIONS {
            return None;
        }
        let measured = self.fair.rate() / self.directed.rate() - 1.0;
        let error = noise.max(MIN_NOISE) * (1.0 / fair_iterations + 1.0 / directed_iterations).sqrt();
        let at_least = measured - STANDARD_ERRORS * error;
        Some(Comparison { measured, at_least, fair_iterations, directed_iterations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(fair: u64, directed: u64, iterations: u64) -> Option<Comparison> {
        let mut counts = WindowCounts::default();
        counts.add(Window::Fair, 100 * iterations, fair * iterations);
        counts.add(Window::Directed, 100 * iterations, directed * iterations);
        counts.compare(100.0, 0.0)
    }

    #[test]
    fn a_job_is_slower_by_at_least_what_its_noise_leaves_of_the_difference() {
        let slower = compared(1_000, 1_100, 50).unwrap();
        assert!((slower.measured - 0.1).abs() < 1e-9 && (slower.at_least - 0.08).abs() < 1e-9, "{slower:?}");
        assert!(compared(1_000, 900, 50).unwrap().measured < 0.0);
        assert_eq!(compared(1_000, 2_000, 11), None, "too few iterations");
    }
}
