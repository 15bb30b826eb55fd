//! Policies: every choice that a user can make about decisions. Each baseline is a named row of one table.

use serde::{Deserialize, Serialize};

use crate::model::units::{Duration, GpuTime, Share};
use crate::tuning::{DecideTuning, Tuning};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub name: String,
    pub order: Order,
    pub gangs: Gangs,
    pub queueing: Queueing,
    #[serde(default)]
    pub sharing: Sharing,
    #[serde(default, skip_serializing_if = "Sizing::is_least")]
    pub sizing: Sizing,
    pub preemption: Preemption,
    pub placement: Placement,
    pub links: Links,
    #[serde(default)]
    pub slowdowns: Slowdowns,
    #[serde(default)]
    pub moving: Moving,
    #[serde(default, skip_serializing_if = "Throttling::is_never")]
    pub throttling: Throttling,
    #[serde(default, skip_serializing_if = "Deadlines::are_ignored")]
    pub deadlines: Deadlines,
    /// The numbers on which decisions depend. Only overridden entries are written.
    #[serde(default, skip_serializing_if = "Tuning::is_default")]
    pub tuning: Tuning,
}

/// The order of waiting jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// First submitted, first served.
    Fifo,
    /// Highest priority first; within a priority, first submitted first.
    Priority,
    /// Shortest remaining time first.
    Srtf,
    /// Smallest remaining service (time × GPUs) first.
    Srsf,
    /// Discretised two-dimensional least attained service: levels by attained GPU-time, first in first out within a level.
    LeastAttained { limits: Vec<GpuTime> },
    /// Weighted priority of user, job, waiting time, size and estimated duration.
    Weighted(Weights),
}

/// The weights of the combined priority, which sum to 1, and the window of its aging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WeightsText", into = "WeightsText")]
pub struct Weights {
    parts: Parts,
    window: Duration,
}

/// The weight of each part of the combined priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub user: Share,
    pub task: Share,
    pub wait: Share,
    pub width: Share,
    /// Zero in journals that are older than this part.
    #[serde(default)]
    pub brevity: Share,
}

/// The score of a job for each part of the combined priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub user: Share,
    pub task: Share,
    pub wait: Wait,
    pub width: Share,
    pub brevity: Share,
}

/// The waiting time of a job, and the times that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub waited: Duration,
    /// A wait of this length scores in full.
    pub full: Duration,
    /// Beyond this length the wait begins to outweigh all other parts.
    pub window: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    #[error("the weights sum to {} instead of 1", f64::from(*.0) / f64::from(Share::WHOLE.0))]
    Sum(u32),
    #[error("the waiting window must be greater than zero")]
    NoWindow,
    #[error("waiting weighs at most 0.5, or the wait of a job would have no bound")]
    WaitTooHeavy,
}

impl Parts {
    fn sum(&self) -> u32 {
        let Self { user, task, wait, width, brevity } = *self;
        [user, task, wait, width, brevity].iter().fold(0, |sum, share| sum.saturating_add(share.0))
    }
}

impl Weights {
    /// The weights of the tuning table.
    pub const DEFAULT: Self = Self::unchecked(&DecideTuning::DEFAULT);

    /// The weights that a tuning table gives.
    pub fn of(tuning: &DecideTuning) -> Result<Self, WeightsError> {
        let Self { parts, window } = Self::unchecked(tuning);
        Self::new(parts, window)
    }

    const fn unchecked(tuning: &DecideTuning) -> Self {
        let DecideTuning {
            user_weight: user,
            task_weight: task,
            wait_weight: wait,
            width_weight: width,
            brevity_weight: brevity,
            aging_window: window,
            ..
        } = *tuning;
        Self { parts: Parts { user, task, wait, width, brevity }, window }
    }

    pub fn new(parts: Parts, window: Duration) -> Result<Self, WeightsError> {
        if parts.sum() != Share::WHOLE.0 {
            return Err(WeightsError::Sum(parts.sum()));
        }
        if window.is_zero() {
            return Err(WeightsError::NoWindow);
        }
        if parts.wait.0 > Share::WHOLE.0 / 2 {
            return Err(WeightsError::WaitTooHeavy);
        }
        Ok(Self { parts, window })
    }

    /// The combined priority in millionths; the job with the greatest is served first. A wait of `full` scores its whole
    /// weight. Beyond one window, which is no shorter than `full`, the priority grows without bound, so that no job starves:
    /// after twice the window, times one less the weight of waiting, a job is ahead of every newcomer.
    pub fn score(&self, claim: &Claim) -> u64 {
        let whole = u128::from(Share::WHOLE.0);
        let part = |weight: Share, share: u128| u128::from(weight.0) * share;
        let age = |window: Duration| u128::from(claim.wait.waited.0) * whole / u128::from(window.0.max(1));
        let weighed = part(self.parts.user, u128::from(claim.user.0))
            + part(self.parts.task, u128::from(claim.task.0))
            + part(self.parts.wait, age(claim.wait.full).min(whole))
            + part(self.parts.width, u128::from(claim.width.0))
            + part(self.parts.brevity, u128::from(claim.brevity.0));
        u64::try_from(weighed / whole + age(claim.wait.window).saturating_sub(whole)).unwrap_or(u64::MAX)
    }

    pub fn window(&self) -> Duration {
        self.window
    }
}

#[derive(Serialize, Deserialize)]
struct WeightsText {
    #[serde(flatten)]
    parts: Parts,
    window: Duration,
}

impl TryFrom<WeightsText> for Weights {
    type Error = WeightsError;
    fn try_from(WeightsText { parts, window }: WeightsText) -> Result<Self, WeightsError> {
        Self::new(parts, window)
    }
}

impl From<Weights> for WeightsText {
    fn from(Weights { parts, window }: Weights) -> Self {
        Self { parts, window }
    }
}

/// Whether the members of a job are placed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gangs {
    Whole,
    /// Every member is a gang of its own, and the world holds the start barrier: two jobs that are each placed in part may
    /// deadlock.
    MemberByMember,
}

/// Which jobs may start while the first job of the queue does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Queueing {
    /// No job: the first blocks the queue.
    HeadBlocks,
    /// Every job that fits.
    Skip,
    /// Backfill: every job that fits and does not delay the first few jobs that do not fit. Those have reservations, from
    /// the time at which capacity is expected to suffice.
    Reserve,
}

/// Which queue is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sharing {
    /// All jobs are in one queue; limits and quotas of their queues bound what they hold.
    #[default]
    Ignored,
    /// The queue with the least dominant share for its weight; queues within their quota come before queues that borrow.
    Fair,
}

/// The number of members of an elastic gang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sizing {
    /// Its minimum.
    #[default]
    Least,
    /// Its minimum, and more while no job waits for the capacity. A job that begins to wait gets it back before any job is
    /// preempted.
    Spare,
}

impl Sizing {
    /// For serde: a missing field has this value.
    fn is_least(&self) -> bool {
        *self == Self::Least
    }
}

/// Which running jobs are preempted for waiting jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Preemption {
    Never,
    /// In every cycle all jobs that can be suspended are ranked together, and capacity is assigned in that order.
    ByRank,
    /// A job that does not fit into the free capacity may preempt running jobs of strictly lower priority, as few as
    /// suffice. Where queues have shares, it does so within its queue, and a queue that holds less than its share may
    /// reclaim it from a queue that holds more.
    ByPriority,
    /// As `ByPriority`, and also jobs of equal priority that lose no work by it and have far more service left.
    ByGain,
}

impl Preemption {
    /// Whether a job that does not fit searches for victims.
    pub const fn makes_room(self) -> bool {
        matches!(self, Self::ByPriority | Self::ByGain)
    }
}

/// The nodes on which the members of a job are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// Member by member to the least allocated, best balanced node, as kube-scheduler scores by default.
    Spread,
    /// Member by member to the fullest node that has enough free capacity.
    Pack,
    /// As `Pack`, with workers on the nodes of their parameter servers and the servers on different nodes: Volcano's
    /// task-topology.
    Buckets,
    /// The whole gang inside the smallest domain that holds it, on its fewest nodes, best fit first.
    Topology,
    /// Member by member to the node nearest to the members of its job that were placed before, then as `Spread`; never to a
    /// node whose links are used up on average: Diktyo's network cost.
    Nearest,
}

/// Traffic policies of jobs that share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Links {
    /// Fair sharing.
    Shared,
    /// A job that begins to share links waits once, until its bursts fall between those of the other jobs.
    Shift,
    /// A job that has sent more bytes of its iteration has a larger weight.
    Weighted,
    /// A job that has fewer bytes of its iteration left has a higher class, among four.
    Classes,
    /// For each set of jobs that share links, the traffic policies in which they are predicted to lose least.
    Chosen,
    /// All jobs that share links wait until their bursts fall between each other, by shifts that follow from link to link,
    /// and again after they have drifted: CASSINI's affinity graph.
    Rotated,
    /// As `Rotated`, in the order of priorities and with a cushion after each burst: no job is shifted for a lower priority.
    Cushioned,
    /// Every job has every link to itself: no world is like this, and no policy can do better with the same placement.
    Ideal,
}

/// How placement takes into account that jobs slow each other down on links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Slowdowns {
    /// It does not.
    #[default]
    Unseen,
    /// Of several places it chooses the one at which all jobs together are predicted to lose least.
    Weighed,
    /// As `Weighed`, and a job waits for a better place while starting is predicted to cost more.
    WaitedOut,
    /// The peak rate of a job is reserved on each link, and the job waits for a place whose links have that much left.
    Reserved,
    /// Of places that are equally near it chooses the one whose links are most compatible: where bursts with the best shifts
    /// exceed the links least.
    Compatible,
    /// It chooses the nearest place at which bursts can be kept apart, or else the most compatible place.
    KeptApart,
}

/// Migration of running jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moving {
    #[default]
    Never,
    /// Jobs that can be moved go to places where all jobs together are predicted to gain more than the move costs.
    ForGain,
    /// Each job that learns little for the resources that it uses moves once, to where it delays others least; from time to
    /// time a job moves from the fullest node to the emptiest: SpeCon's speculative migration.
    Speculative,
}

/// CPU weights on nodes whose jobs can use more cores than the node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Throttling {
    /// Equal weights: jobs share the cores fairly.
    #[default]
    Never,
    /// A larger weight for the jobs that have least left to do, and for a job that alone takes as long as all together.
    LeastLeftFirst,
}

impl Throttling {
    /// For serde: a missing field has this value.
    fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// How deadlines are met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deadlines {
    /// Deadlines are recorded and change no decision.
    #[default]
    Ignored,
    /// Earliest deadline first: the job that is due first has as many members as it can use, and takes them from jobs that
    /// are due later.
    Earliest,
    /// A job is admitted if all admitted jobs can still meet their deadlines, and never runs otherwise: ElasticFlow's
    /// admission and scaling.
    Filled,
    /// Capacity is booked ahead for an admitted job, and its deadline is promised if it is strict or needs no more than most
    /// jobs. A job that is not admitted runs on the remaining capacity and is reconsidered.
    Promised,
}

impl Deadlines {
    /// For serde: a missing field has this value.
    fn are_ignored(&self) -> bool {
        *self == Self::Ignored
    }
}

impl Policy {
    /// Names of all policies, in the order of the reference page.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(name, _)| *name)
    }

    pub fn named(name: &str) -> Option<Self> {
        let (name, choices) = TABLE.iter().find(|(known, _)| *known == name)?;
        Some(Self { name: (*name).to_owned(), ..choices() })
    }

    /// Whether decisions depend on the traffic of waiting jobs.
    pub fn depends_on_traffic(&self) -> bool {
        self.slowdowns != Slowdowns::Unseen || self.placement == Placement::Nearest
    }

    /// Whether decisions depend on the estimated duration of waiting jobs.
    pub fn depends_on_durations(&self) -> bool {
        self.queueing == Queueing::Reserve || self.preemption == Preemption::ByGain
    }

    /// The same policy with this table; a combined priority has the weights of the table.
    pub fn tuned(mut self, tuning: Tuning) -> Result<Self, WeightsError> {
        if let Order::Weighted(weights) = &mut self.order {
            *weights = Weights::of(&tuning.decide)?;
        }
        Ok(Self { tuning, ..self })
    }

    /// The same policy, with preemption by priority unless it preempts already.
    pub fn preempting(mut self) -> Self {
        if !self.preemption.makes_room() {
            self.preemption = Preemption::ByPriority;
        }
        self
    }
}

/// kube-scheduler's choices, with whole gangs: most baselines differ from it in a few fields.
fn kube() -> Policy {
    Policy {
        name: String::new(),
        order: Order::Priority,
        gangs: Gangs::Whole,
        queueing: Queueing::Skip,
        sharing: Sharing::Ignored,
        sizing: Sizing::Least,
        preemption: Preemption::Never,
        placement: Placement::Spread,
        links: Links::Shared,
        slowdowns: Slowdowns::Unseen,
        moving: Moving::Never,
        throttling: Throttling::Never,
        deadlines: Deadlines::Ignored,
        tuning: Tuning::DEFAULT,
    }
}

/// Metronome's choices, except those about links.
fn ours() -> Policy {
    Policy {
        name: String::new(),
        order: Order::Weighted(Weights::DEFAULT),
        gangs: Gangs::Whole,
        queueing: Queueing::Reserve,
        sharing: Sharing::Fair,
        sizing: Sizing::Spare,
        preemption: Preemption::ByGain,
        placement: Placement::Topology,
        links: Links::Shared,
        slowdowns: Slowdowns::Unseen,
        moving: Moving::Never,
        throttling: Throttling::Never,
        deadlines: Deadlines::Promised,
        tuning: Tuning::DEFAULT,
    }
}

/// All jobs that can be suspended ranked together, packed, with backfill.
fn ranked(order: Order) -> Policy {
    Policy { order, preemption: Preemption::ByRank, placement: Placement::Pack, ..kube() }
}

/// The limits of Tiresias' two lower levels, as published.
fn tiresias_levels() -> Order {
    Order::LeastAttained { limits: vec![GpuTime::gpu_seconds(3250), GpuTime::gpu_seconds(7200)] }
}

/// A name and its policy.
type Row = (&'static str, fn() -> Policy);

#[rustfmt::skip]
const TABLE: &[Row] = {
    use {Deadlines::{Earliest, Filled}, Gangs::MemberByMember, Links::{Chosen, Classes, Cushioned, Ideal, Rotated, Shift, Weighted}, Moving::{ForGain, Speculative}, Placement::*, Queueing::*, Sharing::Fair, Slowdowns::*};
    &[
        ("metronome",    || Policy { links: Chosen, slowdowns: WaitedOut, moving: ForGain, throttling: Throttling::LeastLeftFirst, ..ours() }),
        ("kubernetes",   || Policy { gangs: MemberByMember, ..kube() }),
        ("coscheduling", kube),
        ("volcano",      || Policy { sharing: Fair, placement: Buckets, ..kube() }),
        ("fifo",         || Policy { order: Order::Fifo, queueing: HeadBlocks, placement: Pack, ..kube() }),
        ("fifo-skip",    || Policy { order: Order::Fifo, placement: Pack, ..kube() }),
        ("srtf",         || ranked(Order::Srtf)),
        ("srsf",         || ranked(Order::Srsf)),
        ("tiresias",     || ranked(tiresias_levels())),
        ("edf",          || Policy { order: Order::Fifo, placement: Pack, deadlines: Earliest, ..kube() }),
        ("elasticflow",  || Policy { order: Order::Fifo, placement: Pack, deadlines: Filled, ..kube() }),
        ("fair",         || Policy { placement: Topology, ..kube() }),
        ("shift",        || Policy { placement: Topology, links: Shift, ..kube() }),
        ("weighted",     || Policy { placement: Topology, links: Weighted, ..kube() }),
        ("classes",      || Policy { placement: Topology, links: Classes, ..kube() }),
        ("exclusive",    || Policy { placement: Topology, slowdowns: Reserved, ..kube() }),
        ("diktyo",       || Policy { placement: Nearest, ..kube() }),
        ("cassini",      || Policy { placement: Topology, links: Rotated, slowdowns: Compatible, ..kube() }),
        ("metronome-paper", || Policy { placement: Topology, links: Cushioned, slowdowns: KeptApart, ..kube() }),
        ("specon",       || Policy { moving: Speculative, ..kube() }),
        ("solo",         || Policy { links: Ideal, ..ours() }),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_the_whole() {
        let share = Share(200_000);
        let parts = Parts { user: share, task: share, wait: share, width: share, brevity: share };
        assert!(Weights::new(parts, Duration::MINUTE).is_ok());
        let less = Parts { width: Share(1), ..parts };
        assert_eq!(Weights::new(less, Duration::MINUTE), Err(WeightsError::Sum(800_001)));
        assert_eq!(Weights::new(parts, Duration::ZERO), Err(WeightsError::NoWindow));
    }

    #[test]
    fn a_job_that_waits_long_enough_outranks_every_newcomer() {
        let many =
            [[400, 300, 200, 100, 0], [200, 200, 200, 200, 200], [0, 500, 500, 0, 0], [50, 50, 0, 0, 900]];
        for all in many {
            let [user, task, wait, width, brevity] = all.map(|part: u32| Share(part * 1000));
            let parts = Parts { user, task, wait, width, brevity };
            let weights = Weights::new(parts, Duration::MINUTE).unwrap();
            for window in [weights.window(), Duration::HOUR] {
                let bound =
                    Duration(window.0 * 2 * u64::from(Share::WHOLE.0 - wait.0) / u64::from(Share::WHOLE.0));
                let claim = |of: Share, waited: Duration| {
                    let wait = Wait { waited, full: window, window };
                    weights.score(&Claim { user: of, task: of, wait, width: of, brevity: of })
                };
                assert!(claim(Share::NONE, bound) >= claim(Share::WHOLE, Duration::ZERO), "{weights:?}");
            }
        }
    }

    #[test]
    fn every_name_in_the_table_is_a_policy() {
        for name in Policy::names() {
            assert_eq!(Policy::named(name).unwrap().name, name);
        }
        assert_eq!(Policy::named("best"), None);
    }
}
