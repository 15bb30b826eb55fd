//! Size of the largest packet that a host sends to a shaped link.

use crate::model::units::Bandwidth;

/// Bytes of one packet on the wire: an MTU of 9,000 and the Ethernet header.
pub const WIRE_PACKET: u32 = 9014;

/// Maximum transmission time of a packet that segmentation offload joins (TSO/GSO), if it has more than one packet on
/// the wire. Joined packets cost the processor a fraction: at 5.5 Gbit/s, single packets take so much of it that a
/// connection reaches three quarters of the rate. Longer packets would make the round robin between HTB leaves
/// coarse.
const MAX_TRANSMISSION_NS: u64 = 100_000;

/// Segmentation offload joins at most 64 KiB.
const MAX_SEGMENTS: u64 = 65_536 / WIRE_PACKET as u64;

/// Number of wire packets in the largest packet of a link.
pub fn segments(rate: Bandwidth) -> u32 {
    let bytes = u128::from(rate.0) * u128::from(MAX_TRANSMISSION_NS) / 8 / 1_000_000_000;
    ((bytes / u128::from(WIRE_PACKET)) as u64).clamp(1, MAX_SEGMENTS) as u32
}

/// Size of the largest packet of a link in bytes.
pub fn largest_packet(rate: Bandwidth) -> u32 {
    segments(rate) * WIRE_PACKET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_packet_grows_with_the_rate_within_its_bounds() {
        let segments_at = |megabits: u64| segments(Bandwidth(megabits * 1_000_000));
        assert_eq!([0, 200, 1_000, 2_000, 5_500, 400_000].map(segments_at), [1, 1, 1, 2, 7, 7]);
        assert_eq!(largest_packet(Bandwidth(5_500_000_000)), 63_098);
    }
}
