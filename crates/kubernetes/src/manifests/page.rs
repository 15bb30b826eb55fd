//! The page of the reference that says what the scheduler may do.

use std::fmt::Write;

use super::rights::{IN_THE_CLUSTER, IN_THE_OWN_NAMESPACE, OF_THE_AGENT, Right, UNSEEN};

pub fn rights_page() -> String {
    let mut text = "<!-- Written by `cargo xtask codegen`: do not edit. -->\n\n# Rights\n\n".to_owned();
    text += "What the service account of an [installation](../guide/install.md) may do. With `observe` it may only\n";
    text += "`list` and `watch`. A test runs the scheduler with these rights and no others, and fails where one is missing\n";
    text += "or is not used.\n";
    table(&mut text, "In the whole cluster", IN_THE_CLUSTER);
    table(&mut text, "In its own namespace", IN_THE_OWN_NAMESPACE);
    text += "\nThat test does not see these used:\n\n";
    for (group, resource, why) in UNSEEN {
        writeln!(text, "- `{resource}` in `{group}`: {why}").expect("a string takes everything");
    }
    text += "\n## The agent on nodes\n\nWith `agent.enabled` there is another service account, `metronome-agent`. An admission policy of the\n";
    text += "same name lets it write two annotations, `metronome.dev/traffic` and `metronome.dev/progress`, on the pods of its\n";
    text += "own node, and nothing else.\n";
    rows(&mut text, OF_THE_AGENT);
    text
}

fn table(text: &mut String, title: &str, rights: &[Right]) {
    writeln!(text, "\n## {title}").expect("a string takes everything");
    rows(text, rights);
}

fn rows(text: &mut String, rights: &[Right]) {
    text.push_str("\n| group | resource | verbs | why |\n|---|---|---|---|\n");
    for Right { group, resource, verbs, why } in rights {
        let group = if group.is_empty() { "core" } else { group };
        let verbs = verbs.join(", ");
        writeln!(text, "| {group} | `{resource}` | {verbs} | {why} |").expect("a string takes everything");
    }
}
