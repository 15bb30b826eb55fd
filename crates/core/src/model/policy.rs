//! Every choice a user may make. Each baseline is a named value in one table.

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

/// Who goes first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// By submission.
    Fifo,
    /// By priority, then submission.
    Priority,
    /// Shortest remaining time first.
    Srtf,
    /// Smallest remaining service (time × GPUs) first.
    Srsf,
    /// Discretised two-dimensional least attained service: levels by GPU-time received, in order inside a level.
    LeastAttained { limits: Vec<GpuTime> },
    /// User, urgency, waiting time, width and brevity as one number.
    Weighted(Weights),
}

/// The parts of the combined priority, which sum to the whole, and the time that waiting is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WeightsText", into = "WeightsText")]
pub struct Weights {
    parts: Parts,
    window: Duration,
}

/// How much each part counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub user: Share,
    pub task: Share,
    pub wait: Share,
    pub width: Share,
    /// Nothing in journals that are older than this part.
    #[serde(default)]
    pub brevity: Share,
}

/// What a job has to show for each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub user: Share,
    pub task: Share,
    pub wait: Wait,
    pub width: Share,
    pub brevity: Share,
}

/// How long a job has waited, and against what that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub waited: Duration,
    /// After so long it counts in full beside the other parts.
    pub full: Duration,
    /// After so long it begins to outweigh them.
    pub window: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WeightsError {
    #[error("the weights sum to {} instead of 1", f64::from(*.0) / f64::from(Share::WHOLE.0))]
    Sum(u32),
    #[error("the waiting window lasts longer than nothing")]
    NoWindow,
    #[error("waiting weighs at most 0.5, or a newcomer could not be bounded")]
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

    /// The combined priority in millionths: greater goes first. A wait of `full` counts as much as its weight allows.
    /// Beyond one window of waiting, which is no shorter, the priority grows without bound, so that every job is served
    /// at last: after at most twice the part of the window that does not weigh the wait, it is ahead of everybody who
    /// comes.
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

/// Whether a job's members are placed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gangs {
    Whole,
    /// Every member is a gang of its own, and the world holds the start barrier: half-placed jobs may wait for each
    /// other for ever.
    MemberByMember,
}

/// What happens when the first in line does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Queueing {
    /// Everybody behind waits too.
    HeadBlocks,
    /// Whoever fits goes ahead.
    Skip,
    /// Whoever fits goes ahead, unless that would delay the first few who do not: for them room is kept, from when it
    /// is expected to be there.
    Reserve,
}

/// Which queue is served next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sharing {
    /// Queues bound what is held, and nothing else: all stand in one line.
    #[default]
    Ignored,
    /// The one whose dominant share is least for its weight, and those within their quota before those that borrow.
    Fair,
}

/// How many members an elastic gang gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Sizing {
    /// The least it asks for.
    #[default]
    Least,
    /// The least, and more while nobody waits for the room; whoever comes to wait has it back before anybody is stopped.
    Spare,
}

impl Sizing {
    /// For serde: what is left out means this.
    fn is_least(&self) -> bool {
        *self == Self::Least
    }
}

/// Who makes room for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Preemption {
    Never,
    /// At every cycle all jobs that can be suspended are ranked together, and the room goes down the list.
    ByRank,
    /// Who does not fit into what is free may take the place of running jobs of strictly lower priority, as few as
    /// will do. Where queues have shares, that is so inside a queue, and a queue that holds less than its own may take
    /// it back from one that holds more.
    ByPriority,
    /// The same, and also the place of jobs of equal priority that lose nothing but time by it and have far more left
    /// to do.
    ByGain,
}

impl Preemption {
    /// Whether those who do not fit look for others to take the place of.
    pub const fn makes_room(self) -> bool {
        matches!(self, Self::ByPriority | Self::ByGain)
    }
}

/// On which nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// Member by member to the least allocated, best balanced node, as kube-scheduler scores by default.
    Spread,
    /// Member by member to the fullest node that has room.
    Pack,
    /// As `Pack`, with workers beside their parameter servers and servers apart: Volcano's task-topology.
    Buckets,
    /// The whole gang inside the smallest domain that holds it, on its fewest nodes, best fit first.
    Topology,
    /// Member by member to the node nearest to those of its job that were placed before, then as `Spread`; never to one
    /// whose links are used up on average: Diktyo's cost of the network.
    Nearest,
}

/// What is done about jobs that meet on links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Links {
    /// Nothing: jobs that meet on a link share it fairly.
    Shared,
    /// Whoever comes to meet others waits once, until its bursts fall between theirs.
    Shift,
    /// Whoever has sent more of its iteration gets more of the link.
    Weighted,
    /// Whoever has least left to send of its iteration goes first, in four classes.
    Classes,
    /// For jobs that meet, whichever of these is predicted to cost them least.
    Chosen,
    /// All who meet wait until their bursts fall between each other's, by shifts that follow from link to link, and again
    /// when they have drifted: CASSINI's affinity graph.
    Rotated,
    /// The same in the order of priorities, with a cushion after each burst: nobody is shifted for a lower priority.
    Cushioned,
    /// Everybody has every link to themselves: no world is like this, but no policy can do better on its placement.
    Ideal,
}

/// How much it counts that jobs slow each other down on links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Slowdowns {
    /// Places are chosen without a look at what goes over links.
    #[default]
    Unseen,
    /// Of several places the one is chosen at which everybody together is predicted to lose least.
    Weighed,
    /// The same, and a job waits for a better place while starting is predicted to cost more.
    WaitedOut,
    /// What a job sends at its peak is reserved on each link, and it waits until some place has that left.
    Reserved,
    /// Of places that are equally near the one is chosen whose links are most compatible: where bursts that are shifted
    /// as well as can be exceed links least.
    Compatible,
    /// The nearest place is chosen at which bursts can be kept apart; where there is none, the most compatible.
    KeptApart,
}

/// Whether jobs that run are taken elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Moving {
    #[default]
    Never,
    /// Those that can be moved, to places where everybody together is predicted to gain more than the move costs.
    ForGain,
    /// Those that learn little for what they use, once each, to where they are in the way least; and now and then one from
    /// the fullest node to the emptiest: SpeCon's speculative migration.
    Speculative,
}

/// What is done where jobs can use more of their node's CPU than there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Throttling {
    /// Nothing: they share it fairly.
    #[default]
    Never,
    /// Whoever has least left to do has more of it, and whoever alone takes as long as all together.
    LeastLeftFirst,
}

impl Throttling {
    /// For serde: what is left out means this.
    fn is_never(&self) -> bool {
        *self == Self::Never
    }
}

/// What is done so that jobs are in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Deadlines {
    /// Nothing: a deadline is noted, and that is all.
    #[default]
    Ignored,
    /// Whoever is due first has as many members as it can use, and takes them from whoever is due later.
    Earliest,
    /// Who comes is taken on if everybody can be in time, and never runs if not: ElasticFlow's admission and scaling.
    Filled,
    /// Who is taken on has what it needs booked ahead, and promised if it is strict or takes no more than most; who is not
    /// runs on what is left, and is looked at again.
    Promised,
}

impl Deadlines {
    /// For serde: what is left out means this.
    fn are_ignored(&self) -> bool {
        *self == Self::Ignored
    }
}

impl Policy {
    /// Names of all policies, in the order in which they are listed to users.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|(name, _)| *name)
    }

    pub fn named(name: &str) -> Option<Self> {
        let (name, choices) = TABLE.iter().find(|(known, _)| *known == name)?;
        Some(Self { name: (*name).to_owned(), ..choices() })
    }

    /// Whether it matters what a waiting job will send.
    pub fn looks_at_exchanges(&self) -> bool {
        self.slowdowns != Slowdowns::Unseen || self.placement == Placement::Nearest
    }

    /// Whether it matters how long a waiting job will take.
    pub fn looks_at_lengths(&self) -> bool {
        self.queueing == Queueing::Reserve || self.preemption == Preemption::ByGain
    }

    /// The same policy with this table; a combined priority has the weights of the table.
    pub fn tuned(mut self, tuning: Tuning) -> Result<Self, WeightsError> {
        if let Order::Weighted(weights) = &mut self.order {
            *weights = Weights::of(&tuning.decide)?;
        }
        Ok(Self { tuning, ..self })
    }

    /// The same policy, with room made for whoever has a higher priority.
    pub fn preempting(mut self) -> Self {
        if !self.preemption.makes_room() {
            self.preemption = Preemption::ByPriority;
        }
        self
    }
}

/// What kube-scheduler does, with gangs placed whole: most baselines differ from it in a few choices.
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

/// All we do, but for what is done about links.
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

/// Everybody who can be suspended ranked together, packed, whoever fits goes ahead.
fn ranked(order: Order) -> Policy {
    Policy { order, preemption: Preemption::ByRank, placement: Placement::Pack, ..kube() }
}

/// The limits of Tiresias' two lower levels, in GPU-seconds.
fn tiresias_levels() -> Order {
    Order::LeastAttained { limits: vec![GpuTime::gpu_seconds(3250), GpuTime::gpu_seconds(7200)] }
}

/// A name, and the choices behind it.
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
    fn whoever_waits_long_enough_outranks_every_newcomer() {
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
