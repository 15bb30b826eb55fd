//! Straggler detection: compute times of a gang's members relative to their peers.
//!
//! A member is compared with members of the same role on other nodes of the same kind: with those that run beside it
//! now, or, if the job runs on a single node, with its own past on other nodes. The median of the latest reports
//! counts, so outliers have no effect. A member is judged only after it stayed on one side of the threshold for
//! several reports and some time. The scheduler's clock gives the time of a report.

use serde::{Deserialize, Serialize};

use crate::model::id::NodeId;
use crate::model::units::{Duration, Instant, Share};
use crate::observe::scaling::Speed;
use crate::tuning::ObserveTuning;

/// Former nodes that are remembered for comparison: a bound on memory.
const MAX_FORMER_NODES: usize = 8;

/// Result of straggler detection for the members on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StragglerVerdict {
    Nothing,
    /// Members on the node have this fraction of their peers' speed.
    IsSlow {
        speed: Speed,
        beside: PeerBasis,
    },
    /// Members on the node are about as fast as their peers.
    KeepsUp,
    /// The job's members are slow on every node.
    SlowEverywhere,
}

/// Peers that a member was compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerBasis {
    /// Members that run at the same time.
    Concurrent,
    /// The job's own members on other nodes before.
    OwnPast,
}

/// Iteration times of a gang's members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct MemberTimes {
    /// In order of role and node.
    members: Vec<MemberTime>,
    /// Time at which the job last left a node on which it was slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_slow: Option<Instant>,
}

/// Members of one role on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemberTime {
    role: u8,
    node: NodeId,
    /// Latest reported times, the newest last, and their median.
    lately: Vec<Duration>,
    takes: Duration,
    /// Median of the peers' times.
    peers: Duration,
    side: Side,
    /// Time since which, and reports for which, the members have been on that side.
    since: Instant,
    times: u32,
    /// Time from which the members are judged, once there are enough reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    judged_from: Option<Instant>,
    /// Whether the members run there now.
    is_there: bool,
}

/// Side of the straggler threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Side {
    Slow,
    Between,
    Well,
}

impl Side {
    /// Side of a time relative to the peers'; the gap between both bounds is hysteresis.
    fn of(takes: Duration, peers: Duration, tuning: &ObserveTuning) -> Self {
        let whole = u128::from(Share::WHOLE.0);
        let takes = u128::from(takes.0) * whole;
        let with_excess = |excess: Share| u128::from(peers.0) * (whole + u128::from(excess.0));
        match () {
            () if takes >= with_excess(tuning.straggler_excess) => Self::Slow,
            () if takes <= with_excess(tuning.keeps_up_excess) => Self::Well,
            () => Self::Between,
        }
    }
}

impl MemberTime {
    fn new(now: Instant, role: u8, node: NodeId, took: Duration) -> Self {
        Self {
            role,
            node,
            lately: vec![took],
            takes: took,
            peers: took,
            side: Side::Between,
            since: now,
            times: 0,
            judged_from: None,
            is_there: true,
        }
    }

    fn record(&mut self, took: Duration, tuning: &ObserveTuning) {
        while self.lately.len() >= tuning.straggler_median_reports {
            self.lately.remove(0);
        }
        self.lately.push(took);
        self.takes = lower_median(self.lately.clone()).unwrap_or(took);
    }

    fn set_side(&mut self, now: Instant, side: Side, tuning: &ObserveTuning) {
        if self.side != side {
            (self.side, self.since, self.times) = (side, now, 0);
        }
        self.times = self.times.saturating_add(1);
        let is_sustained = self.times >= tuning.straggler_reports;
        self.judged_from = is_sustained.then(|| self.since + tuning.straggler_duration);
    }

    fn is_judged(&self, now: Instant) -> bool {
        self.judged_from.is_some_and(|from| from <= now)
    }
}

impl MemberTimes {
    /// Whether the value is the default, which serde omits.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Records a compute time and judges the members. Nodes of the same kind, for which `alike` is true, count as
    /// peers.
    pub(super) fn record(
        &mut self,
        now: Instant,
        (role, node): (u8, NodeId),
        took: Duration,
        alike: impl Fn(NodeId) -> bool,
        tuning: &ObserveTuning,
    ) -> StragglerVerdict {
        if took.is_zero() {
            return StragglerVerdict::Nothing;
        }
        let at = self.record_time(now, (role, node), took, tuning);
        let Some((peers, beside)) = self.peer_median(at, alike, tuning) else {
            return StragglerVerdict::Nothing;
        };
        let member = &mut self.members[at];
        member.peers = peers;
        member.set_side(now, Side::of(member.takes, peers, tuning), tuning);
        match member.side {
            _ if !member.is_judged(now) => StragglerVerdict::Nothing,
            Side::Slow if self.left_slow.is_some_and(|left| now.since(left) < tuning.slow_job_window) => {
                StragglerVerdict::SlowEverywhere
            }
            Side::Slow => StragglerVerdict::IsSlow { speed: speed(member.takes, peers), beside },
            Side::Well => StragglerVerdict::KeepsUp,
            Side::Between => StragglerVerdict::Nothing,
        }
    }

    /// Adds a report to the member's entry; returns its index.
    fn record_time(
        &mut self,
        now: Instant,
        (role, node): (u8, NodeId),
        took: Duration,
        tuning: &ObserveTuning,
    ) -> usize {
        match self.members.binary_search_by_key(&(role, node), |member| (member.role, member.node)) {
            Ok(at) => {
                self.members[at].record(took, tuning);
                self.members[at].is_there = true;
                at
            }
            Err(at) => {
                self.members.insert(at, MemberTime::new(now, role, node, took));
                at
            }
        }
    }

    /// Median time of the member's peers, and which peers they are.
    fn peer_median(
        &self,
        at: usize,
        alike: impl Fn(NodeId) -> bool,
        tuning: &ObserveTuning,
    ) -> Option<(Duration, PeerBasis)> {
        let me = &self.members[at];
        let others = self.members.iter().filter(|other| other.role == me.role && other.node != me.node);
        let known: Vec<&MemberTime> = others
            .filter(|other| other.lately.len() >= tuning.min_peer_reports && alike(other.node))
            .collect();
        let takes = |is_there: bool| {
            let such = known.iter().filter(|other| other.is_there == is_there);
            lower_median(such.map(|other| other.takes).collect())
        };
        let at_once = takes(true).map(|takes| (takes, PeerBasis::Concurrent));
        at_once.or_else(|| takes(false).map(|takes| (takes, PeerBasis::OwnPast)))
    }

    /// The slowest of the members on the given nodes and its speed relative to its peers: the whole gang has this
    /// speed.
    pub(super) fn held_up(&self, on: impl Fn(NodeId) -> bool, now: Instant) -> Option<(NodeId, Speed)> {
        let slow = self.members.iter().filter(|member| member.is_there && member.side == Side::Slow);
        let judged = slow.filter(|member| member.is_judged(now) && on(member.node));
        let speeds = judged.map(|member| (speed(member.takes, member.peers), member.node));
        speeds.min().map(|(speed, node)| (node, speed))
    }

    /// Records that the job runs on other nodes from now on. Times on its former nodes stay for comparison; members
    /// are judged after new reports only.
    pub(super) fn restart(&mut self, now: Instant, is_there: impl Fn(NodeId) -> bool) {
        let leaves_slow = |member: &MemberTime| {
            member.side == Side::Slow && member.is_judged(now) && !is_there(member.node)
        };
        if self.members.iter().any(|member| member.is_there && leaves_slow(member)) {
            self.left_slow = Some(now);
        }
        for member in &mut self.members {
            (member.is_there, member.side, member.since) = (is_there(member.node), Side::Between, now);
            (member.times, member.judged_from) = (0, None);
        }
        let mut left = self.members.iter().filter(|member| !member.is_there).count();
        self.members.retain(|member| {
            let kept = member.is_there || left <= MAX_FORMER_NODES;
            left -= usize::from(!kept);
            kept
        });
    }
}

/// Lower median.
fn lower_median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    times.get(times.len().saturating_sub(1) / 2).copied()
}

fn speed(takes: Duration, peers: Duration) -> Speed {
    let part = u128::from(peers.0) * u128::from(Speed::PLAIN.0) / u128::from(takes.0.max(1));
    Speed(u64::try_from(part).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: NodeId = NodeId(3);

    /// Four nodes report every ten seconds; returns the last verdict on the last node.
    fn reports(
        peers: &mut MemberTimes,
        from: u64,
        times: u64,
        last_takes: impl Fn(u64) -> u64,
    ) -> StragglerVerdict {
        let mut verdict = StragglerVerdict::Nothing;
        for k in 0..times {
            let now = Instant::from_secs(from + k * 10);
            for node in 0..4 {
                let takes = if NodeId(node) == SLOW { last_takes(k) } else { 100 };
                verdict =
                    peers.record(now, (0, NodeId(node)), Duration(takes), |_| true, &ObserveTuning::DEFAULT);
            }
        }
        verdict
    }

    fn slow(speed: u64) -> StragglerVerdict {
        StragglerVerdict::IsSlow { speed: Speed(speed), beside: PeerBasis::Concurrent }
    }

    #[test]
    fn a_member_that_takes_half_as_long_again_for_a_minute_is_slow() {
        let mut peers = MemberTimes::default();
        assert_eq!(reports(&mut peers, 0, 8, |_| 150), StragglerVerdict::Nothing);
        assert_eq!(reports(&mut peers, 80, 1, |_| 150), slow(666_666));
        assert_eq!(peers.held_up(|node| node == SLOW, Instant::from_secs(80)), Some((SLOW, Speed(666_666))));
    }

    #[test]
    fn outliers_and_small_differences_have_no_effect() {
        let mut peers = MemberTimes::default();
        let spikes = |k: u64| if k % 6 == 5 { 10_000 } else { 100 };
        for from in 0..20 {
            let verdict = reports(&mut peers, from * 100, 10, spikes);
            assert!(!matches!(verdict, StragglerVerdict::IsSlow { .. }), "{verdict:?}");
        }
        assert_eq!(reports(&mut MemberTimes::default(), 0, 100, |_| 115), StragglerVerdict::Nothing);
        assert_eq!(reports(&mut MemberTimes::default(), 0, 100, |_| 0), StragglerVerdict::Nothing);
    }

    #[test]
    fn a_member_that_keeps_up_again_is_well_after_a_minute() {
        let mut peers = MemberTimes::default();
        assert_eq!(reports(&mut peers, 0, 10, |_| 200), slow(500_000));
        assert_eq!(reports(&mut peers, 100, 20, |_| 100), StragglerVerdict::KeepsUp);
        assert_eq!(peers.held_up(|node| node == SLOW, Instant::from_secs(300)), None);
    }

    #[test]
    fn many_reports_in_no_time_judge_no_member() {
        let mut peers = MemberTimes::default();
        reports(&mut peers, 0, 3, |_| 100);
        for _ in 0..1000 {
            let now = Instant::from_secs(30);
            let verdict = peers.record(now, (0, SLOW), Duration(1000), |_| true, &ObserveTuning::DEFAULT);
            assert_eq!(verdict, StragglerVerdict::Nothing);
        }
    }

    #[test]
    fn members_of_other_roles_and_node_kinds_are_no_peers() {
        let mut peers = MemberTimes::default();
        for k in 0..20 {
            let now = Instant::from_secs(k * 10);
            peers.record(now, (0, NodeId(0)), Duration(100), |_| true, &ObserveTuning::DEFAULT);
            assert_eq!(
                peers.record(now, (1, SLOW), Duration(900), |_| true, &ObserveTuning::DEFAULT),
                StragglerVerdict::Nothing
            );
            assert_eq!(
                peers.record(now, (0, SLOW), Duration(900), |_| false, &ObserveTuning::DEFAULT),
                StragglerVerdict::Nothing
            );
        }
    }

    #[test]
    fn a_job_that_is_slow_on_its_next_node_too_is_slow_everywhere() {
        let mut peers = MemberTimes::default();
        assert_eq!(reports(&mut peers, 0, 10, |_| 200), slow(500_000));
        peers.restart(Instant::from_secs(100), |node| node.0 > 10);
        let mut next = |k: u64, node: u32, takes: u64| {
            peers.record(
                Instant::from_secs(100 + k * 10),
                (0, NodeId(node)),
                Duration(takes),
                |_| true,
                &ObserveTuning::DEFAULT,
            )
        };
        let last = (0..12).map(|k| (next(k, 11, 100), next(k, 12, 200)).1).last();
        assert_eq!(last, Some(StragglerVerdict::SlowEverywhere));
        // An hour later the job may have moved to another slow node.
        let later = (360..372).map(|k| (next(k, 11, 100), next(k, 12, 200)).1).last();
        assert_eq!(later, Some(slow(500_000)));
    }

    #[test]
    fn a_job_on_one_node_is_compared_with_its_past() {
        let mut peers = MemberTimes::default();
        let mut on = |from: u64, node: u32, takes: u64| {
            peers.restart(Instant::from_secs(from), |there| there == NodeId(node));
            let reports = (0..12).map(|k| Instant::from_secs(from + k * 10));
            reports
                .map(|now| {
                    peers.record(now, (0, NodeId(node)), Duration(takes), |_| true, &ObserveTuning::DEFAULT)
                })
                .last()
        };
        assert_eq!(on(0, 1, 100), Some(StragglerVerdict::Nothing));
        let beside = PeerBasis::OwnPast;
        assert_eq!(on(200, 2, 200), Some(StragglerVerdict::IsSlow { speed: Speed(500_000), beside }));
    }
}
