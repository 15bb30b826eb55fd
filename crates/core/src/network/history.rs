//! Bytes that each link carried over time, for reports.
//!
//! Bytes are counted in time bins of equal width. When a run needs more than [`MAX_BINS`], pairs of bins are merged
//! and the width doubles, so memory does not depend on the length of a run.

use crate::model::id::{IdVec, LinkId};
use crate::model::units::Duration;

use super::running::RateInterval;

/// Bytes per link and time bin.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadHistory {
    width: u64,
    bins: IdVec<LinkId, Vec<f64>>,
}

/// Upper bound of the bins per link, which bounds memory.
/// Maximum number of bins per link.
const MAX_BINS: u64 = 1024;

impl LoadHistory {
    pub(super) fn new(width: Duration, links: usize) -> Self {
        Self { width: width.0.max(1), bins: IdVec::filled(Vec::new(), links) }
    }

    /// Width of a bin.
    pub fn width(&self) -> Duration {
        Duration(self.width)
    }

    /// Bytes of a link in each bin from time zero; bins behind the end of the slice carried nothing.
    pub fn bins(&self, link: LinkId) -> &[f64] {
        &self.bins[link]
    }

    /// Distributes the bytes of an interval over the bins in proportion to time.
    pub(super) fn add(&mut self, links: &[(LinkId, f64)], stretch: RateInterval) {
        let RateInterval { from, to, bytes } = stretch;
        if bytes == 0.0 {
            return;
        }
        // An interval of length zero belongs to the bin that contains it.
        let last = to.max(from + 1) - 1;
        while last / self.width >= MAX_BINS {
            self.widen();
        }
        let length = (last + 1 - from) as f64;
        for bin in from / self.width..=last / self.width {
            let begins = from.max(bin * self.width);
            let ends = (last + 1).min((bin + 1) * self.width);
            let part = bytes * (ends - begins) as f64 / length;
            for (link, load) in links {
                let bins = &mut self.bins[*link];
                if bins.len() <= bin as usize {
                    bins.resize(bin as usize + 1, 0.0);
                }
                bins[bin as usize] += load * part;
            }
        }
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        for (_, bins) in self.bins.iter_mut() {
            *bins = bins.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkId = LinkId(0);

    #[test]
    fn bytes_are_counted_in_the_bins_in_which_they_were_sent() {
        let mut history = LoadHistory::new(Duration(10), 1);
        history.add(&[(LINK, 2.0)], RateInterval { from: 5, to: 25, bytes: 20.0 });
        assert_eq!(history.bins(LINK), [10.0, 20.0, 10.0]);
    }

    #[test]
    fn bins_are_merged_in_pairs_when_there_are_too_many() {
        let mut history = LoadHistory::new(Duration(1), 1);
        for from in 0..5000 {
            history.add(&[(LINK, 1.0)], RateInterval { from, to: from + 1, bytes: 3.0 });
        }
        assert_eq!(history.width(), Duration(8));
        assert_eq!(history.bins(LINK).len(), 625);
        assert!(history.bins(LINK).iter().all(|bin| *bin == 24.0));
    }
}
