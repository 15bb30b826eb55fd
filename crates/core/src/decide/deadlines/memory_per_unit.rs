//! Memory that goes with each unit that a job books: where memory may run out first, it is booked as well.

use super::kind::Kind;
use super::memory::bytes;
use super::need::DeadlineJob;
use crate::deadlines::Units;
use crate::decide::snapshot::Snapshot;
use crate::model::cluster::NodeState;
use crate::model::job::Job;
use crate::model::units::Resources;

/// Memory per unit of GPUs or cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerUnit {
    memory: Units,
    units: Units,
}

impl PerUnit {
    fn new(memory: Units, units: Units) -> Option<Self> {
        (memory > 0 && units > 0).then_some(Self { memory, units })
    }

    /// The memory per unit of a job at its minimum size.
    pub(super) fn of(job: &Job) -> Option<Self> {
        let least = job.spec.least();
        Self::new(bytes(least.memory), Kind::of(job).units(least))
    }

    /// The largest memory per unit among the sizes of a job and the steps between them.
    pub(super) fn most_of(timed: &DeadlineJob<'_>) -> Option<Self> {
        let takes = |at: usize| {
            let size = timed.need.sizes[at];
            (timed.memory.with(size.members), size.units)
        };
        let sizes = (0..timed.need.sizes.len()).map(takes);
        let steps = (1..timed.need.sizes.len()).map(|at| {
            let ((memory, units), (less, fewer)) = (takes(at), takes(at - 1));
            (memory - less, units - fewer)
        });
        let all = sizes.chain(steps).filter_map(|(memory, units)| Self::new(memory, units));
        all.reduce(|most, other| if other.is_more_than(most) { other } else { most })
    }

    fn is_more_than(self, other: Self) -> bool {
        i128::from(self.memory) * i128::from(other.units) > i128::from(other.memory) * i128::from(self.units)
    }

    /// The units that an amount of memory suffices for.
    pub(super) fn units_in(self, memory: Units) -> Units {
        let units = i128::from(memory) * i128::from(self.units);
        Units::try_from(units.div_euclid(i128::from(self.memory))).unwrap_or(Units::MAX)
    }
}

/// Whether memory may run out on some node before what jobs book does.
pub(super) fn may_run_out(snapshot: &Snapshot<'_>, jobs: &[DeadlineJob<'_>], staying: &[&Job]) -> bool {
    let ready = || snapshot.cluster.nodes().values().filter(|node| node.state == NodeState::Ready);
    let scarcest = |units: fn(Resources) -> u64| {
        let per_unit = |has: Resources| PerUnit {
            memory: bytes(has.memory),
            units: Units::try_from(units(has)).unwrap_or(Units::MAX),
        };
        let all = ready().map(|node| per_unit(node.capacity)).filter(|node| node.units > 0);
        all.reduce(|least, other| if least.is_more_than(other) { other } else { least })
    };
    let (by_gpus, by_cores) = (scarcest(|has| has.gpus.0), scarcest(|has| has.cpu.0));
    let runs_out = |kind: Kind, most: PerUnit| {
        let has = if matches!(kind, Kind::Gpus(_)) { by_gpus } else { by_cores };
        has.is_some_and(|has| most.is_more_than(has))
    };
    let timed = jobs.iter().filter_map(|timed| Some((timed.kind, PerUnit::most_of(timed)?)));
    let staying = staying.iter().filter_map(|job| Some((Kind::of(job), PerUnit::of(job)?)));
    timed.chain(staying).any(|(kind, most)| runs_out(kind, most))
}
