//! Quantities in text: `250m`, `16Gi`, `1h30m`, `100Gbps`, `1%`.
//!
//! Parsing is exact, in integers. A value finer than the unit is rounded up, as in Kubernetes, so that a request
//! never gets less than it states.

use std::str::FromStr;

use super::{Bandwidth, Cpu, Duration, Gpus, Memory, Share};

/// Why a text is not a quantity. The message fits after "cannot read …:".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("`{0}` is not a number with a unit")]
    NotANumber(String),
    #[error("`{0}` is negative")]
    Negative(String),
    #[error("`{0}` is too large")]
    TooLarge(String),
    #[error("`{text}` has no unit of its kind; write one of {units}")]
    UnknownUnit { text: String, units: &'static str },
}

/// Truncates a text for a message: an error stays readable for any input.
fn truncated(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A decimal number: `digits × 10^-scale`.
struct Decimal {
    digits: u128,
    scale: i32,
}

/// Parses a leading decimal number; returns it and the rest of the text.
fn leading_decimal(text: &str) -> Result<(Decimal, &str), QuantityError> {
    if text.starts_with('-') {
        return Err(QuantityError::Negative(truncated(text)));
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let mut decimal = Decimal { digits: 0, scale: 0 };
    let (mut seen_digit, mut seen_point, mut end) = (false, false, 0);
    for (at, byte) in unsigned.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                seen_digit = true;
                decimal.digits = decimal
                    .digits
                    .checked_mul(10)
                    .and_then(|digits| digits.checked_add(u128::from(byte - b'0')))
                    .ok_or_else(|| QuantityError::TooLarge(truncated(text)))?;
                decimal.scale += i32::from(seen_point);
            }
            b'.' if !seen_point => seen_point = true,
            _ => break,
        }
        end = at + 1;
    }
    if !seen_digit {
        return Err(QuantityError::NotANumber(truncated(text)));
    }
    let rest = &unsigned[end..];
    let (exponent, rest) = leading_exponent(rest);
    decimal.scale = decimal.scale.saturating_sub(exponent);
    Ok((decimal, rest))
}

/// Parses an exponent such as `e9`, if the text begins with one: `1e30` is a number, `1Ei` is not.
fn leading_exponent(text: &str) -> (i32, &str) {
    let Some(after) = text.strip_prefix(['e', 'E']) else { return (0, text) };
    let signed = after.strip_prefix(['+', '-']).unwrap_or(after);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return (0, text);
    }
    let magnitude = signed[..digits].parse::<i32>().unwrap_or(i32::MAX);
    let exponent = if after.starts_with('-') { -magnitude } else { magnitude };
    (exponent, &signed[digits..])
}

/// `decimal × factor` as an integer, rounded up.
fn scaled(decimal: &Decimal, factor: u64, text: &str) -> Result<u64, QuantityError> {
    let too_large = || QuantityError::TooLarge(truncated(text));
    let product = decimal.digits.checked_mul(u128::from(factor)).ok_or_else(too_large)?;
    let whole = if decimal.scale > 38 {
        u128::from(product > 0)
    } else if decimal.scale >= 0 {
        product.div_ceil(10u128.pow(decimal.scale as u32))
    } else if product == 0 {
        0
    } else {
        let power = 10u128.checked_pow(decimal.scale.unsigned_abs()).ok_or_else(too_large)?;
        product.checked_mul(power).ok_or_else(too_large)?
    };
    u64::try_from(whole).map_err(|_| too_large())
}

/// Units of one kind of quantity with their factors, and their names for errors.
struct UnitTable {
    factors: &'static [(&'static str, u64)],
    names: &'static str,
}

impl UnitTable {
    fn factor(&self, unit: &str, text: &str) -> Result<u64, QuantityError> {
        self.factors
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor)
            .ok_or_else(|| QuantityError::UnknownUnit { text: truncated(text), units: self.names })
    }

    fn parse(&self, text: &str) -> Result<u64, QuantityError> {
        let text = text.trim();
        let (decimal, unit) = leading_decimal(text)?;
        scaled(&decimal, self.factor(unit, text)?, text)
    }
}

const CORES: UnitTable = UnitTable {
    factors: &[("", 1000), ("m", 1), ("k", 1_000_000)],
    names: "none (cores) or m (thousandths)",
};
const GPUS: UnitTable =
    UnitTable { factors: &[("", 1000), ("m", 1)], names: "none (GPUs) or m (thousandths)" };
const BYTES: UnitTable = UnitTable {
    factors: &[
        ("", 1),
        ("k", 1000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
    ],
    names: "none (bytes), k, M, G, T, P, Ki, Mi, Gi, Ti, Pi",
};
const RATES: UnitTable = UnitTable {
    factors: &[
        ("bps", 1),
        ("kbps", 1000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", 1_000_000_000_000),
    ],
    names: "bps, kbps, Mbps, Gbps, Tbps",
};
const TIMES: UnitTable = UnitTable {
    factors: &[
        ("ns", 1),
        ("us", 1000),
        ("µs", 1000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ],
    names: "ns, us, ms, s, m, h, d",
};

/// Half of the maximum, so that the sum of two amounts does not overflow.
const MAX_AMOUNT: u64 = u64::MAX / 2;

fn bounded(value: u64, text: &str) -> Result<u64, QuantityError> {
    if value <= MAX_AMOUNT { Ok(value) } else { Err(QuantityError::TooLarge(truncated(text))) }
}

macro_rules! from_text {
    ($($name:ident by $units:ident;)*) => {$(
        impl FromStr for $name {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<Self, QuantityError> {
                bounded($units.parse(text)?, text).map(Self)
            }
        }
    )*};
}

from_text! {
    Cpu by CORES;
    Gpus by GPUS;
    Memory by BYTES;
    Bandwidth by RATES;
}

/// `1h30m`, `90s`, `210ms`: the parts are added.
impl FromStr for Duration {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let (mut rest, mut total) = (text, 0u64);
        loop {
            let (decimal, after) = leading_decimal(rest)?;
            let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, next) = after.split_at(unit_end);
            let part = scaled(&decimal, TIMES.factor(unit, text)?, text)?;
            total = total.checked_add(part).ok_or_else(|| QuantityError::TooLarge(truncated(text)))?;
            if next.is_empty() {
                return bounded(total, text).map(Self);
            }
            rest = next;
        }
    }
}

/// Parses a share such as `20%` or `0.2`, at most the whole.
pub fn parse_share(text: &str) -> Result<Share, QuantityError> {
    const SHARES: UnitTable =
        UnitTable { factors: &[("", 1_000_000), ("%", 10_000)], names: "none (a fraction of 1) or %" };
    let millionths = SHARES.parse(text)?;
    u32::try_from(millionths)
        .ok()
        .filter(|share| *share <= Share::WHOLE.0)
        .map(Share)
        .ok_or_else(|| QuantityError::TooLarge(truncated(text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!("250m".parse(), Ok(Cpu(250)));
        assert_eq!("0.5".parse(), Ok(Cpu(500)));
        assert_eq!("0.0001".parse(), Ok(Cpu(1)), "finer than a thousandth is rounded up");
        assert_eq!("16Gi".parse(), Ok(Memory::gib(16)));
        assert_eq!("1.5Gi".parse(), Ok(Memory(3 << 29)));
        assert_eq!("1e3".parse(), Ok(Memory(1000)));
        assert_eq!("100Gbps".parse(), Ok(Bandwidth(100_000_000_000)));
        assert_eq!("1h30m".parse(), Ok(Duration::from_secs(5400)));
        assert_eq!("210ms".parse(), Ok(Duration::from_millis(210)));
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("0s".parse(), Ok(Duration::ZERO));
        assert_eq!(parse_share("1%"), Ok(Share(10_000)));
        assert_eq!(parse_share("0.2"), Ok(Share(200_000)));
    }

    #[test]
    fn invalid_quantities_are_rejected_by_name() {
        for text in
            ["1e30", "99999999999999999999", "1e2147483647", "123456789012345678901234567890123456789012"]
        {
            assert!(matches!(text.parse::<Memory>(), Err(QuantityError::TooLarge(_))), "{text}");
        }
        assert!(matches!("-1".parse::<Cpu>(), Err(QuantityError::Negative(_))));
        assert!(matches!("".parse::<Cpu>(), Err(QuantityError::NotANumber(_))));
        assert!(matches!(".".parse::<Cpu>(), Err(QuantityError::NotANumber(_))));
        assert!(matches!("NaN".parse::<Cpu>(), Err(QuantityError::NotANumber(_))));
        assert!(matches!("5 parsecs".parse::<Duration>(), Err(QuantityError::UnknownUnit { .. })));
        assert!(matches!("90".parse::<Duration>(), Err(QuantityError::UnknownUnit { .. })));
        assert!(matches!(parse_share("101%"), Err(QuantityError::TooLarge(_))));
        assert_eq!("1e-999999999".parse(), Ok(Memory(1)));
        assert_eq!("0e999999999".parse(), Ok(Memory(0)));
    }
}
