//! What is kept of a run ahead: how long iterations took, the load of the link over time, and one round of the circle.

use metronome_core::model::units::{Bandwidth, Duration};
use metronome_core::network::LinkTransmission;
use metronome_core::traffic::slowdown_model::Rehearsal;

use super::{MOST_JOBS, Sharer};

/// The load is kept for so many equal stretches of time.
pub(super) const COLUMNS: usize = 480;

/// Pauses shorter than this part of the circle are finer than a picture.
const FINEST: f64 = 1.0 / 480.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    pub span: Duration,
    /// One for each sharer, in their order.
    pub jobs: Vec<JobCourse>,
    /// The part of the link that all others take, for each column.
    pub more: Vec<f64>,
    /// Where on the circle more is asked than the link carries: from and to, between 0 and 1.
    pub crowded: Vec<(f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct JobCourse {
    /// How long an iteration takes on average.
    pub mean: Duration,
    /// The part of the link that it takes, for each column.
    pub load: Vec<f64>,
    /// Where on the circle it sends: from and to, between 0 and 1.
    pub arcs: Vec<(f64, f64)>,
}

/// A sharer, and its place among all that take part.
#[derive(Clone, Debug)]
pub(super) struct Crossing {
    pub(super) place: usize,
    pub(super) sharer: Sharer,
}

/// How a run is looked at.
pub(super) struct Lens<'a> {
    pub(super) circle: Duration,
    pub(super) span: Duration,
    pub(super) rate: Bandwidth,
    pub(super) crossings: &'a [Crossing],
}

/// A stretch of one rate, in seconds since the run was first looked at, and the part of the link that was taken.
#[derive(Clone, Copy)]
struct Stretch {
    from: f64,
    to: f64,
    part: f64,
}

impl Course {
    pub(super) fn of(rehearsal: &Rehearsal, lens: &Lens) -> Self {
        let stretches: Vec<Vec<Stretch>> =
            lens.crossings.iter().map(|crossing| lens.stretches(rehearsal, crossing)).collect();
        let job = |(crossing, sent): (&Crossing, &Vec<Stretch>)| JobCourse {
            mean: rehearsal.flows[crossing.place].mean,
            load: lens.load(sent),
            arcs: lens.arcs(sent),
        };
        let others: Vec<Stretch> = stretches.iter().skip(MOST_JOBS).flatten().copied().collect();
        Self {
            span: lens.span,
            jobs: lens.crossings.iter().zip(&stretches).take(MOST_JOBS).map(job).collect(),
            more: lens.load(&others),
            crowded: lens.crowded(&stretches),
        }
    }
}

impl Lens<'_> {
    fn stretches(&self, rehearsal: &Rehearsal, crossing: &Crossing) -> Vec<Stretch> {
        let bytes_per_second = self.rate.0 as f64 / 8.0;
        let stretch = |sent: &LinkTransmission| {
            let from = sent.from.since(rehearsal.from).as_secs_f64();
            let to = sent.to.since(rehearsal.from).as_secs_f64();
            Stretch { from, to, part: sent.bytes / (bytes_per_second * (to - from)) }
        };
        rehearsal.flows[crossing.place].sent.iter().map(stretch).collect()
    }

    /// The part of the link that is taken in each column, on average.
    fn load(&self, sent: &[Stretch]) -> Vec<f64> {
        let width = self.span.as_secs_f64() / COLUMNS as f64;
        let mut load = vec![0.0; COLUMNS];
        for Stretch { from, to, part } in sent {
            let last = ((to / width) as usize).min(COLUMNS - 1);
            for (column, load) in load.iter_mut().enumerate().take(last + 1).skip((from / width) as usize) {
                let begins = from.max(column as f64 * width);
                let ends = to.min((column + 1) as f64 * width);
                *load += part * (ends - begins).max(0.0) / width;
            }
        }
        load
    }

    fn arcs(&self, sent: &[Stretch]) -> Vec<(f64, f64)> {
        let round = self.circle.as_secs_f64();
        let within = sent.iter().filter(|stretch| stretch.from < round);
        joined(within.map(|stretch| (stretch.from / round, stretch.to.min(round) / round)))
    }

    /// Where those who are sending would take more than the link, if each had it for itself.
    fn crowded(&self, stretches: &[Vec<Stretch>]) -> Vec<(f64, f64)> {
        let mut edges: Vec<(f64, f64)> = Vec::new();
        for (crossing, sent) in self.crossings.iter().zip(stretches) {
            let demand = crossing.sharer.demand;
            edges.extend(self.arcs(sent).into_iter().flat_map(|(from, to)| [(from, demand), (to, -demand)]));
        }
        edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut asked = 0.0;
        let mut crowded = Vec::new();
        for pair in edges.windows(2) {
            asked += pair[0].1;
            if asked > 1.0 + 1e-9 && pair[1].0 > pair[0].0 {
                crowded.push((pair[0].0, pair[1].0));
            }
        }
        joined(crowded.into_iter())
    }
}

/// Spans in order of time, those in one that follow each other closely.
fn joined(spans: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (from, to) in spans {
        match joined.last_mut() {
            Some(last) if from - last.1 < FINEST => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}
