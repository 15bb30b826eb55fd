//! What happens on a link while several jobs send: how long it is full, and whether jobs of a higher class have it first.

use super::panel::View;
use super::shades::{self, Shade};
use super::{Drawn, DrawnLink};

/// Columns of 5 ms in which at least two jobs that cross a link were active.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Crowding {
    columns: u64,
    /// In which the link was full.
    pub(super) full: u64,
    /// In which it was full, and a job of a lower and one of a higher class sent.
    pub(super) ranked: u64,
    /// In which, of those, the lower class had a good part of it.
    divided: u64,
}

/// A link that carries so much of its rate is full.
const FULL: f64 = 0.9;

/// A job that sends less does not want more.
const SENDS: f64 = 0.05;

/// A lower class that has more than this of a full link, and leaves less than the rest to the higher, shares with it.
const DIVIDED: f64 = 0.3;

impl Crowding {
    pub(super) fn of(drawn: &Drawn, link: &DrawnLink) -> Self {
        let mut crowding = Self::default();
        let whole = View::zoom("", 0, drawn.trace.lasts_ns());
        whole.columns().for_each(|span| crowding.count(drawn, link, span));
        crowding
    }

    fn count(&mut self, drawn: &Drawn, link: &DrawnLink, span: super::Span) {
        let middle = span.0.midpoint(span.1);
        let is_active =
            |job: usize| drawn.jobs[job].active.is_some_and(|(from, to)| (from..to).contains(&middle));
        let rate = link.link.rate_bps.max(1) as f64;
        let active =
            link.parts.iter().filter_map(|(job, curve)| Some((job.filter(|job| is_active(*job))?, curve)));
        let parts: Vec<(Shade, f64)> = active
            .map(|(job, curve)| (shades::at(drawn, link, job, middle), curve.rate(span) / rate))
            .collect();
        if parts.len() < 2 {
            return;
        }
        self.columns += 1;
        if link.curve.rate(span) / rate < FULL {
            return;
        }
        self.full += 1;
        let first =
            parts.iter().filter(|(shade, _)| *shade == Shade::First).map(|(_, part)| part).sum::<f64>();
        let later =
            parts.iter().filter(|(shade, _)| *shade > Shade::First).map(|(_, part)| part).sum::<f64>();
        if first > SENDS && later > SENDS {
            self.ranked += 1;
            self.divided += u64::from(later > DIVIDED && first > DIVIDED);
        }
    }

    /// Of the time in which several jobs were active.
    pub(super) fn part(&self, columns: u64) -> f64 {
        columns as f64 / self.columns.max(1) as f64
    }

    /// None where no lower class sent beside a higher one.
    pub(super) fn divided_part(&self) -> Option<f64> {
        (self.ranked > 0).then(|| self.divided as f64 / self.ranked as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    #[test]
    fn a_link_that_jobs_of_two_classes_halve_is_divided() {
        let mut trace = trace(["a", "b"]);
        let fair = Crowding::of(&Drawn::of(&trace), &Drawn::of(&trace).links[0]);
        assert_eq!(
            (fair.ranked, fair.divided_part()),
            (0, None),
            "classes differ only where jobs take turns"
        );
        assert!((fair.part(fair.full) - 0.8).abs() < 0.01, "{fair:?}");
        // The same bytes, with a class of its own for each job from the beginning on.
        for part in &mut trace.links[0].parts {
            part.standings[0].prio = part.standings[1].prio;
        }
        let ranked = Crowding::of(&Drawn::of(&trace), &Drawn::of(&trace).links[0]);
        // 1.6 of the 6 seconds.
        assert!((ranked.part(ranked.ranked) - 0.27).abs() < 0.01, "{ranked:?}");
        assert_eq!(ranked.divided_part(), Some(1.0));
    }
}
