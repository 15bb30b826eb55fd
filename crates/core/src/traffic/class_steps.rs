//! The steps of a traffic policy that follows what is sent: at which bytes of an iteration a job's standing changes, and to what.
//!
//! One place for both who foresees it and who makes it so on a host.

use super::Follows;

/// In so many parts of equal size an iteration's bytes are divided where the weight follows what was sent.
const PARTS: u32 = 8;

/// What is left of an iteration, in nanoseconds of sending at full rate, at which the class rises.
const LEFT: [f64; 3] = [120e6, 40e6, 12e6];

/// What is sent of an iteration when the class rises that follows the part that is left.
const QUARTERS: [f64; 3] = [0.25, 0.5, 0.75];

/// What classes get beside each other where they cannot be strict, from the first to the last. In a round of a host's queue
/// every job sends its part, in whole packets: larger ones would be larger than what waits there.
const INSTEAD_OF_CLASSES: [u32; 4] = [16, 7, 3, 1];

impl Follows {
    /// The bytes of an iteration, in ascending order, at which the next step is reached; `best` is in bytes a nanosecond.
    pub fn marks(self, bytes: f64, best: Option<f64>) -> Vec<f64> {
        match self {
            Self::Nothing | Self::FirstCome | Self::LeastLeft => Vec::new(),
            Self::BytesSent => (1..PARTS).map(|count| bytes * f64::from(count) / f64::from(PARTS)).collect(),
            Self::BytesLeft => {
                let sent = LEFT.map(|left| bytes - left * best.unwrap_or(0.0));
                sent.into_iter().filter(|sent| *sent > 0.0 && *sent < bytes).collect()
            }
            Self::PartLeft => QUARTERS.map(|part| part * bytes).to_vec(),
        }
    }

    /// How many classes it is behind its own on a step, counted from the beginning of an iteration that has so many marks.
    pub fn classes_behind(self, step: u8, marks: usize) -> u8 {
        match self {
            Self::Nothing | Self::BytesSent | Self::FirstCome | Self::LeastLeft => 0,
            Self::BytesLeft | Self::PartLeft => (marks as u8).saturating_sub(step),
        }
    }

    /// By what its weight is multiplied on a step, where classes within an iteration are parts of a link.
    pub fn part(self, step: u8, marks: usize) -> u32 {
        match self {
            Self::Nothing | Self::FirstCome | Self::LeastLeft => 1,
            Self::BytesSent => 2 * u32::from(step) + 1,
            Self::BytesLeft | Self::PartLeft => {
                let behind = usize::from(self.classes_behind(step, marks));
                INSTEAD_OF_CLASSES[behind.min(INSTEAD_OF_CLASSES.len() - 1)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_every_step_it_stands_better() {
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
    fn whoever_has_little_left_begins_on_a_high_step() {
        let first = |bytes: f64| {
            let marks = Follows::BytesLeft.marks(bytes, Some(1.0)).len();
            (Follows::BytesLeft.classes_behind(0, marks), Follows::BytesLeft.part(0, marks))
        };
        assert_eq!([11e6, 39e6, 119e6, 121e6].map(first), [(0, 16), (1, 7), (2, 3), (3, 1)]);
    }
}
