//! Reading values that may not be there or be anything.

use std::fmt;

use serde_json::Value;

use crate::rules::quantity::Amount;

/// A value that cannot be used, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Complaint {
    Missing { field: String },
    WrongType { field: String, expected: &'static str, found: String },
    OutOfRange { field: String, found: String },
    Unsupported { field: String },
    LimitBelowQuota,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { field } => write!(f, "{field} is missing"),
            Self::WrongType { field, expected, found } => write!(f, "{field} is {found}, not {expected}"),
            Self::OutOfRange { field, found } => write!(f, "{field} is {found}, which is out of range"),
            Self::Unsupported { field } => write!(f, "{field} is not supported"),
            Self::LimitBelowQuota => write!(f, "its limit is less than what it may call its own"),
        }
    }
}

/// More members than any cluster has pods: a value beyond is a mistake or an attack, never a gang.
pub(super) const MOST_MEMBERS: u64 = 1_000_000;

/// Of two queues, one counts at most so many times as much as the other.
pub(super) const MOST_WEIGHT: u32 = 1_000_000;

/// A value somewhere in an object, which may not be there or be anything.
pub(super) struct Fields<'a> {
    value: &'a Value,
    path: String,
}

impl<'a> Fields<'a> {
    /// The whole object.
    pub(super) fn of(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// Where it stands, as people write it.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn at(&self, key: &str) -> Fields<'a> {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Fields { value: self.value.get(key).unwrap_or(&Value::Null), path }
    }

    pub(super) fn items(&self) -> Vec<Fields<'a>> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default().iter().enumerate();
        items.map(|(index, value)| Fields { value, path: format!("{}[{index}]", self.path) }).collect()
    }

    pub(super) fn entries(&self) -> Vec<(String, Fields<'a>)> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, _)| (key.clone(), self.at(key))).collect()
    }

    pub(super) fn is_given(&self) -> bool {
        !self.value.is_null()
    }

    pub(super) fn text(&self) -> Result<Option<String>, Complaint> {
        match self.value {
            Value::Null => Ok(None),
            Value::String(text) if text.is_empty() => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(self.wrong_type("a text")),
        }
    }

    pub(super) fn integer<N: TryFrom<i64>>(&self) -> Result<Option<N>, Complaint> {
        match self.value {
            Value::Null => Ok(None),
            Value::Number(number) => {
                number.as_i64().and_then(|n| n.try_into().ok()).map(Some).ok_or_else(|| self.out_of_range())
            }
            _ => Err(self.wrong_type("a whole number")),
        }
    }

    pub(super) fn flag(&self) -> Result<Option<bool>, Complaint> {
        match self.value {
            Value::Null => Ok(None),
            Value::Bool(flag) => Ok(Some(*flag)),
            _ => Err(self.wrong_type("true or false")),
        }
    }

    /// An amount of something, of which there is never less than none.
    pub(super) fn quantity(&self) -> Result<Option<Amount>, Complaint> {
        let text = match self.value {
            Value::Null => return Ok(None),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => return Err(self.wrong_type("a quantity")),
        };
        let amount = Amount::parse(&text).ok_or_else(|| self.wrong_type("a quantity"))?;
        if amount.is_negative() { Err(self.out_of_range()) } else { Ok(Some(amount)) }
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(
        &self,
        words: &[(&str, T)],
        expected: &'static str,
    ) -> Result<Option<T>, Complaint> {
        let Some(text) = self.text()? else { return Ok(None) };
        let meant = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        meant.map(Some).ok_or_else(|| self.wrong_type(expected))
    }

    /// How much something counts: at least one, whatever is said of it.
    pub(super) fn weight(&self) -> Result<u32, Complaint> {
        let weight = self.integer::<u32>()?.unwrap_or(1);
        if (1..=MOST_WEIGHT).contains(&weight) { Ok(weight) } else { Err(self.out_of_range()) }
    }

    /// A number of members; nothing and 0 say none.
    pub(super) fn count_or_none(&self) -> Result<Option<u32>, Complaint> {
        let count = self.integer::<u32>()?.filter(|count| *count > 0);
        if count.is_some_and(|count| u64::from(count) > MOST_MEMBERS) {
            return Err(self.out_of_range());
        }
        Ok(count)
    }

    /// A number of members that must be said.
    pub(super) fn count(&self) -> Result<u32, Complaint> {
        match self.count_or_none()? {
            Some(count) => Ok(count),
            None if self.is_given() => Err(self.out_of_range()),
            None => Err(Complaint::Missing { field: self.path.clone() }),
        }
    }

    fn wrong_type(&self, expected: &'static str) -> Complaint {
        Complaint::WrongType { field: self.path.clone(), expected, found: self.shown() }
    }

    fn out_of_range(&self) -> Complaint {
        Complaint::OutOfRange { field: self.path.clone(), found: self.shown() }
    }

    /// The value for people, cut short: it may be as long as an object may be.
    fn shown(&self) -> String {
        match self.value {
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
            Value::String(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
            scalar => scalar.to_string(),
        }
    }
}
