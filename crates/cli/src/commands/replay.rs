//! `metronome replay`

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::journal::Past;
use crate::reply::{Format, Reply};

/// Decide again from a recorded journal and check that every decision comes out the same
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Journal that `sim run --journal` wrote
    journal: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    decisions: u64,
    mismatches: &'a [String],
}

pub(crate) fn run(args: &Replay) -> Result<Reply, Failure> {
    let past = Past::read(&args.journal, None)?;
    let document = Document { version: 1, decisions: past.decisions(), mismatches: past.mismatches() };
    let exit = if document.mismatches.is_empty() { Exit::Done } else { Exit::FellShort };
    let reply = match args.output {
        Format::Json => Reply::json(&document),
        Format::Human => Reply::text(words(&document)),
    };
    Ok(reply.ending(exit))
}

fn words(document: &Document) -> String {
    const MOST: usize = 20;
    let (decisions, different) = (document.decisions, document.mismatches.len());
    let mut text = match different {
        0 => format!("{decisions} decisions, all the same\n"),
        _ => format!("{decisions} decisions, {different} different:\n"),
    };
    for mismatch in document.mismatches.iter().take(MOST) {
        writeln!(text, "  {mismatch}").expect("a string takes everything");
    }
    if different > MOST {
        writeln!(text, "  … and {} more", different - MOST).expect("a string takes everything");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_listed_up_to_a_bound() {
        let none = Document { version: 1, decisions: 7, mismatches: &[] };
        assert_eq!(words(&none), "7 decisions, all the same\n");
        let many: Vec<String> = (0..22).map(|at| format!("decision {at}")).collect();
        let text = words(&Document { version: 1, decisions: 30, mismatches: &many });
        assert!(text.starts_with("30 decisions, 22 different:\n  decision 0\n"), "{text}");
        assert!(text.ends_with("  decision 19\n  … and 2 more\n"), "{text}");
        crate::schema::assert_conforms("replay", &none);
    }
}
