//! `metronome sim policies`

use clap::Args;
use serde::Serialize;

use metronome_core::model::policy::Policy;

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
    let document = document();
    match args.output {
        Format::Json => Reply::json(&document),
        Format::Human => {
            let line = |entry: &Entry| format!("{:<15} {}\n", entry.name, entry.about);
            Reply::text(document.policies.iter().map(line).collect::<String>())
        }
    }
}

fn document() -> Document {
    let policies = Policy::names().map(|name| Entry { name, about: policies::about(name) }).collect();
    Document { version: 1, policies }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_what_the_schema_says() {
        crate::schema::assert_conforms("policies", &document());
    }
}
