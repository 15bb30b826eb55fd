//! Objects as YAML that people read before they apply it: every rule of a role stands under its reason.

use serde::Serialize;

use super::Manifest;
use super::rights::Right;
use super::slots::Switch;

pub(super) fn write(manifest: &Manifest, observe: &Switch) -> String {
    let text = plain(&manifest.object);
    match manifest.rights {
        Some(rights) => text + &rules(rights, observe),
        None => text,
    }
}

pub(super) fn plain(data: &impl Serialize) -> String {
    serde_saphyr::to_string(data).expect("manifests are plain data, which always serialises")
}

/// Whoever only observes may only read.
fn rules(rights: &[Right], observe: &Switch) -> String {
    let (reads, writes): (Vec<&Right>, Vec<&Right>) = rights.iter().partition(|right| right.only_reads());
    let mut text = "rules:\n".to_owned() + &commented(&reads);
    match observe {
        Switch::On => {}
        Switch::Off => text += &commented(&writes),
        Switch::If(name) => {
            text += &format!("{{{{- if not {name} }}}}\n{}{{{{- end }}}}\n", commented(&writes));
        }
    }
    text
}

fn commented(rights: &[&Right]) -> String {
    rights.iter().map(|right| format!("# {}\n{}", right.why, plain(&[right.rule()]))).collect()
}
