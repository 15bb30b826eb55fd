//! Rust text as far as a fence needs it: comments and strings blanked out, words found as whole words.

use std::iter::Peekable;
use std::str::Chars;

/// The same text with every comment, string and character literal replaced by blanks; lines stay where they are.
pub(super) fn without_comments_and_strings(source: &str) -> String {
    let mut scanner = Scanner { rest: source.chars().peekable(), code: String::with_capacity(source.len()) };
    while let Some(letter) = scanner.rest.next() {
        scanner.take(letter);
    }
    scanner.code
}

struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    code: String,
}

impl Scanner<'_> {
    fn take(&mut self, letter: char) {
        match letter {
            '/' if self.rest.peek() == Some(&'/') => self.line_comment(),
            '/' if self.rest.peek() == Some(&'*') => self.block_comment(),
            '"' => self.string(),
            'r' if !self.inside_a_word() => self.raw_string(),
            '\'' => self.quote(),
            _ => self.code.push(letter),
        }
    }

    fn inside_a_word(&self) -> bool {
        // The `b` of a raw byte string belongs to the literal, not to a word before it.
        let word = self.code.strip_suffix('b').unwrap_or(&self.code);
        word.ends_with(is_word)
    }

    fn line_comment(&mut self) {
        while self.rest.next_if(|letter| *letter != '\n').is_some() {}
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        let mut before = '/';
        while let Some(letter) = self.rest.next() {
            self.blank(letter);
            match (before, letter) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    before = letter;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
            // The same letter does not both end one mark and begin the next.
            before = ' ';
        }
    }

    fn string(&mut self) {
        while let Some(letter) = self.rest.next() {
            self.blank(letter);
            match letter {
                '\\' => {
                    let escaped = self.rest.next().unwrap_or(' ');
                    self.blank(escaped);
                }
                '"' => return,
                _ => {}
            }
        }
    }

    /// After an `r`: a raw string is passed over; anything else is a word.
    fn raw_string(&mut self) {
        let mut ahead = self.rest.clone();
        let hashes = std::iter::from_fn(|| ahead.next_if_eq(&'#')).count();
        if ahead.next() != Some('"') {
            self.code.push('r');
            return;
        }
        self.rest = ahead;
        while let Some(letter) = self.rest.next() {
            self.blank(letter);
            let closes = letter == '"' && self.rest.clone().take(hashes).eq(std::iter::repeat_n('#', hashes));
            if closes {
                self.rest.by_ref().take(hashes).for_each(drop);
                return;
            }
        }
    }

    /// A character literal is passed over; a lifetime is not.
    fn quote(&mut self) {
        let mut ahead = self.rest.clone();
        match ahead.next() {
            Some('\\') => {
                ahead.next();
                while ahead.next_if(|letter| *letter != '\'').is_some() {}
                ahead.next();
                self.rest = ahead;
            }
            Some(_) if ahead.next() == Some('\'') => self.rest = ahead,
            _ => self.code.push('\''),
        }
    }

    fn blank(&mut self, letter: char) {
        self.code.push(if letter == '\n' { '\n' } else { ' ' });
    }
}

/// The lines, from 1, in which `word` occurs and is not part of a longer word.
pub(super) fn find_words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let stands_alone = move |at: usize| {
        let (before, after) = (&code[..at], &code[at + word.len()..]);
        let joined_after = word.ends_with(is_word) && after.starts_with(is_word);
        !before.ends_with(is_word) && !joined_after
    };
    code.match_indices(word)
        .filter(move |(at, _)| stands_alone(*at))
        .map(|(at, _)| code[..at].matches('\n').count() + 1)
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
