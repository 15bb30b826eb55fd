//! Quantities as Kubernetes counts them: decimal and binary suffixes, exponents, billionths as the finest grain.
//! Sums are exact; only the result is rounded up to the unit that is counted. What is absurd saturates.

use std::ops::Add;

/// An amount in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i128);

const NANO: i128 = 1_000_000_000;
const MICRO: i128 = 1_000_000;

/// The largest whole amount that Kubernetes counts.
const MOST: i128 = i64::MAX as i128;
const MOST_NANOS: i128 = MOST * NANO;

impl Amount {
    pub const ZERO: Self = Self(0);
    pub const ONE: Self = Self(NANO);

    /// `None` for what is no quantity.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (number, suffix) = Number::leading(unsigned)?;
        let nanos = number.times(Scale::of(suffix)?)?;
        Some(Self(if negative { -nanos } else { nanos }))
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// In whole units, rounded up; nothing for less than nothing.
    pub fn whole(self) -> u64 {
        self.counted_by(NANO)
    }

    /// In thousandths, rounded up.
    pub fn thousandths(self) -> u64 {
        self.counted_by(MICRO)
    }

    fn counted_by(self, unit: i128) -> u64 {
        let rounded_up = (self.0.max(0) + unit - 1) / unit;
        u64::try_from(rounded_up.min(MOST)).expect("between nothing and the most that is counted")
    }
}

impl Add for Amount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0).min(MOST_NANOS))
    }
}

/// The digits of a number without its point: `digits × 10^exponent`, and a little more where digits were dropped.
struct Number {
    digits: u128,
    exponent: i64,
    more: bool,
}

impl Number {
    /// Further digits only tell whether there is a little more: so many are exact, with room for a binary suffix.
    const EXACT: u128 = 10u128.pow(19);

    fn leading(text: &str) -> Option<(Self, &str)> {
        let mut number = Self { digits: 0, exponent: 0, more: false };
        let (mut seen_digit, mut seen_point, mut end) = (false, false, 0);
        for byte in text.bytes() {
            match byte {
                b'0'..=b'9' => {
                    seen_digit = true;
                    number.append(byte - b'0', seen_point);
                }
                b'.' if !seen_point => seen_point = true,
                _ => break,
            }
            end += 1;
        }
        seen_digit.then(|| (number, &text[end..]))
    }

    fn append(&mut self, digit: u8, after_point: bool) {
        if self.digits < Self::EXACT {
            self.digits = self.digits * 10 + u128::from(digit);
            self.exponent -= i64::from(after_point);
        } else {
            self.more |= digit > 0;
            self.exponent += i64::from(!after_point);
        }
    }

    /// In billionths, rounded up, at most what is counted.
    fn times(&self, scale: Scale) -> Option<i128> {
        let digits = self.digits.checked_mul(1 << scale.doublings)?;
        let exponent = self.exponent.saturating_add(scale.tens).saturating_add(9);
        let power = u32::try_from(exponent.unsigned_abs()).ok().and_then(|power| 10u128.checked_pow(power));
        let nanos = match power {
            _ if digits == 0 => 0,
            Some(power) if exponent >= 0 => digits.saturating_mul(power),
            Some(power) => digits.div_ceil(power),
            None if exponent >= 0 => u128::MAX,
            None => 1,
        };
        let nanos = nanos.saturating_add(u128::from(self.more));
        Some(i128::try_from(nanos).unwrap_or(i128::MAX).min(MOST_NANOS))
    }
}

/// What a suffix multiplies by: `2^doublings × 10^tens`.
#[derive(Clone, Copy)]
struct Scale {
    doublings: u32,
    tens: i64,
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        const DECIMAL: [(&str, i64); 10] = [
            ("n", -9),
            ("u", -6),
            ("m", -3),
            ("", 0),
            ("k", 3),
            ("M", 6),
            ("G", 9),
            ("T", 12),
            ("P", 15),
            ("E", 18),
        ];
        const BINARY: [(&str, u32); 6] =
            [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
        if let Some((_, tens)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some(Self { doublings: 0, tens: *tens });
        }
        if let Some((_, doublings)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            return Some(Self { doublings: *doublings, tens: 0 });
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        Some(Self { doublings: 0, tens: exponent.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> u64 {
        Amount::parse(text).unwrap_or_else(|| panic!("`{text}` is a quantity")).whole()
    }

    fn thousandths(text: &str) -> u64 {
        Amount::parse(text).unwrap_or_else(|| panic!("`{text}` is a quantity")).thousandths()
    }

    #[test]
    fn every_suffix_is_read() {
        let read = [
            "1n", "1u", "1m", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi",
            "1Ei",
        ];
        let expected = [
            1,
            1,
            1,
            1,
            1000,
            1_000_000,
            1_000_000_000,
            1_000_000_000_000,
            1_000_000_000_000_000,
            1_000_000_000_000_000_000,
            1 << 10,
            1 << 20,
            1 << 30,
            1 << 40,
            1 << 50,
            1 << 60,
        ];
        assert_eq!(read.map(whole), expected);
    }

    #[test]
    fn decimals_and_exponents_are_exact_and_rounded_up() {
        assert_eq!(thousandths("0.1"), 100);
        assert_eq!(thousandths("1.0001"), 1001);
        assert_eq!(whole("1.5Gi"), 3 << 29);
        assert_eq!(whole("12e6"), 12_000_000);
        assert_eq!(whole("12E-1"), 2);
        assert_eq!(whole(".5"), 1);
        assert_eq!(whole("5."), 5);
        assert_eq!(whole("+7"), 7);
        assert_eq!(whole("0.000000000000000000000000000001"), 1, "something is never rounded to nothing");
    }

    #[test]
    fn sums_are_rounded_once() {
        let tenth = Amount::parse("100m").unwrap();
        assert_eq!((tenth + tenth).whole(), 1);
    }

    #[test]
    fn the_absurd_saturates_and_the_meaningless_is_no_quantity() {
        for text in
            ["1e30", "9999999999999999999999999999", "1e2147483647", "99999999Ei", "1e9223372036854775807"]
        {
            assert_eq!(whole(text), i64::MAX as u64, "{text}");
            assert_eq!(thousandths(text), i64::MAX as u64, "{text}");
        }
        assert_eq!(whole("1e-9223372036854775808"), 1);
        assert_eq!(whole("0e9223372036854775807"), 0);
        assert!(Amount::parse("-1").unwrap().is_negative());
        assert_eq!(whole("-1"), 0);
        let most = Amount::parse("1e30").unwrap();
        assert_eq!((most + most).whole(), i64::MAX as u64);
        for text in
            ["", "-", ".", "e5", "1e", "1 Gi", "1KI", "0x10", "NaN", "--1", "1e99999999999999999999", "١"]
        {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }
}
