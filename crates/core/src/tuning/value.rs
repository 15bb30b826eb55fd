//! Types of tuning values, and their exact text.

use std::ops::RangeInclusive;

use super::TuningError;
use crate::model::units::{Duration, Share, parse_share};

/// A type of value. Its text is exact: reading it gives the same value again.
pub trait Value: Copy + PartialOrd {
    /// The kind of value in messages, after "is not".
    const KIND: &'static str;

    fn read(text: &str) -> Option<Self>;

    fn text(self) -> String;
}

/// The value of a text, if it lies in the range. NaN lies in no range.
pub(super) fn read<T: Value>(text: &str, range: RangeInclusive<T>) -> Result<T, TuningError> {
    T::read(text).filter(|value| range.contains(value)).ok_or_else(|| TuningError::BadValue {
        text: text.to_owned(),
        kind: T::KIND,
        least: range.start().text(),
        most: range.end().text(),
    })
}

macro_rules! values {
    ($($kind:ty: $words:literal;)*) => {$(
        impl Value for $kind {
            const KIND: &'static str = $words;

            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn text(self) -> String {
                self.to_string()
            }
        }
    )*};
}

values! {
    f64: "a number";
    u8: "a whole number";
    u32: "a whole number";
    u64: "a whole number";
    u128: "a whole number";
    usize: "a whole number";
}

impl Value for Duration {
    const KIND: &'static str = "a duration";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    /// In the largest unit that divides it.
    fn text(self) -> String {
        const UNITS: [(u64, &str); 5] = [
            (Duration::HOUR.0, "h"),
            (Duration::MINUTE.0, "m"),
            (Duration::SECOND.0, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
        ];
        let divides = |(unit, _): &&(u64, &str)| self.0.is_multiple_of(*unit);
        match UNITS.iter().find(divides) {
            _ if self.is_zero() => "0s".to_owned(),
            Some((unit, name)) => format!("{}{name}", self.0 / unit),
            None => format!("{}ns", self.0),
        }
    }
}

impl Value for Share {
    const KIND: &'static str = "a share";

    fn read(text: &str) -> Option<Self> {
        parse_share(text).ok()
    }

    fn text(self) -> String {
        (f64::from(self.0) / f64::from(Self::WHOLE.0)).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_in_the_largest_unit_that_divides_them() {
        let texts = [0, 1, 1_500, 100_000_000, 90_000_000_000, 1_800_000_000_000, 7_200_000_000_000]
            .map(|nanos| Duration(nanos).text());
        assert_eq!(texts, ["0s", "1ns", "1500ns", "100ms", "90s", "30m", "2h"]);
    }

    #[test]
    fn every_share_is_read_as_it_was_written() {
        for millionths in (0..=1_000_000).step_by(7) {
            let share = Share(millionths);
            assert_eq!(Share::read(&share.text()), Some(share));
        }
    }
}
