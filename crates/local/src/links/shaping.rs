//! How a link is shaped: what its queue and its packets are like, so that a rate that is set is a rate that is had, and
//! members that share it have equal parts within tenths of a second.

use metronome_core::model::units::Bandwidth;
use metronome_core::network::packet::{WIRE_PACKET, largest_packet, segments};

use crate::names::MemberNumber;

/// Large, so that headers are under a hundredth of what is sent, and there are few packets to forward on few cores.
pub const MTU: u32 = 9000;

/// The class of a link, and the leaf of whoever has none of its own. Leaves from [`FIRST_MEMBER`] on are those of members;
/// all others belong to the agent.
pub const LINK_CLASS: &str = "1:1";
pub const USUAL_LEAF: &str = "1:ffff";
pub const FIRST_MEMBER: u32 = 0x1000;

/// Filters of members come after all of the agent's.
const PREFERENCE: u32 = 0xc000;

/// No link has less: the kernel's timers count for at most minutes.
const LEAST: Bandwidth = Bandwidth(64_000);

/// Bytes that may wait in a leaf. Windows are bounded, so queues are: nothing is lost, however many flows meet.
const QUEUE: u32 = 16 << 20;

/// The lines that shape a device. Members are told apart by the last byte of their address.
pub(crate) fn shape(device: &str, rate: Bandwidth) -> Vec<String> {
    let filter = format!("filter add dev {device} parent 1: protocol ip pref {PREFERENCE}");
    vec![
        format!("qdisc add dev {device} root handle 1: htb default 0xffff"),
        format!("class add dev {device} parent 1: classid {LINK_CLASS} {}", link_class(rate)),
        format!("class add dev {device} parent {LINK_CLASS} classid {USUAL_LEAF} {}", leaf(rate)),
        format!("qdisc add dev {device} parent {USUAL_LEAF} bfifo limit {QUEUE}"),
        format!("{filter} handle 2: u32 divisor 256"),
        format!("{filter} u32 ht 800:: match ip src 10.77.0.0/16 hashkey mask 0x000000ff at 12 link 2:"),
    ]
}

/// The lines that give a device another rate, and those of the members who may send there, while traffic flows.
pub(crate) fn reshape<'a>(
    device: &str,
    rate: Bandwidth,
    members: impl Iterator<Item = &'a MemberNumber>,
) -> Vec<String> {
    let link = format!("class change dev {device} parent 1: classid {LINK_CLASS} {}", link_class(rate));
    let usual = format!("class change dev {device} parent {LINK_CLASS} classid {USUAL_LEAF} {}", leaf(rate));
    // A member that is just being unplugged may have lost its leaf already.
    let replace = |member: &MemberNumber| {
        format!("class replace dev {device} parent {LINK_CLASS} classid {} {}", class_id(*member), leaf(rate))
    };
    [link, usual].into_iter().chain(members.map(replace)).collect()
}

/// The lines that give a member a leaf of its own; one that an earlier member of its number left is taken. Leaves take turns packet by packet, so whoever has little to send
/// does not wait behind all that others have.
pub(crate) fn member_leaf(device: &str, rate: Bandwidth, member: MemberNumber) -> [String; 3] {
    let (id, address) = (class_id(member), member.address());
    let bucket = address.octets()[3];
    [
        format!("class replace dev {device} parent {LINK_CLASS} classid {id} {}", leaf(rate)),
        format!("qdisc replace dev {device} parent {id} bfifo limit {QUEUE}"),
        format!(
            "filter replace dev {device} parent 1: protocol ip pref {PREFERENCE} handle 2:{bucket:x}:1 u32 ht 2:{bucket:x}: match ip src {address}/32 flowid {id}"
        ),
    ]
}

/// The lines that take it away again.
pub(crate) fn no_member_leaf(device: &str, member: MemberNumber) -> [String; 2] {
    let bucket = member.address().octets()[3];
    [
        format!("filter del dev {device} parent 1: protocol ip pref {PREFERENCE} handle 2:{bucket:x}:1 u32"),
        format!("class del dev {device} classid {}", class_id(member)),
    ]
}

fn class_id(member: MemberNumber) -> String {
    format!("1:{:x}", FIRST_MEMBER + member.0)
}

fn link_class(rate: Bandwidth) -> String {
    let rate = with_headers(rate);
    let (packet, burst, rate) = (largest_packet(rate), burst(rate), rate.max(LEAST).0);
    format!("htb rate {rate}bit ceil {rate}bit burst {burst} cburst {burst} quantum {packet}")
}

/// A leaf has next to nothing of its own and borrows the rest: what leaves have of their own is theirs even if all
/// together is more than the link carries. Less than a packet for its turn would do: a leaf sends one in any case.
fn leaf(rate: Bandwidth) -> String {
    let rate = with_headers(rate);
    let (packet, burst, rate) = (largest_packet(rate), burst(rate), rate.max(LEAST).0);
    let own = (rate / 2000).max(8000);
    format!("htb rate {own}bit ceil {rate}bit burst {packet} cburst {burst} quantum {packet}")
}

/// A rate is that of what is carried: headers of Ethernet, IP and TCP come on top, those of a packet of 8 KiB and of what
/// acknowledges one that came the other way.
fn with_headers(rate: Bandwidth) -> Bandwidth {
    const CARRIED: u128 = 8192;
    const HEADERS: u128 = 2 * 66;
    Bandwidth((u128::from(rate.0) * (CARRIED + HEADERS) / CARRIED) as u64)
}

/// What may be sent at once after a pause: enough that a timer that is late by a millisecond loses nothing.
fn burst(rate: Bandwidth) -> u64 {
    (rate.0 / 8 / 1000).max(2 * u64::from(largest_packet(rate)))
}

/// What a flow may have under way: what its host's link carries in 8 ms, so that a process that is woken late holds
/// nothing up, and never less than some packets.
///
/// Windows are what TCP adapts to what a link gives, by losing packets every few seconds. Here they are all the same and
/// never too large, so nothing is lost: a flow has its part as soon as it sends.
///
/// Several windows fit into the backlog of a core, which drops what is beyond 1000 packets.
pub(crate) fn window(rate: Bandwidth) -> u64 {
    let packets = |count: u64| count * u64::from(WIRE_PACKET);
    (rate.0 / 1000).clamp(packets(10), packets(256))
}

/// The size of packets on a device at such a rate, in the words of `ip`.
pub(crate) fn packet_size(rate: Bandwidth) -> String {
    format!("mtu {MTU} gso_max_size {} gso_max_segs {}", largest_packet(rate), segments(rate))
}

/// How a member whose host's link has this rate speaks TCP.
pub(crate) fn tcp(rate: Bandwidth) -> Vec<(&'static str, String)> {
    // A packet takes several times its bytes in the books, and a receiver whose buffer is full drops it. So the buffer is large,
    // and the route bounds the window.
    let receive = 8 * window(rate);
    let usual = [
        // What every namespace may choose on every kernel.
        ("ipv4/tcp_congestion_control", "reno"),
        // Every iteration begins with the window that the last one ended with.
        ("ipv4/tcp_slow_start_after_idle", "0"),
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/tcp_timestamps", "0"),
        ("ipv4/tcp_adv_win_scale", "1"),
        // A cut cable that is whole again is noticed within a second, not within two minutes.
        ("ipv4/tcp_rto_max_ms", "1000"),
        ("ipv4/tcp_wmem", "4096 262144 4194304"),
    ];
    let usual = usual.into_iter().map(|(name, value)| (name, value.to_owned()));
    usual.chain([("ipv4/tcp_rmem", format!("4096 {receive} {receive}"))]).collect()
}
