//! Moments in wall-clock time, common to all machines and written as in RFC 3339: `2026-11-16T12:00:00.123456789Z`.
//!
//! A world counts time from its own start; messages between processes need a common origin. The text has full
//! precision: phase offsets are kept to the millisecond, and truncation errors would add up over periods.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Duration, Instant};

/// Nanoseconds since 1970, up to the year 2554; values outside are clamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

/// Why a text is not a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the time is not in RFC 3339 format")]
pub struct MomentError;

const NANOS_PER_SECOND: i128 = Duration::SECOND.0 as i128;
const SECONDS_PER_DAY: i64 = 86_400;

impl Moment {
    /// The beginning of 1970.
    pub const EPOCH: Self = Self(0);

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// Time in a world that started at `epoch`.
    pub const fn in_world_since(self, epoch: Self) -> Instant {
        Instant(self.since(epoch).0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / Duration::SECOND.0, self.0 % Duration::SECOND.0);
        let (days, second) = (seconds as i64 / SECONDS_PER_DAY, seconds as i64 % SECONDS_PER_DAY);
        let (year, month, day) = date_of(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match nanos {
            0 => f.write_str("Z"),
            nanos => write!(f, ".{}Z", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, MomentError> {
        let mut rest = Unread(text.as_bytes());
        let (year, month, day) =
            (rest.number(4)?, rest.after(b"-")?.number(2)?, rest.after(b"-")?.number(2)?);
        let (hour, minute) = (rest.after(b"Tt ")?.number(2)?, rest.after(b":")?.number(2)?);
        let second = rest.after(b":")?.number(2)?;
        let nanos = rest.fraction()?;
        let ahead = rest.offset()?;
        let is_date = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
        // Second 60 is a leap second. Unix time has none, so it becomes the next second.
        if !is_date || hour > 23 || minute > 59 || second > 60 || !rest.0.is_empty() {
            return Err(MomentError);
        }
        let seconds = days_before(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        let nanos = i128::from(seconds - ahead) * NANOS_PER_SECOND + i128::from(nanos);
        Ok(Self(nanos.clamp(0, i128::from(u64::MAX)) as u64))
    }
}

/// Unread rest of a text.
struct Unread<'a>(&'a [u8]);

impl Unread<'_> {
    /// Consumes one of these separators.
    fn after(&mut self, marks: &[u8]) -> Result<&mut Self, MomentError> {
        let (first, rest) = self.0.split_first().ok_or(MomentError)?;
        if !marks.contains(first) {
            return Err(MomentError);
        }
        self.0 = rest;
        Ok(self)
    }

    /// Reads a number with this many digits.
    fn number(&mut self, digits: usize) -> Result<i64, MomentError> {
        let (number, rest) = self.0.split_at_checked(digits).ok_or(MomentError)?;
        self.0 = rest;
        number.iter().try_fold(0, |value, byte| match byte {
            b'0'..=b'9' => Ok(10 * value + i64::from(byte - b'0')),
            _ => Err(MomentError),
        })
    }

    /// Reads a fraction of a second in nanoseconds, zero if there is none; finer digits are truncated.
    fn fraction(&mut self) -> Result<i64, MomentError> {
        if self.after(b".").is_err() {
            return Ok(0);
        }
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (read, known) = (Unread(&self.0[..digits.min(9)]).number(digits.min(9))?, digits.min(9) as u32);
        self.0 = &self.0[digits..];
        if digits == 0 { Err(MomentError) } else { Ok(read * 10_i64.pow(9 - known)) }
    }

    /// Reads the UTC offset in seconds.
    fn offset(&mut self) -> Result<i64, MomentError> {
        if self.after(b"Zz").is_ok() {
            return Ok(0);
        }
        let is_behind = self.0.first() == Some(&b'-');
        let (hours, minutes) = (self.after(b"+-")?.number(2)?, self.after(b":")?.number(2)?);
        let seconds = hours * 3600 + minutes * 60;
        let is_one = hours <= 23 && minutes <= 59;
        if is_one { Ok(if is_behind { -seconds } else { seconds }) } else { Err(MomentError) }
    }
}

/// Years start in March here, so that a leap day is the last day of its year; the calendar repeats every 400 years.
const DAYS_IN_400_YEARS: i64 = 146_097;
/// Days from 1 March of year 0 to the beginning of 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Days since the beginning of 1970.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * DAYS_IN_400_YEARS + year * 365 + year / 4 - year / 100 + day_of_year - DAYS_TO_1970
}

/// Year, month and day of a number of days since the beginning of 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_IN_400_YEARS - 1)) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

fn days_in(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days_before(next_year, next, 1) - days_before(year, month, 1)
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<u64> {
        text.parse().ok().map(|Moment(nanos)| nanos)
    }

    #[test]
    fn moments_are_written_as_short_as_they_can_be() {
        let written = |nanos: u64| Moment(nanos).to_string();
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
        assert_eq!(written(1_780_000_000_000_000_000), "2026-05-28T20:26:40Z");
        assert_eq!(written(1_780_000_000_120_000_000), "2026-05-28T20:26:40.12Z");
        assert_eq!(written(1_780_000_000_000_000_001), "2026-05-28T20:26:40.000000001Z");
        assert_eq!(written(u64::MAX), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn a_written_moment_is_read_back_on_every_day() {
        let day = SECONDS_PER_DAY as u64 * Duration::SECOND.0;
        let odd = 86_399 * Duration::SECOND.0 + 987_654_321;
        for moment in (0..u64::MAX / day).map(|days| days * day + odd) {
            assert_eq!(read(&Moment(moment).to_string()), Some(moment));
        }
    }

    #[test]
    fn every_form_of_rfc_3339_is_read() {
        let noon = 1_780_012_800_000_000_000;
        for same in [
            "2026-05-29T00:00:00Z",
            "2026-05-29t00:00:00z",
            "2026-05-29 00:00:00.0Z",
            "2026-05-29T02:00:00+02:00",
            "2026-05-28T18:30:00-05:30",
            "2026-05-28T23:59:60Z",
            "2026-05-29T00:00:00.0000000009Z",
        ] {
            assert_eq!(read(same), Some(noon), "{same}");
        }
        assert_eq!(read("2026-05-29T00:00:00.5Z"), Some(noon + 500_000_000));
        assert_eq!(read("2024-02-29T00:00:00Z"), Some(1_709_164_800_000_000_000));
    }

    #[test]
    fn a_moment_out_of_range_is_clamped() {
        assert_eq!(read("1960-01-01T00:00:00Z"), Some(0));
        assert_eq!(read("9000-01-01T00:00:00Z"), Some(u64::MAX));
        assert_eq!(Moment(u64::MAX) + Duration::SECOND, Moment(u64::MAX));
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "now",
            "2026-05-29",
            "2026-05-29T00:00:00",
            "2026-05-29T00:00:00.Z",
            "2026-05-29T00:00:00Z ",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-05-00T00:00:00Z",
            "2026-05-29T24:00:00Z",
            "2026-05-29T00:60:00Z",
            "2026-05-29T00:00:61Z",
            "2026-05-29T00:00:00+24:00",
            "2026-05-29T00:00:00+0200",
            "+026-05-29T00:00:00Z",
            "２026-05-29T00:00:00Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
