//! Values as they stand in a document, and how they become numbers, units and words: every refusal says where.

use std::ops::RangeInclusive;
use std::str::FromStr;

use metronome_core::model::units::{QuantityError, Share, parse_share};
pub(crate) use metronome_documents::Text;
use serde_saphyr::{Location, Spanned};

use super::error::{Position, Problem, quoted};
use crate::near::meant_or_known;

/// More nodes than any cluster has; above it a count is a mistake.
pub(crate) const MOST_NODES: u64 = 200_000;

/// The longest name, as in Kubernetes.
const LONGEST_NAME: usize = 253;

pub(crate) trait Placed {
    fn at(&self) -> Position;

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(self.at(), message)
    }
}

impl<T> Placed for Spanned<T> {
    fn at(&self) -> Position {
        position(self.referenced)
    }
}

impl Placed for Position {
    fn at(&self) -> Position {
        *self
    }
}

pub(crate) fn position(location: Location) -> Position {
    Position { line: location.line(), column: Some(location.column()) }
}

/// `16Gi`, `90s`, `100Gbps`: whatever the unit type reads.
pub(crate) fn quantity<T: FromStr<Err = QuantityError>>(text: &Text) -> Result<T, Problem> {
    text.value.parse().map_err(|error: QuantityError| text.problem(error.to_string()))
}

/// As `quantity`, or zero where nothing is said.
pub(crate) fn quantity_or_none<T>(text: Option<&Text>) -> Result<T, Problem>
where
    T: FromStr<Err = QuantityError> + Default,
{
    text.map_or_else(|| Ok(T::default()), quantity)
}

/// As `quantity`, but more than nothing.
pub(crate) fn some_quantity<T>(text: &Text, what: &str) -> Result<T, Problem>
where
    T: FromStr<Err = QuantityError> + Default + PartialEq,
{
    let amount = quantity::<T>(text)?;
    if amount == T::default() {
        return Err(text.problem(format!("{what} is more than nothing")));
    }
    Ok(amount)
}

pub(crate) fn share(text: &Text) -> Result<Share, Problem> {
    parse_share(&text.value).map_err(|error| text.problem(error.to_string()))
}

pub(crate) fn whole(text: &Text, range: RangeInclusive<u64>) -> Result<u64, Problem> {
    whole_number(&text.value, range).map_err(|message| text.problem(message))
}

/// A whole number in a range; the message says both.
pub(crate) fn whole_number(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        match *most {
            u64::MAX => format!("{} is not a whole number from {least} up", quoted(text)),
            _ => format!("{} is not a whole number from {least} to {most}", quoted(text)),
        }
    })
}

/// A number in a range, which nothing that is no number ever is.
pub(crate) fn number(text: &Text, range: RangeInclusive<f64>) -> Result<f64, Problem> {
    let number = text.value.parse::<f64>().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| {
        let (least, most) = (range.start(), range.end());
        text.problem(format!("{} is not a number from {least} to {most}", quoted(&text.value)))
    })
}

/// One of a few words.
pub(crate) fn word<T: Copy>(text: &Text, what: &str, words: &[(&str, T)]) -> Result<T, Problem> {
    let known = words.iter().find(|(word, _)| *word == text.value);
    known.map(|(_, meaning)| *meaning).ok_or_else(|| {
        text.problem(format!("unknown {what} {}", quoted(&text.value)))
            .with_hint(meant_or_known(&text.value, words.iter().map(|(word, _)| *word)))
    })
}

/// A name that can be printed, in a table or as a part of a path.
pub(crate) fn name(text: &Text) -> Result<&str, Problem> {
    check_name(&text.value).map_err(|message| text.problem(message))?;
    Ok(&text.value)
}

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a name is not empty".into());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("the name {} is longer than {LONGEST_NAME} bytes", quoted(name)));
    }
    if name.chars().any(char::is_control) {
        return Err(format!("the name {} has a control character", quoted(name)));
    }
    Ok(())
}
