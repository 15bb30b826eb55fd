//! How long the members of a gang take for their own part of an iteration, each beside its peers.
//!
//! A member is compared with those of the same role on other nodes of the same kind: those beside it now, or where the job
//! is on one node alone, what it took elsewhere before. Of the latest reports the one in the middle counts, so that spikes do
//! nothing, and only who stays on one side of the line over several reports and a while is judged. When reports came is told
//! by the clock of who hears them.

use serde::{Deserialize, Serialize};

use crate::model::id::NodeId;
use crate::model::units::{Duration, Instant};
use crate::observe::scaling::Speed;

/// Judged are those of whom so many reports in a row say the same…
const REPORTS: u32 = 5;

/// …over such a time.
const SUSTAINED: Duration = Duration::MINUTE;

/// What members take is what the one in the middle of so many reports says.
const LATEST: usize = 5;

/// Nothing is made of what was reported of a node fewer times than this.
const HEARD_BEFORE: usize = 3;

/// Places that it has left are remembered up to so many.
const MOST_LEFT: usize = 8;

/// Who was slow in one place and is in the next is slow for a reason of its own, for so long.
const LATELY: Duration = Duration::HOUR;

/// What a report says of a node, with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// Members there go at such a part of the speed of their peers; compared with some that run at the same time, or not.
    IsSlow {
        speed: Speed,
        beside: Compared,
    },
    /// They go about as fast as their peers.
    KeepsUp,
    /// They are slow wherever they are.
    IsSlowEverywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// With others at the same time.
    AtOnce,
    /// With what it took elsewhere before.
    WithThePast,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Peers {
    /// In order of role and node.
    members: Vec<Member>,
    /// When it last left a node on which it was slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_slow: Option<Instant>,
}

/// Members of a role on one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    role: u8,
    node: NodeId,
    /// What the latest reports said, the newest last, and the one in the middle.
    lately: Vec<Duration>,
    takes: Duration,
    /// What the one in the middle of their peers takes.
    peers: Duration,
    side: Side,
    /// Since when they are on that side, and by how many reports.
    since: Instant,
    times: u32,
    /// Whether they are there now.
    is_there: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Side {
    Slow,
    Between,
    Well,
}

impl Side {
    /// Slow from a fifth more than the peers take; well up to a tenth.
    fn of(takes: Duration, peers: Duration) -> Self {
        let (takes, peers) = (u128::from(takes.0), u128::from(peers.0));
        match () {
            () if takes * 5 >= peers * 6 => Self::Slow,
            () if takes * 10 <= peers * 11 => Self::Well,
            () => Self::Between,
        }
    }
}

impl Member {
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
            is_there: true,
        }
    }

    fn hears(&mut self, took: Duration) {
        if self.lately.len() == LATEST {
            self.lately.remove(0);
        }
        self.lately.push(took);
        self.takes = middle(self.lately.clone()).unwrap_or(took);
    }

    fn is_on(&mut self, now: Instant, side: Side) {
        if self.side != side {
            (self.side, self.since, self.times) = (side, now, 0);
        }
        self.times = self.times.saturating_add(1);
    }

    fn is_judged(&self, now: Instant) -> bool {
        self.times >= REPORTS && now.since(self.since) >= SUSTAINED
    }
}

impl Peers {
    /// For serde: what is left out means this.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Members of a role on a node took so long for an iteration. Those on other nodes count that are `alike`.
    pub(super) fn hears(
        &mut self,
        now: Instant,
        (role, node): (u8, NodeId),
        took: Duration,
        alike: impl Fn(NodeId) -> bool,
    ) -> Verdict {
        if took.is_zero() {
            return Verdict::Nothing;
        }
        let at = self.entry(now, role, node, took);
        let Some((peers, beside)) = self.peers_of(at, alike) else { return Verdict::Nothing };
        let member = &mut self.members[at];
        member.peers = peers;
        member.is_on(now, Side::of(member.takes, peers));
        match member.side {
            _ if !member.is_judged(now) => Verdict::Nothing,
            Side::Slow if self.left_slow.is_some_and(|left| now.since(left) < LATELY) => {
                Verdict::IsSlowEverywhere
            }
            Side::Slow => Verdict::IsSlow { speed: speed(member.takes, peers), beside },
            Side::Well => Verdict::KeepsUp,
            Side::Between => Verdict::Nothing,
        }
    }

    /// Takes note of a report; where it stands.
    fn entry(&mut self, now: Instant, role: u8, node: NodeId, took: Duration) -> usize {
        match self.members.binary_search_by_key(&(role, node), |member| (member.role, member.node)) {
            Ok(at) => {
                self.members[at].hears(took);
                self.members[at].is_there = true;
                at
            }
            Err(at) => {
                self.members.insert(at, Member::new(now, role, node, took));
                at
            }
        }
    }

    /// What the one in the middle of its peers takes.
    fn peers_of(&self, at: usize, alike: impl Fn(NodeId) -> bool) -> Option<(Duration, Compared)> {
        let me = &self.members[at];
        let others = self.members.iter().filter(|other| other.role == me.role && other.node != me.node);
        let known: Vec<&Member> =
            others.filter(|other| other.lately.len() >= HEARD_BEFORE && alike(other.node)).collect();
        let takes = |is_there: bool| {
            let such = known.iter().filter(|other| other.is_there == is_there);
            middle(such.map(|other| other.takes).collect())
        };
        let at_once = takes(true).map(|takes| (takes, Compared::AtOnce));
        at_once.or_else(|| takes(false).map(|takes| (takes, Compared::WithThePast)))
    }

    /// The slowest of its members on such nodes, and at which part of the speed of its peers it goes: so does the whole gang.
    pub(super) fn held_up(&self, on: impl Fn(NodeId) -> bool, now: Instant) -> Option<(NodeId, Speed)> {
        let slow = self.members.iter().filter(|member| member.is_there && member.side == Side::Slow);
        let judged = slow.filter(|member| member.is_judged(now) && on(member.node));
        let speeds = judged.map(|member| (speed(member.takes, member.peers), member.node));
        speeds.min().map(|(speed, node)| (node, speed))
    }

    /// It runs somewhere from now on: what it took elsewhere is remembered for a while, and judged is who is heard again.
    pub(super) fn begin_anew(&mut self, now: Instant, is_there: impl Fn(NodeId) -> bool) {
        let leaves_slow =
            |member: &Member| member.side == Side::Slow && member.is_judged(now) && !is_there(member.node);
        if self.members.iter().any(|member| member.is_there && leaves_slow(member)) {
            self.left_slow = Some(now);
        }
        for member in &mut self.members {
            (member.is_there, member.side, member.since, member.times) =
                (is_there(member.node), Side::Between, now, 0);
        }
        let mut left = self.members.iter().filter(|member| !member.is_there).count();
        self.members.retain(|member| {
            let kept = member.is_there || left <= MOST_LEFT;
            left -= usize::from(!kept);
            kept
        });
    }
}

/// The one in the middle; of two, the shorter.
fn middle(mut times: Vec<Duration>) -> Option<Duration> {
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

    /// Four nodes report every ten seconds from then on; what is said of the last at the end.
    fn reports(peers: &mut Peers, from: u64, times: u64, last_takes: impl Fn(u64) -> u64) -> Verdict {
        let mut verdict = Verdict::Nothing;
        for k in 0..times {
            let now = Instant::from_secs(from + k * 10);
            for node in 0..4 {
                let takes = if NodeId(node) == SLOW { last_takes(k) } else { 100 };
                verdict = peers.hears(now, (0, NodeId(node)), Duration(takes), |_| true);
            }
        }
        verdict
    }

    fn slow(speed: u64) -> Verdict {
        Verdict::IsSlow { speed: Speed(speed), beside: Compared::AtOnce }
    }

    #[test]
    fn who_takes_half_as_long_again_for_a_minute_is_slow() {
        let mut peers = Peers::default();
        assert_eq!(reports(&mut peers, 0, 8, |_| 150), Verdict::Nothing);
        assert_eq!(reports(&mut peers, 80, 1, |_| 150), slow(666_666));
        assert_eq!(peers.held_up(|node| node == SLOW, Instant::from_secs(80)), Some((SLOW, Speed(666_666))));
    }

    #[test]
    fn spikes_and_a_tenth_more_do_nothing() {
        let mut peers = Peers::default();
        let spikes = |k: u64| if k % 6 == 5 { 10_000 } else { 100 };
        for from in 0..20 {
            let verdict = reports(&mut peers, from * 100, 10, spikes);
            assert!(!matches!(verdict, Verdict::IsSlow { .. }), "{verdict:?}");
        }
        assert_eq!(reports(&mut Peers::default(), 0, 100, |_| 115), Verdict::Nothing);
        assert_eq!(reports(&mut Peers::default(), 0, 100, |_| 0), Verdict::Nothing);
    }

    #[test]
    fn who_keeps_up_again_is_well_after_a_minute() {
        let mut peers = Peers::default();
        assert_eq!(reports(&mut peers, 0, 10, |_| 200), slow(500_000));
        assert_eq!(reports(&mut peers, 100, 20, |_| 100), Verdict::KeepsUp);
        assert_eq!(peers.held_up(|node| node == SLOW, Instant::from_secs(300)), None);
    }

    #[test]
    fn a_flood_of_reports_is_no_stretch_of_time() {
        let mut peers = Peers::default();
        reports(&mut peers, 0, 3, |_| 100);
        for _ in 0..1000 {
            let now = Instant::from_secs(30);
            let verdict = peers.hears(now, (0, SLOW), Duration(1000), |_| true);
            assert_eq!(verdict, Verdict::Nothing);
        }
    }

    #[test]
    fn other_roles_and_other_kinds_of_nodes_are_no_peers() {
        let mut peers = Peers::default();
        for k in 0..20 {
            let now = Instant::from_secs(k * 10);
            peers.hears(now, (0, NodeId(0)), Duration(100), |_| true);
            assert_eq!(peers.hears(now, (1, SLOW), Duration(900), |_| true), Verdict::Nothing);
            assert_eq!(peers.hears(now, (0, SLOW), Duration(900), |_| false), Verdict::Nothing);
        }
    }

    #[test]
    fn who_is_slow_in_the_next_place_as_well_is_slow_by_itself() {
        let mut peers = Peers::default();
        assert_eq!(reports(&mut peers, 0, 10, |_| 200), slow(500_000));
        peers.begin_anew(Instant::from_secs(100), |node| node.0 > 10);
        let mut next = |k: u64, node: u32, takes: u64| {
            peers.hears(Instant::from_secs(100 + k * 10), (0, NodeId(node)), Duration(takes), |_| true)
        };
        let last = (0..12).map(|k| (next(k, 11, 100), next(k, 12, 200)).1).last();
        assert_eq!(last, Some(Verdict::IsSlowEverywhere));
        // After an hour it may have come upon another slow node.
        let later = (360..372).map(|k| (next(k, 11, 100), next(k, 12, 200)).1).last();
        assert_eq!(later, Some(slow(500_000)));
    }

    #[test]
    fn who_is_alone_is_compared_with_what_it_took_elsewhere() {
        let mut peers = Peers::default();
        let mut on = |from: u64, node: u32, takes: u64| {
            peers.begin_anew(Instant::from_secs(from), |there| there == NodeId(node));
            let reports = (0..12).map(|k| Instant::from_secs(from + k * 10));
            reports.map(|now| peers.hears(now, (0, NodeId(node)), Duration(takes), |_| true)).last()
        };
        assert_eq!(on(0, 1, 100), Some(Verdict::Nothing));
        let beside = Compared::WithThePast;
        assert_eq!(on(200, 2, 200), Some(Verdict::IsSlow { speed: Speed(500_000), beside }));
    }
}
