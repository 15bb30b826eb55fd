//! The time in which a job sends nothing, which does not depend on who shares its links.
//!
//! Contention stretches bursts and leaves the pauses between them as they are. So the iteration time of a job that was never
//! alone is the quiet time of an iteration plus the time that its bytes take at the full rate of the link.

use super::series::{Point, Run};

/// A step slower than this part of the usual rate is quiet: acknowledgements and keep-alives are far below it.
const QUIET: f64 = 0.05;

/// The quiet part of the time. Steps at the edge of a pause count in part: a step that is half as fast as the step behind
/// it was quiet for half of its time.
pub(super) fn share(run: &Run) -> f64 {
    let steps: Vec<(f64, f64)> =
        run.samples.windows(2).map(|pair| (pair[1].at - pair[0].at, rate(&pair[0], &pair[1]))).collect();
    let is_quiet = |at: usize| steps.get(at).is_some_and(|(_, rate)| *rate < QUIET * run.usual());
    let quiet: f64 = (0..steps.len())
        .map(|at| {
            let (lasts, rate) = steps[at];
            let inward = match (at > 0 && is_quiet(at - 1), is_quiet(at + 1)) {
                _ if is_quiet(at) => return lasts,
                (true, false) => steps.get(at + 1),
                (false, true) => at.checked_sub(1).map(|before| &steps[before]),
                _ => None,
            };
            inward.map_or(0.0, |(_, full)| lasts * (1.0 - rate / full).clamp(0.0, 1.0))
        })
        .sum();
    let all: f64 = steps.iter().map(|(lasts, _)| lasts).sum();
    if all > 0.0 { quiet / all } else { 0.0 }
}

fn rate(from: &Point, to: &Point) -> f64 {
    (to.bytes - from.bytes) / (to.at - from.at).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::super::series::longest_run;
    use super::*;

    const MS: u64 = 1_000_000;

    /// Bytes sent by a job that pauses for 100 ms and then sends a million bytes in so many milliseconds.
    fn sent(at: u64, burst: u64) -> u64 {
        let period = (100 + burst) * MS;
        at / period * 1_000_000 + (at % period).saturating_sub(100 * MS) / burst
    }

    #[test]
    fn the_quiet_time_of_an_iteration_is_the_same_however_long_its_burst_is() {
        for burst in [60, 120, 240] {
            let sample = |step: u64| Sample { at: step * 7_300_000, bytes: sent(step * 7_300_000, burst) };
            let samples: Vec<Sample> = (0..2000).map(sample).collect();
            let quiet = share(&longest_run(&samples)) * (100 + burst) as f64;
            assert!((quiet - 100.0).abs() < 1.0, "{quiet} ms beside bursts of {burst} ms");
        }
    }
}
