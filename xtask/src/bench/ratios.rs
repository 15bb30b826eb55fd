//! Whether figures after a change are greater than before: paired ratios, their median and its 95 % interval.
//!
//! Each round measures both sides, one right after the other, and gives one ratio, so that what slows the machine for a while
//! slows both. The interval is that of order statistics: of `n` ratios, the k-th least and the k-th greatest enclose the
//! median of all possible rounds unless fewer than `k` of them fall on one side of it, each side with probability one half.
//! It assumes nothing about the distribution, and takes the greatest `k` for which it holds in at least 95 % of cases: of
//! ten rounds, the second least and the second greatest ratio (97.9 %).

/// A change fails where the whole interval of a ratio lies above this.
pub(super) const MAX_RATIO: f64 = 1.05;

/// Of fewer rounds not even the least and the greatest ratio enclose the median in 95 % of cases.
pub(super) const MIN_ROUNDS: u32 = 6;

const CONFIDENCE: f64 = 0.95;

/// After over before: the median over rounds, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Ratio {
    /// From the figures of each round, before and after; none where there are too few rounds.
    pub(super) fn of(rounds: &[(f64, f64)]) -> Option<Self> {
        let mut ratios: Vec<f64> = rounds.iter().map(|(before, after)| after / before).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let rank = rank(ratios.len())?;
        Some(Self { median: median(&ratios)?, low: ratios[rank - 1], high: ratios[ratios.len() - rank] })
    }

    /// Whether the figure is worse with certainty: the whole interval lies above the bar.
    pub(super) fn is_too_great(self) -> bool {
        self.low > MAX_RATIO
    }
}

/// The middle of sorted numbers.
pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Some(sorted[middle]),
        _ => Some((sorted.get(middle.checked_sub(1)?)? + sorted[middle]) / 2.0),
    }
}

/// The greatest `k` for which the k-th least and the k-th greatest of so many enclose the median in at least 95 % of cases.
fn rank(count: usize) -> Option<usize> {
    let all = 2f64.powi(i32::try_from(count).ok()?);
    let (mut rank, mut ways, mut tail) = (0, 1.0, 1.0);
    while rank < count / 2 && 1.0 - 2.0 * tail / all >= CONFIDENCE {
        rank += 1;
        ways *= (count - rank + 1) as f64 / rank as f64;
        tail += ways;
    }
    (rank > 0).then_some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_in_95_of_100_cases_and_is_no_wider_than_it_must_be() {
        // From tables of the sign test at 5 %: the critical value is one less than the rank.
        for (count, expected) in [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
            (12, Some(3)),
            (20, Some(6)),
            (30, Some(10)),
        ] {
            assert_eq!(rank(count), expected, "{count} rounds");
        }
        assert!(rank(MIN_ROUNDS as usize).is_some() && rank(MIN_ROUNDS as usize - 1).is_none());
    }

    #[test]
    fn ratios_are_those_of_one_round() {
        // The machine becomes slower and slower, for both sides alike.
        let rounds: Vec<(f64, f64)> =
            (1..=10).map(|round| (f64::from(round), 1.1 * f64::from(round))).collect();
        let ratio = Ratio::of(&rounds).expect("ten rounds are enough");
        for figure in [ratio.median, ratio.low, ratio.high] {
            assert!((figure - 1.1).abs() < 1e-9, "{ratio:?}");
        }
        assert!(ratio.is_too_great());
    }

    #[test]
    fn a_ratio_is_too_great_only_where_its_whole_interval_is() {
        let after = |worse: usize| -> Vec<(f64, f64)> {
            (0..10).map(|round| (1.0, if round < worse { 1.2 } else { 1.0 })).collect()
        };
        let is_too_great = |worse| Ratio::of(&after(worse)).expect("ten rounds").is_too_great();
        assert!(!is_too_great(8), "the second least of ten is not");
        assert!(is_too_great(9));
        assert_eq!(Ratio::of(&after(5)).map(|ratio| ratio.median), Some(1.1));
        assert_eq!(Ratio::of(&[(1.0, 2.0); 5]), None);
    }
}
