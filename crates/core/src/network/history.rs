//! What each link carried over time, for pictures.
//!
//! Bytes are counted in equal bins of time. When there would be too many, pairs of bins are merged and bins are twice
//! as wide, so the memory does not depend on how long a run lasts.

use crate::model::id::{IdVec, LinkId};
use crate::model::units::Duration;

use super::running::Stretch;

#[derive(Clone, Debug, PartialEq)]
pub struct LoadHistory {
    width: u64,
    bins: IdVec<LinkId, Vec<f64>>,
}

const MOST_BINS: u64 = 1024;

impl LoadHistory {
    pub(super) fn new(width: Duration, links: usize) -> Self {
        Self { width: width.0.max(1), bins: IdVec::filled(Vec::new(), links) }
    }

    /// How long a bin is.
    pub fn width(&self) -> Duration {
        Duration(self.width)
    }

    /// The bytes a link carried in each bin from the beginning; nothing in those that are not listed.
    pub fn bins(&self, link: LinkId) -> &[f64] {
        &self.bins[link]
    }

    pub(super) fn add(&mut self, links: &[(LinkId, f64)], stretch: Stretch) {
        let Stretch { from, to, bytes } = stretch;
        if bytes == 0.0 {
            return;
        }
        // A burst so short that it has no length belongs to the bin it is in.
        let last = to.max(from + 1) - 1;
        while last / self.width >= MOST_BINS {
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
    fn bytes_fall_into_the_bins_in_which_they_were_sent() {
        let mut history = LoadHistory::new(Duration(10), 1);
        history.add(&[(LINK, 2.0)], Stretch { from: 5, to: 25, bytes: 20.0 });
        assert_eq!(history.bins(LINK), [10.0, 20.0, 10.0]);
    }

    #[test]
    fn bins_are_merged_in_pairs_when_there_are_too_many() {
        let mut history = LoadHistory::new(Duration(1), 1);
        for from in 0..5000 {
            history.add(&[(LINK, 1.0)], Stretch { from, to: from + 1, bytes: 3.0 });
        }
        assert_eq!(history.width(), Duration(8));
        assert_eq!(history.bins(LINK).len(), 625);
        assert!(history.bins(LINK).iter().all(|bin| *bin == 24.0));
    }
}
