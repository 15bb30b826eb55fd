//! One leaf, in the words of `tc`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;

use metronome_core::model::units::Bandwidth;
use metronome_core::network::packet::largest_packet;

use crate::members::Port;

use super::ladder::{Ladder, Rung, Standing};

/// Leaves are numbered from here up to there; others are the world's own.
pub(super) const FIRST: u16 = 0x10;
pub(super) const END: u16 = 0x1000;

/// The part of a link that a leaf has for sure, whoever else sends: as in the network that decisions are made with, where
/// its class could be starved; less where its standing changes anyhow, since it takes from the steps between standings.
const FLOOR: f64 = 0.05;
const FLOOR_OF_WHO_CLIMBS: f64 = 0.01;

/// Bytes that may wait in a leaf: more than the windows of all connections of a job.
const QUEUE: u32 = 16 << 20;

#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) number: u16,
    ladder: Ladder,
    standing: Standing,
    pub(super) addresses: BTreeSet<Ipv4Addr>,
}

impl Leaf {
    pub(super) fn new(number: u16, ladder: Ladder, addresses: BTreeSet<Ipv4Addr>) -> Self {
        Self { number, standing: ladder.begins(), ladder, addresses }
    }

    pub(super) fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// Another lane: whether anything changes by it.
    pub(super) fn set(&mut self, ladder: Ladder) -> bool {
        if self.ladder == ladder {
            return false;
        }
        self.standing = ladder.begins();
        self.ladder = ladder;
        true
    }

    /// Whether anything changes on this rung.
    pub(super) fn climb(&mut self, rung: Rung) -> bool {
        let standing = self.ladder.standing(rung);
        let changes = standing != self.standing;
        self.standing = standing;
        changes
    }

    pub(super) fn make(&self, port: &Port) -> String {
        let (number, device) = (self.number, &port.device);
        let queue = format!("qdisc replace dev {device} parent 1:{number:x} bfifo limit {QUEUE}");
        format!("class replace {}\n{queue}\n{}", self.class(port), self.filters(port))
    }

    pub(super) fn change(&self, port: &Port) -> String {
        format!("class change {}\n", self.class(port))
    }

    pub(super) fn filter_anew(&self, port: &Port) -> String {
        format!("{}{}", self.no_filters(port), self.filters(port))
    }

    /// Filters first: a class that a filter points to cannot go.
    pub(super) fn remove(&self, port: &Port) -> String {
        let (number, device) = (self.number, &port.device);
        format!("{}class del dev {device} classid 1:{number:x}\n", self.no_filters(port))
    }

    fn class(&self, port: &Port) -> String {
        let Port { device, rate_bps, .. } = port;
        let (number, Standing { prio, packets }) = (self.number, self.standing);
        let packet = largest_packet(Bandwidth(*rate_bps));
        let quantum = packet.saturating_mul(packets);
        let jobs = port.crossed_by.len().max(1) as f64;
        let part = if self.ladder.changes() { FLOOR_OF_WHO_CLIMBS } else { FLOOR };
        let floor = (*rate_bps as f64 * part.min(0.5 / jobs)).max(8_000.0) as u64;
        // What is sent at once after a pause: a packet by right, and as much as a timer may be late by if it is lent.
        let burst = (rate_bps / 8 / 1000).max(2 * u64::from(packet));
        // What bounds it is the link: headers come on top of what that is said to carry, and are no reason to wait.
        let ceil = rate_bps + rate_bps / 20;
        format!(
            "dev {device} parent 1:1 classid 1:{number:x} htb rate {floor}bit burst {packet} \
             ceil {ceil}bit cburst {burst} prio {prio} quantum {quantum}"
        )
    }

    fn filters(&self, port: &Port) -> String {
        let (number, device) = (self.number, &port.device);
        let mut text = String::new();
        for address in &self.addresses {
            writeln!(text, "filter add dev {device} parent 1: protocol ip pref {number} u32 match ip src {address}/32 flowid 1:{number:x}")
                .expect("a string takes everything");
        }
        text
    }

    fn no_filters(&self, port: &Port) -> String {
        if self.addresses.is_empty() {
            return String::new();
        }
        format!("filter del dev {} parent 1: protocol ip pref {}\n", port.device, self.number)
    }
}
