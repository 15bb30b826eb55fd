//! Text for people and for markup: escaped, and numbers with no digit to spare.

/// Safe as text and as an attribute: nothing a user wrote is ever read as markup.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// At most that many decimals, and none that say nothing.
pub fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let short = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    if short == "-0" { "0".into() } else { short.into() }
}

/// Three significant digits or so, as much as a comparison by eye can use.
pub fn tidy(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => number(value, 0),
        size if size >= 9.995 => number(value, 1),
        _ => number(value, 2),
    }
}

/// A share of one, in percent.
pub fn percent(share: f64) -> String {
    let decimals = if share != 0.0 && share.abs() < 0.0995 { 1 } else { 0 };
    format!("{} %", number(share * 100.0, decimals))
}

/// The unit in which a span of time is best read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    pub name: &'static str,
    pub seconds: f64,
}

const UNITS: [Unit; 4] = [
    Unit { name: "days", seconds: 86_400.0 },
    Unit { name: "h", seconds: 3600.0 },
    Unit { name: "min", seconds: 60.0 },
    Unit { name: "s", seconds: 1.0 },
];

impl Unit {
    /// The largest of which there are three or more.
    pub fn of(seconds: f64) -> Self {
        let fits = |unit: &&Self| seconds >= 3.0 * unit.seconds;
        *UNITS.iter().find(fits).unwrap_or(&UNITS[UNITS.len() - 1])
    }

    /// One unit for all of several, so that they can be compared at a glance.
    pub fn of_all(seconds: impl IntoIterator<Item = f64>) -> Self {
        Self::of(seconds.into_iter().fold(f64::INFINITY, f64::min))
    }

    /// In a column of times.
    pub fn decimals(self) -> usize {
        if self.seconds > 100.0 { 2 } else { 1 }
    }

    pub fn tell(self, seconds: f64) -> String {
        format!("{} {}", tidy(seconds / self.seconds), self.name)
    }
}

/// A span of time in words: `14.2 min`.
pub fn time(seconds: f64) -> String {
    Unit::of(seconds).tell(seconds)
}

/// A span of time as short as an iteration: `412 ms`, `1.24 s`.
pub fn short_time(seconds: f64) -> String {
    if seconds < 0.9995 { format!("{} ms", tidy(seconds * 1000.0)) } else { format!("{} s", tidy(seconds)) }
}

/// As much of a text as fits into so many letters.
pub fn short(text: &str, fits: usize) -> String {
    match text.char_indices().nth(fits) {
        Some(_) => text.chars().take(fits - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// `1 job`, `2 jobs`; means over seeds keep a decimal.
pub fn count(number_of: f64, what: &str) -> String {
    format!("{} {what}{}", number(number_of, 1), if number_of == 1.0 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_user_wrote_is_markup() {
        assert_eq!(escape("<a href=\"x\" b='&'>"), "&lt;a href=&quot;x&quot; b=&#39;&amp;&#39;&gt;");
    }

    #[test]
    fn numbers_have_no_digit_to_spare() {
        assert_eq!([number(2.50, 2), number(100.0, 0), number(-0.001, 2)], ["2.5", "100", "0"]);
        assert_eq!([tidy(1234.5), tidy(12.345), tidy(1.2345)], ["1234", "12.3", "1.23"]);
        assert_eq!([percent(0.2345), percent(0.0412), percent(0.0)], ["23 %", "4.1 %", "0 %"]);
    }

    #[test]
    fn a_long_name_is_cut_where_there_is_no_room() {
        assert_eq!([short("rack-0 up", 9), short("rack-10 up", 9)], ["rack-0 up", "rack-10 …"]);
    }

    #[test]
    fn a_span_of_time_is_told_in_the_unit_that_suits_it() {
        assert_eq!(
            [time(0.0), time(95.0), time(850.0), time(50_000.0)],
            ["0 s", "95 s", "14.2 min", "13.9 h"]
        );
        assert_eq!(
            [short_time(0.0412), short_time(0.41234), short_time(1.236)],
            ["41.2 ms", "412 ms", "1.24 s"]
        );
        let both = [10_000.0, 11_000.0];
        assert_eq!(both.map(|time| Unit::of_all(both).tell(time)), ["167 min", "183 min"]);
    }
}
