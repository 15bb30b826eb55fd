//! Near names: what somebody probably meant.

use std::cmp::Reverse;
use std::fmt::Write;

/// `did you mean …?`, if one of `known` is a slip of the finger away.
pub fn did_you_mean<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(text, known).map(|name| format!("did you mean `{name}`?"))
}

/// The nearest name, or the list of all of them.
pub fn meant_or_known<'a>(text: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    did_you_mean(text, known.clone()).unwrap_or_else(|| format!("known are {}", listed(known)))
}

/// `a, b, c`, at most a line of them.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 24;
    let mut list = String::new();
    let mut names = names.into_iter();
    for name in names.by_ref().take(SHOWN) {
        let comma = if list.is_empty() { "" } else { ", " };
        write!(list, "{comma}{name}").expect("writing to a string");
    }
    match names.count() {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

/// The name nearest to `text`, if it is a slip of the finger away.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names are short; a long text is no slip of the finger, and comparing it would cost its square.
    const LONGEST: usize = 64;
    if text.len() > LONGEST {
        return None;
    }
    let allowed = text.chars().count().div_ceil(3).min(3);
    known
        .into_iter()
        .filter(|name| name.len() <= LONGEST)
        .map(|name| (distance(text, name), Reverse(common_start(text, name)), name))
        .filter(|(distance, ..)| *distance <= allowed)
        .min()
        .map(|(.., name)| name)
}

/// Between equally distant names people mean the one that begins as they wrote: `gpus`, not `cpu`, for `gpu`.
fn common_start(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count()
}

/// The least number of letters to insert, drop or change, upper and lower case being one.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["gpus", "cpu", "memory", "perRack"];
        assert_eq!(did_you_mean("gpu", known), Some("did you mean `gpus`?".into()));
        assert_eq!(did_you_mean("perrack", known), Some("did you mean `perRack`?".into()));
        assert_eq!(did_you_mean("colour", known), None);
        assert_eq!(meant_or_known("colour", ["a", "b"]), "known are a, b");
    }
}
