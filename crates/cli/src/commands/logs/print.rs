//! Lines on standard output, with who wrote them.

use std::io::Write;

use metronome_kubernetes::objects::TrainingJob;
use owo_colors::{AnsiColors, OwoColorize};

use super::members::Member;

/// Colours that are told apart on light and on dark ground.
const COLOURS: [AnsiColors; 6] = [
    AnsiColors::Cyan,
    AnsiColors::Yellow,
    AnsiColors::Green,
    AnsiColors::Magenta,
    AnsiColors::Blue,
    AnsiColors::Red,
];

pub(super) struct Printer {
    /// How wide names are; nothing where lines are printed as they are.
    width: Option<usize>,
}

impl Printer {
    pub(super) fn new(job: &TrainingJob, is_one: bool) -> Self {
        let roles = job.spec.iter().flat_map(|spec| spec.all_roles());
        let names = roles.map(|role| format!("{}-{}", role.name, role.most.saturating_sub(1)).len());
        Self { width: (!is_one).then(|| names.max().unwrap_or_default()) }
    }

    /// Whether anybody still reads.
    pub(super) fn print(&mut self, member: &Member, line: &str) -> bool {
        let mut out = anstream::stdout().lock();
        let written = match self.width {
            None => writeln!(out, "{line}"),
            Some(width) => {
                let name = format!("{member:width$} |");
                writeln!(out, "{} {line}", name.color(COLOURS[member.colour() % COLOURS.len()]))
            }
        };
        written.is_ok()
    }
}
