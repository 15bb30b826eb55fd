//! How a link is shaped: what its queue and its packets are like, so that a rate that is set is a rate that is had, and
//! flows that share it have equal parts within tenths of a second.

use metronome_core::units::Bandwidth;

/// Large, so that headers are under a hundredth of what is sent, and there are few packets to forward on few cores.
pub const MTU: u32 = 9000;

/// Packets are not joined beyond this: at 200 Mbit/s one takes 0.4 ms.
pub(crate) const LARGEST_PACKET: u32 = 9014;

/// The class of a link, and the leaf of whoever has none of its own. Leaves in between belong to the agent.
pub const LINK_CLASS: &str = "1:1";
pub const USUAL_LEAF: &str = "1:ffff";

/// No link has less: the kernel's timers count for at most minutes.
const LEAST: Bandwidth = Bandwidth(64_000);

/// The lines that shape a device.
pub(crate) fn shape(device: &str, rate: Bandwidth) -> Vec<String> {
    vec![
        format!("qdisc add dev {device} root handle 1: htb default 0xffff"),
        format!("class add dev {device} parent 1: classid {LINK_CLASS} {}", link_class(rate)),
        format!("class add dev {device} parent {LINK_CLASS} classid {USUAL_LEAF} {}", usual_leaf(rate)),
        format!("qdisc add dev {device} parent {USUAL_LEAF} handle ffff: bfifo limit {}", queue(rate)),
    ]
}

/// The lines that give a device that is shaped another rate, while traffic flows.
pub(crate) fn reshape(device: &str, rate: Bandwidth) -> Vec<String> {
    vec![
        format!("class change dev {device} parent 1: classid {LINK_CLASS} {}", link_class(rate)),
        format!("class change dev {device} parent {LINK_CLASS} classid {USUAL_LEAF} {}", usual_leaf(rate)),
        format!("qdisc change dev {device} parent {USUAL_LEAF} handle ffff: bfifo limit {}", queue(rate)),
    ]
}

fn link_class(rate: Bandwidth) -> String {
    let (rate, burst) = (rate.max(LEAST).0, burst(rate));
    format!("htb rate {rate}bit ceil {rate}bit burst {burst} cburst {burst} quantum {LARGEST_PACKET}")
}

/// A leaf has next to nothing of its own and borrows the rest: what leaves have of their own is theirs even if all
/// together is more than the link carries.
fn usual_leaf(rate: Bandwidth) -> String {
    let (rate, burst) = (rate.max(LEAST).0, burst(rate));
    let own = rate / 100;
    format!("htb rate {own}bit ceil {rate}bit burst {LARGEST_PACKET} cburst {burst} quantum {LARGEST_PACKET}")
}

/// What may be sent at once after a pause: enough that a timer that is late by a millisecond loses nothing.
fn burst(rate: Bandwidth) -> u64 {
    (rate.0 / 8 / 1000).max(2 * u64::from(LARGEST_PACKET))
}

/// Bytes that may wait. Windows are bounded, so queues are: nothing is lost where up to 64 flows meet.
fn queue(rate: Bandwidth) -> u64 {
    64 * window(rate)
}

/// What a flow may have under way: what its host's link carries in 6 ms, so that a process that is woken late holds
/// nothing up, and never less than some packets.
///
/// This is how flows share. Each has the same window, and in one queue rates are as windows are, so each has its equal
/// part as soon as it sends: nobody has to lose packets first and find its rate by and by, which takes TCP seconds.
fn window(rate: Bandwidth) -> u64 {
    (rate.0 * 6 / 8 / 1000).max(10 * u64::from(LARGEST_PACKET))
}

/// How a member whose host's link has this rate speaks TCP.
pub(crate) fn tcp(rate: Bandwidth) -> Vec<(&'static str, String)> {
    // The kernel takes half of what it receives into for the books.
    let receive = 2 * window(rate);
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
