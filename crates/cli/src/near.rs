//! Near names: what somebody who mistyped a name may have meant.

/// The name nearest to `wanted`, if it is near enough to be a slip of the fingers.
pub(crate) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near_enough = wanted.chars().count().div_ceil(3);
    names
        .into_iter()
        .map(|name| (distance(wanted, name), name))
        .filter(|(distance, _)| *distance <= near_enough)
        .min()
        .map(|(_, name)| name)
}

/// The least number of letters to put in, take out or exchange, by the usual table of prefixes, row by row.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, letter) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, other) in b.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = exchanged.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_near_and_another_word_is_not() {
        let names = ["metronome", "fifo", "fifo-skip", "srtf", "srsf"];
        assert_eq!(nearest("metronom", names), Some("metronome"));
        assert_eq!(nearest("FIFO", names), Some("fifo"));
        assert_eq!(nearest("srf", names), Some("srsf"));
        assert_eq!(nearest("best", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn distance_counts_letters() {
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("abc", "axbd")), (3, 3, 2));
    }
}
