//! The largest packet that a host hands to a shaped link.

use crate::model::units::Bandwidth;

/// One packet on the wire: 9,000 bytes and the header of Ethernet.
pub const WIRE_PACKET: u32 = 9014;

/// Transmission time of the largest packet, as long as that is more than one packet on the wire. Packets that are joined
/// for segmentation offload cost the processor a fraction: at 5.5 Gbit/s single ones take so much of it that a connection
/// sends at three quarters of the rate. Longer packets would make the turns of leaves coarse.
const TRANSMISSION_NS: u64 = 100_000;

/// Segmentation offload joins at most 64 KiB.
const MAX_SEGMENTS: u64 = 65_536 / WIRE_PACKET as u64;

/// How many packets of the wire the largest packet of a link has.
pub fn segments(rate: Bandwidth) -> u32 {
    let bytes = u128::from(rate.0) * u128::from(TRANSMISSION_NS) / 8 / 1_000_000_000;
    ((bytes / u128::from(WIRE_PACKET)) as u64).clamp(1, MAX_SEGMENTS) as u32
}

/// Bytes of the largest packet of a link.
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
