//! The steps of a traffic policy that follows bytes: at which bytes of an iteration the class or weight of a job changes.
//!
//! The network of the scheduler and the agent on a host both apply these steps. The numbers are therefore a protocol between
//! versions of them, and no tuning entries.

use super::Follows;

/// Parts of equal size into which the bytes of an iteration are divided where the weight follows the bytes sent.
const WEIGHT_STEPS: u32 = 8;

/// Bytes left at which the class rises, in nanoseconds of sending at full rate.
const CLASS_RISES_AT_LEFT_NS: [f64; 3] = [120e6, 40e6, 12e6];

/// Parts of the bytes sent at which the class rises that follows the part left.
const CLASS_RISES_AT_PART_SENT: [f64; 3] = [0.25, 0.5, 0.75];

/// Weights in place of classes where a host cannot serve classes strictly, from the first class to the last. In a round of a
/// host's queue every job sends its part in whole packets; larger weights would exceed what waits there.
const WEIGHTS_OF_CLASSES: [u32; 4] = [16, 7, 3, 1];

impl Follows {
    /// The bytes of an iteration, in ascending order, at which the next step is reached; `best` is in bytes a nanosecond.
    pub fn marks(self, bytes: f64, best: Option<f64>) -> Vec<f64> {
        match self {
            Self::Nothing | Self::FirstCome | Self::LeastLeft => Vec::new(),
            Self::BytesSent => {
                (1..WEIGHT_STEPS).map(|count| bytes * f64::from(count) / f64::from(WEIGHT_STEPS)).collect()
            }
            Self::BytesLeft => {
                let sent = CLASS_RISES_AT_LEFT_NS.map(|left| bytes - left * best.unwrap_or(0.0));
                sent.into_iter().filter(|sent| *sent > 0.0 && *sent < bytes).collect()
            }
            Self::PartLeft => CLASS_RISES_AT_PART_SENT.map(|part| part * bytes).to_vec(),
        }
    }

    /// The number of classes behind its own on a step of an iteration with this number of marks.
    pub fn classes_behind(self, step: u8, marks: usize) -> u8 {
        match self {
            Self::Nothing | Self::BytesSent | Self::FirstCome | Self::LeastLeft => 0,
            Self::BytesLeft | Self::PartLeft => (marks as u8).saturating_sub(step),
        }
    }

    /// The factor of the weight on a step, where classes within an iteration are shares of a link.
    pub fn part(self, step: u8, marks: usize) -> u32 {
        match self {
            Self::Nothing | Self::FirstCome | Self::LeastLeft => 1,
            Self::BytesSent => 2 * u32::from(step) + 1,
            Self::BytesLeft | Self::PartLeft => {
                let behind = usize::from(self.classes_behind(step, marks));
                WEIGHTS_OF_CLASSES[behind.min(WEIGHTS_OF_CLASSES.len() - 1)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_gives_a_larger_part() {
        for follows in [Follows::BytesSent, Follows::BytesLeft, Follows::PartLeft] {
            let marks = follows.marks(200e6, Some(1.0));
            assert!(marks.is_sorted() && marks.len() >= 3, "{marks:?}");
            let parts: Vec<u32> =
                (0..=marks.len()).map(|step| follows.part(step as u8, marks.len())).collect();
            assert!(parts.is_sorted_by(|one, next| one < next), "{follows:?}: {parts:?}");
        }
        assert_eq!((Follows::Nothing.marks(1e9, None), Follows::Nothing.part(0, 0)), (Vec::new(), 1));
    }

    #[test]
    fn an_iteration_with_few_bytes_left_begins_on_a_high_step() {
        let first = |bytes: f64| {
            let marks = Follows::BytesLeft.marks(bytes, Some(1.0)).len();
            (Follows::BytesLeft.classes_behind(0, marks), Follows::BytesLeft.part(0, marks))
        };
        assert_eq!([11e6, 39e6, 119e6, 121e6].map(first), [(0, 16), (1, 7), (2, 3), (3, 1)]);
    }
}
