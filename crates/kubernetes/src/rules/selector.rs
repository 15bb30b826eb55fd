//! Selectors over labels, in one canonical form: equal selectors compare equal however they were written.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::rules::Refusal;

pub type Labels = BTreeMap<String, String>;

static NO_LABELS: Labels = Labels::new();

pub fn labels_of(meta: &ObjectMeta) -> &Labels {
    meta.labels.as_ref().unwrap_or(&NO_LABELS)
}

/// What one label has to be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    pub key: String,
    pub test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl Requirement {
    pub fn equals(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), test: Test::In(BTreeSet::from([value.to_owned()])) }
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl Test {
    /// `None` where the values do not go with the operator.
    pub fn of(operator: &str, values: &[String]) -> Result<Option<Self>, Refusal> {
        let several = || (!values.is_empty()).then(|| values.iter().cloned().collect());
        let bound = || match values {
            [bound] => bound.parse::<i64>().ok(),
            _ => None,
        };
        Ok(match operator {
            "In" => several().map(Self::In),
            "NotIn" => several().map(Self::NotIn),
            "Exists" => values.is_empty().then_some(Self::Exists),
            "DoesNotExist" => values.is_empty().then_some(Self::Absent),
            "Gt" => bound().map(Self::Above),
            "Lt" => bound().map(Self::Below),
            other => return Err(Refusal::unknown("the selector operator", other)),
        })
    }
}

/// Selects pods, volumes or namespaces by their labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    Nothing,
    /// All of these hold, in order and each once; everything, where there are none.
    All(Vec<Requirement>),
}

impl Selector {
    /// An absent selector selects nothing, an empty one everything.
    pub fn of(selector: Option<&LabelSelector>) -> Result<Self, Refusal> {
        let Some(selector) = selector else { return Ok(Self::Nothing) };
        let mut all: Vec<Requirement> = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            all.push(Requirement::equals(key, value));
        }
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.as_deref().unwrap_or_default();
            let known = !matches!(expression.operator.as_str(), "Gt" | "Lt");
            let test = Test::of(&expression.operator, values)?.filter(|_| known);
            let test = test.ok_or_else(|| Refusal::malformed("the label selector", &expression.key))?;
            all.push(Requirement { key: expression.key.clone(), test });
        }
        Ok(Self::All(all).in_order())
    }

    /// The same, and these labels besides; nothing stays nothing.
    pub fn and(self, more: impl IntoIterator<Item = Requirement>) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::All(mut all) => {
                all.extend(more);
                Self::All(all).in_order()
            }
        }
    }

    fn in_order(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::All(mut all) => {
                all.sort();
                all.dedup();
                Self::All(all)
            }
        }
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(all) => all.iter().all(|requirement| requirement.matches(labels)),
        }
    }

    pub fn is_everything(&self) -> bool {
        matches!(self, Self::All(all) if all.is_empty())
    }

    /// A label that everything selected has, with the values it may take: where to look it up.
    pub fn anchor(&self) -> Option<(&str, &BTreeSet<String>)> {
        let Self::All(all) = self else { return None };
        all.iter().find_map(|requirement| match &requirement.test {
            Test::In(values) => Some((requirement.key.as_str(), values)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn selector(json: serde_json::Value) -> Result<Selector, Refusal> {
        Selector::of(Some(&serde_json::from_value(json).unwrap()))
    }

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
        let empty = selector(serde_json::json!({})).unwrap();
        assert_eq!(Selector::of(None), Ok(Selector::Nothing));
        assert!(empty.is_everything() && empty.matches(&labels(&[])));
        assert!(!Selector::Nothing.matches(&labels(&[("a", "b")])));
    }

    #[test]
    fn however_it_is_written_a_selector_is_the_same() {
        let short = selector(serde_json::json!({"matchLabels": {"a": "1", "b": "2"}})).unwrap();
        let long = selector(serde_json::json!({"matchExpressions": [
            {"key": "b", "operator": "In", "values": ["2"]},
            {"key": "a", "operator": "In", "values": ["1", "1"]},
            {"key": "b", "operator": "In", "values": ["2"]},
        ]}));
        assert_eq!(long, Ok(short));
    }

    #[test]
    fn every_operator_tests_what_its_name_says() {
        let node = labels(&[("a", "5"), ("word", "x")]);
        let holds = |key: &str, operator: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let test = Test::of(operator, &values).unwrap().unwrap();
            Requirement { key: key.to_owned(), test }.matches(&node)
        };
        assert!(holds("a", "In", &["4", "5"]) && !holds("a", "In", &["4"]) && !holds("none", "In", &["5"]));
        assert!(
            holds("a", "NotIn", &["4"]) && !holds("a", "NotIn", &["5"]) && holds("none", "NotIn", &["5"])
        );
        assert!(holds("a", "Exists", &[]) && !holds("none", "Exists", &[]));
        assert!(holds("none", "DoesNotExist", &[]) && !holds("a", "DoesNotExist", &[]));
        assert!(holds("a", "Gt", &["4"]) && !holds("a", "Gt", &["5"]) && !holds("word", "Gt", &["0"]));
        assert!(holds("a", "Lt", &["6"]) && !holds("a", "Lt", &["5"]) && !holds("none", "Lt", &["5"]));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let unknown = selector(serde_json::json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}));
        assert!(matches!(unknown, Err(Refusal::Unknown { .. })));
        let empty = selector(serde_json::json!({"matchExpressions": [{"key": "a", "operator": "In"}]}));
        assert!(matches!(empty, Err(Refusal::Malformed { .. })));
    }
}
