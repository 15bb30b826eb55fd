//! `metronome sim policies`

use clap::Args;
use serde::Serialize;

use metronome_core::policy::Policy;

use crate::policies;
use crate::reply::{Format, Reply};

/// List the built-in policies
#[derive(Debug, Args)]
pub(crate) struct SimPolicies {
    /// How to print the list
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

#[derive(Serialize)]
struct Document {
    version: u32,
    policies: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: &'static str,
    about: &'static str,
}

pub(crate) fn run(args: &SimPolicies) -> Reply {
    let policies: Vec<Entry> =
        Policy::names().map(|name| Entry { name, about: policies::about(name) }).collect();
    match args.output {
        Format::Json => Reply::json(&Document { version: 1, policies }),
        Format::Human => {
            let line = |entry: &Entry| format!("{:<14} {}\n", entry.name, entry.about);
            Reply::text(policies.iter().map(line).collect::<String>())
        }
    }
}
