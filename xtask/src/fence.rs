//! `cargo xtask fence`: a text check that `core` does no IO, reads no clock, has no threads and no randomness of its
//! own, and that its modules do not import from each other in a circle. Clippy's `disallowed-types` says the first from inside
//! the compiler; this check also finds what a macro hides and what a dependency would bring.

mod imports;
mod scan;
mod uses;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell;
use imports::{Known, Source, cycles};
use scan::{find_words, without_comments_and_strings};

/// What must not occur, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("HashMap", "iteration order differs between runs"),
    ("HashSet", "iteration order differs between runs"),
    ("RandomState", "randomness enters as a seed"),
    ("rand", "randomness enters as a seed"),
    ("std::time", "time enters as an argument"),
    ("time::Instant", "time enters as an argument"),
    ("SystemTime", "time enters as an argument"),
    ("std::thread", "core has no threads"),
    ("thread::", "core has no threads"),
    ("thread_local!", "core has no threads"),
    ("std::fs", "core does no IO"),
    ("std::net", "core does no IO"),
    ("std::env", "core does no IO"),
    ("std::process", "core does no IO"),
    ("println!", "core does not log: it reports"),
    ("eprintln!", "core does not log: it reports"),
    ("print!", "core does not log: it reports"),
    ("eprint!", "core does not log: it reports"),
    ("dbg!", "core does not log: it reports"),
];

const ALLOWED_DEPENDENCIES: &[&str] = &["indexmap", "serde", "serde_json", "thiserror"];

/// Imports between siblings that close a cycle and stay for now. The list only becomes shorter: the fence also fails where an
/// entry is no longer needed.
#[rustfmt::skip]
const KNOWN_IMPORTS: &[Known] = &[
    Known { from: "model", to: "deadlines", why: "a plan holds bookings, which the timetable defines" },
    Known { from: "model", to: "observe", why: "a job holds what is observed of it" },
    Known { from: "model", to: "traffic", why: "a plan holds traffic policies, and a report their inputs" },
    Known { from: "model", to: "tuning", why: "a policy holds its overrides of the tuning table" },
    Known { from: "network", to: "traffic", why: "training loops run under traffic policies" },
    Known { from: "engine", to: "journal", why: "the engine writes records, which hold its events and its state" },
    Known { from: "model::job", to: "model::plan", why: "the life of a job holds its assignment" },
    Known { from: "model::job", to: "model::report", why: "the life of a job holds the failure or refusal that ends it" },
    Known { from: "traffic::candidates", to: "traffic::choose", why: "candidates depend on the stakes that the choice weighs" },
    Known { from: "traffic::contention_graph", to: "traffic::slowdown_model", why: "the graph keeps the predictions about its flows" },
];

pub(crate) fn run() -> Result<()> {
    let core = shell::root()?.join("crates/core");
    let texts = texts(&core.join("src"))?;
    let mut breaches = Vec::new();
    for (file, text) in &texts {
        breaches.extend(breaches_in(text).into_iter().map(|breach| format!("src/{file}:{breach}")));
    }
    breaches.extend(dependency_breaches(&fs::read_to_string(core.join("Cargo.toml"))?));
    let sources: Vec<Source> = texts.iter().map(|(path, text)| Source { path, text }).collect();
    breaches.extend(cycles(&sources, KNOWN_IMPORTS));
    ensure!(breaches.is_empty(), "crates/core breaks its rules:\n  {}", breaches.join("\n  "));
    Ok(())
}

/// All Rust files below a folder in order of path, each with its path below the folder and its text.
fn texts(folder: &Path) -> Result<Vec<(String, String)>> {
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let path = file.strip_prefix(folder).unwrap_or(&file);
        Ok((path.to_string_lossy().replace('\\', "/"), text))
    };
    sources(folder)?.into_iter().map(read).collect()
}

/// All Rust files below a folder, in order of path.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// `line: what: why`, for each forbidden word in a source text.
fn breaches_in(source: &str) -> Vec<String> {
    let code = without_comments_and_strings(source);
    let mut breaches: Vec<(usize, String)> = Vec::new();
    for (word, why) in FORBIDDEN {
        breaches.extend(find_words(&code, word).map(|line| (line, format!("{line}: `{word}`: {why}"))));
    }
    breaches.sort();
    breaches.into_iter().map(|(_, breach)| breach).collect()
}

/// Where the dependencies of a manifest are not exactly the allowed ones.
fn dependency_breaches(manifest: &str) -> Vec<String> {
    let named = dependencies(manifest);
    let added = named.iter().filter(|name| !ALLOWED_DEPENDENCIES.contains(&name.as_str()));
    let missing = ALLOWED_DEPENDENCIES.iter().filter(|name| !named.iter().any(|named| named == *name));
    added
        .map(|name| format!("Cargo.toml: `{name}` is not an allowed dependency"))
        .chain(missing.map(|name| format!("Cargo.toml: `{name}` is gone: take it off the fence's list too")))
        .collect()
}

/// The names in `[dependencies]`, and in any other table of that kind but the one for tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = false;
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, name) = header.rsplit_once("dependencies.").unwrap_or((header, ""));
            inside = header.ends_with("dependencies") && !header.ends_with("dev-dependencies");
            if !name.is_empty() && !table.ends_with("dev-") {
                names.push(name.to_owned());
            }
        } else if let (true, Some((name, _))) = (inside, line.split_once(['.', '=', ' '])) {
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests;
