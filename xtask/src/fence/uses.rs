//! Paths in Rust text: those of `use` declarations with their braces taken apart, and those in the middle of code.

use std::collections::BTreeMap;

use super::imports::Module;

/// A path, the line in which it ends, and the name by which a `use` makes it known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    pub(super) binds: Option<String>,
}

/// All paths in code without comments and strings, for the module that it is and for each module inside it. Modules named
/// `tests` are left out.
pub(super) fn imports_in(code: &str, module: &Module) -> BTreeMap<Module, Vec<Found>> {
    let tokens = tokens(code);
    let mut reader = Reader { tokens: &tokens, at: 0, found: BTreeMap::from([(module.clone(), Vec::new())]) };
    reader.block(module);
    reader.found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Words, `::`, and every other letter by itself.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (line, text) in (1..).zip(code.lines()) {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let word =
                rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            let length = match word {
                0 if rest.starts_with("::") => 2,
                0 => rest.chars().next().map_or(1, char::len_utf8),
                word => word,
            };
            tokens.push(Token { text: &rest[..length], line });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    found: BTreeMap<Module, Vec<Found>>,
}

impl<'a> Reader<'a> {
    /// Reads up to the brace that closes the current block, or to the end.
    fn block(&mut self, module: &Module) {
        while let Some(token) = self.next() {
            match token.text {
                "}" => return,
                "{" => self.block(module),
                "mod" if self.peek(1) == "{" => self.inner_module(module),
                "use" if self.peek(0) != "<" => self.tree(module, Vec::new()),
                "crate" | "super" | "self" if self.begins_a_path() => {
                    let path = self.path(token.text);
                    self.add(module, path, None);
                }
                _ => {}
            }
        }
    }

    fn inner_module(&mut self, module: &Module) {
        let name = self.next().map_or("", |token| token.text).to_owned();
        self.next();
        let inner: Module = module.iter().cloned().chain([name]).collect();
        if inner.last().is_some_and(|name| name == "tests") {
            let mut ignored = Reader { tokens: self.tokens, at: self.at, found: BTreeMap::new() };
            ignored.block(&inner);
            self.at = ignored.at;
        } else {
            self.found.entry(inner.clone()).or_default();
            self.block(&inner);
        }
    }

    /// Whether the word just read begins a path: it is followed by one, and is not `in crate::…` of a visibility.
    fn begins_a_path(&self) -> bool {
        let before = self.at.checked_sub(2).map_or("", |before| self.tokens[before].text);
        self.peek(0) == "::" && before != "::" && before != "in"
    }

    /// The rest of a path in the middle of code.
    fn path(&mut self, first: &str) -> Vec<String> {
        let mut path = vec![first.to_owned()];
        while self.peek(0) == "::" && is_word(self.peek(1)) {
            path.push(self.peek(1).to_owned());
            self.at += 2;
        }
        path
    }

    /// A tree of a `use`, up to what ends it: `a::b`, `a::{b, c::*}`, `a as b`.
    fn tree(&mut self, module: &Module, mut path: Vec<String>) {
        loop {
            match self.peek(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.peek(0), "}" | "") {
                        let before = self.at;
                        self.tree(module, path.clone());
                        // A comma, or what no tree begins with.
                        self.at += usize::from(self.peek(0) == "," || self.at == before);
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    self.at += 1;
                    self.add(module, path, None);
                    return;
                }
                word if is_word(word) => {
                    path.push(word.to_owned());
                    self.at += 1;
                    if self.peek(0) != "::" {
                        let renamed = (self.peek(0) == "as").then(|| self.peek(1).to_owned());
                        self.at += if renamed.is_some() { 2 } else { 0 };
                        // `a::{self}` is `a` itself.
                        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                            path.pop();
                        }
                        let name = renamed.or_else(|| path.last().cloned());
                        self.add(module, path, name);
                        return;
                    }
                }
                "::" => {}
                _ => return,
            }
            self.at += usize::from(self.peek(0) == "::");
        }
    }

    fn add(&mut self, module: &Module, path: Vec<String>, binds: Option<String>) {
        let line = self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)].line;
        self.found.entry(module.clone()).or_default().push(Found { path, line, binds });
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token
    }

    fn peek(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}
