//! Which jobs share the cores of a node, and when each of them would end.
//!
//! On one shared resource the mean completion time falls if the job with least left goes first, and the last job does
//! not end later if a job that alone takes nearly as long as all together does not wait: that is the order here. What
//! is left is what jobs have reported, or their owners stated; a job without either is taken to be as long as the
//! median.

use std::collections::BTreeMap;

use super::draft::Draft;
use crate::decide::snapshot::Snapshot;
use crate::model::id::{JobId, NodeId};
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::units::{Cpu, Instant, Share};
use crate::observe::progress::Category;
use crate::tuning::DecideTuning;

/// A job that shares the cores of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CoreSharer {
    pub(super) job: JobId,
    /// The most cores it can use.
    pub(super) cores: f64,
    /// Core-seconds that it still needs; `None` where that is unknown.
    left: Option<f64>,
    used: f64,
    pub(super) confidence: Share,
    pub(super) category: Category,
    /// Weight of its gains and losses when migrations are compared.
    pub(super) category_weight: f64,
    submitted: Instant,
}

impl CoreSharer {
    fn of(snapshot: &Snapshot<'_>, id: JobId, job: &Job) -> Option<Self> {
        let (now, tuning) = (snapshot.now, &snapshot.tuning.decide);
        let cores = cores(job.spec.work.cpu?);
        let known = job.foreseen(now).filter(|_| !job.progress.is_doubted(now, &snapshot.tuning.observe));
        Some(Self {
            job: id,
            cores,
            left: known.map(|left| left.as_secs_f64().max(0.1) * cores),
            used: job.progress.executed(now).as_secs_f64() * cores,
            confidence: if known.is_some() {
                confidence(tuning, job)
            } else {
                tuning.confidence_without_evidence
            },
            category: job.progress.learning.category(),
            category_weight: job.progress.learning.category().weight(&snapshot.tuning.observe),
            submitted: job.submitted,
        })
    }

    pub(super) fn is_known(&self) -> bool {
        self.left.is_some()
    }

    /// Core-seconds left where a job usually needs `usual` in all: the prediction counts as far as it is certain.
    pub(super) fn left(&self, usual: f64) -> f64 {
        let as_usual = (usual - self.used).max(0.5 * self.used).max(1.0);
        let sure = self.confidence.as_f64();
        self.left.map_or(as_usual, |left| sure * left + (1.0 - sure) * as_usual)
    }

    /// Seconds since its submission.
    pub(super) fn age(&self, now: Instant) -> f64 {
        now.since(self.submitted).as_secs_f64()
    }
}

/// The confidence in a prediction: whole where iterations are counted, that of the curve where a metric is to be
/// reached.
fn confidence(tuning: &DecideTuning, job: &Job) -> Share {
    let target = job.spec.work.target.filter(|_| job.spec.work.iterations.is_none());
    let predicted = job.progress.learning.predicted();
    match (target, predicted) {
        (None, _) => Share::WHOLE,
        (Some(_), predicted) => {
            predicted.map_or(tuning.confidence_without_evidence, |predicted| predicted.confidence)
        }
    }
}

pub(super) fn cores(cpu: Cpu) -> f64 {
    cpu.0 as f64 / Cpu::cores(1).0 as f64
}

/// The jobs that share cores, by node.
#[derive(Clone, Debug, Default)]
pub(super) struct CoreSharing {
    by_node: BTreeMap<NodeId, Vec<CoreSharer>>,
    /// Core-seconds that a job usually needs in all.
    pub(super) usual: f64,
}

impl CoreSharing {
    /// The jobs on one node each, as the draft has them.
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let Snapshot { plan, jobs, now, .. } = *draft.snapshot;
        let mut by_node: BTreeMap<NodeId, Vec<CoreSharer>> = BTreeMap::new();
        let stays = plan.iter().filter(|(id, _)| !draft.is_changed(*id)).map(|(id, held)| (id, &**held));
        let comes = draft.starting().map(|(id, held)| (id, &**held));
        for (id, held) in stays.chain(comes) {
            // A stalled job uses nothing, and no core is kept for it.
            let counts = |job: &&Job| job.spec.work.cpu.is_some() && job.progress.silent_since(now).is_none();
            let Some(job) = jobs.get(id).filter(counts) else { continue };
            if let (Some(node), Some(mate)) = (only_node(held), CoreSharer::of(draft.snapshot, id, job)) {
                by_node.entry(node).or_default().push(mate);
            }
        }
        let usual = usual(&draft.snapshot.tuning.decide, by_node.values().flatten());
        Self { by_node, usual }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &[CoreSharer])> {
        self.by_node.iter().map(|(node, mates)| (*node, &mates[..]))
    }

    pub(super) fn on(&self, node: NodeId) -> &[CoreSharer] {
        self.by_node.get(&node).map_or(&[], |mates| mates)
    }

    /// Seconds until all jobs on a node have ended.
    pub(super) fn drains(&self, node: NodeId, capacity: f64) -> f64 {
        drains(self.on(node), capacity, self.usual)
    }
}

/// The node of an assignment that lies on one node.
pub(super) fn only_node(held: &Assignment) -> Option<NodeId> {
    let mut nodes = held.nodes();
    nodes.next().filter(|_| nodes.next().is_none())
}

/// The median of what jobs need in all, of those of which it is known.
fn usual<'m>(tuning: &DecideTuning, mates: impl Iterator<Item = &'m CoreSharer> + Clone) -> f64 {
    let middle = |mut all: Vec<f64>| {
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    };
    let known = middle(mates.clone().filter_map(|mate| Some(mate.left? + mate.used)).collect());
    let cores = || middle(mates.map(|mate| mate.cores).collect()).unwrap_or(1.0);
    known.unwrap_or_else(|| tuning.assumed_core_time.as_secs_f64() * cores())
}

fn drains(mates: &[CoreSharer], capacity: f64, usual: f64) -> f64 {
    let together: f64 = mates.iter().map(|mate| mate.left(usual)).sum();
    let longest = mates.iter().map(|mate| mate.left(usual) / mate.cores).fold(0.0, f64::max);
    longest.max(together / capacity)
}

/// Whether the jobs can use more cores than the node has.
pub(super) fn is_crowded(mates: &[CoreSharer], capacity: f64) -> bool {
    mates.iter().map(|mate| mate.cores).sum::<f64>() > capacity
}

/// The order in which jobs are served: those that decide when all have ended, then those with least left.
pub(super) fn in_order(
    tuning: &DecideTuning,
    mates: &[CoreSharer],
    capacity: f64,
    usual: f64,
) -> Vec<CoreSharer> {
    let drains = drains(mates, capacity, usual);
    let together: f64 = mates.iter().map(|mate| mate.left(usual)).sum();
    let waits = |mate: &CoreSharer| {
        let (left, alone) = (mate.left(usual), mate.left(usual) / mate.cores);
        alone < tuning.critical_part * drains
            || (together - left) / capacity + alone < tuning.max_later_for_short_jobs * drains
    };
    let mut order = mates.to_vec();
    order.sort_by(|one, other| {
        let sooner = one.left(usual).total_cmp(&other.left(usual));
        waits(one).cmp(&waits(other)).then(sooner).then(one.job.cmp(&other.job))
    });
    order
}

/// The end of each job in seconds from now, if the first has all cores it can use and the next what is left.
pub(super) fn finishes(
    tuning: &DecideTuning,
    mates: &[CoreSharer],
    capacity: f64,
    usual: f64,
) -> BTreeMap<JobId, f64> {
    let mut waiting: Vec<(CoreSharer, f64)> =
        in_order(tuning, mates, capacity, usual).into_iter().map(|mate| (mate, mate.left(usual))).collect();
    let (mut now, mut done) = (0.0, BTreeMap::new());
    while !waiting.is_empty() {
        let mut free = capacity;
        let served: Vec<f64> = waiting
            .iter()
            .map(|(mate, _)| {
                let has = mate.cores.min(free);
                free -= has;
                has
            })
            .collect();
        let ends = waiting.iter().zip(&served).filter(|(_, has)| **has > 0.0);
        let step = ends.map(|((_, left), has)| left / has).fold(f64::INFINITY, f64::min);
        now += step;
        for ((_, left), has) in waiting.iter_mut().zip(&served) {
            *left -= has * step;
        }
        waiting.retain(|(mate, left)| {
            let over = *left <= 1e-6;
            if over {
                done.insert(mate.job, now);
            }
            !over
        });
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mate(job: u32, cores: f64, left: f64) -> CoreSharer {
        let (confidence, submitted) = (Share::WHOLE, Instant::START);
        let category = Category::Progressing;
        let category_weight = category.weight(&crate::tuning::ObserveTuning::DEFAULT);
        let left = Some(left);
        CoreSharer {
            job: JobId(job),
            cores,
            left,
            used: 0.0,
            confidence,
            category,
            category_weight,
            submitted,
        }
    }

    #[test]
    fn jobs_with_least_left_end_first() {
        let mates = [mate(0, 4.0, 40.0), mate(1, 4.0, 8.0), mate(2, 4.0, 20.0)];
        let done = finishes(&DecideTuning::DEFAULT, &mates, 4.0, 0.0);
        assert_eq!(done[&JobId(1)], 2.0);
        assert_eq!(done[&JobId(2)], 7.0);
        assert_eq!(done[&JobId(0)], 17.0);
    }

    #[test]
    fn a_job_that_takes_as_long_alone_as_all_together_does_not_wait() {
        // With one core the first takes forty seconds, whatever the others do.
        let mates = [mate(0, 1.0, 40.0), mate(1, 4.0, 40.0), mate(2, 4.0, 40.0)];
        let done = finishes(&DecideTuning::DEFAULT, &mates, 4.0, 0.0);
        assert_eq!(done[&JobId(0)], 40.0);
    }

    #[test]
    fn a_job_that_can_use_little_leaves_the_rest_to_the_next() {
        let mates = [mate(0, 1.0, 2.0), mate(1, 4.0, 60.0)];
        let done = finishes(&DecideTuning::DEFAULT, &mates, 4.0, 0.0);
        assert_eq!((done[&JobId(0)], done[&JobId(1)]), (2.0, 15.5));
    }
}
