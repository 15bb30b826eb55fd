//! What the documents show is what happens: every session in them is run, every file they name is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All documents for people: those in the root and those below `docs`.
fn documents() -> Vec<PathBuf> {
    let mut folders = vec![root().join("docs")];
    let mut found = markdown_in(&root());
    while let Some(folder) = folders.pop() {
        found.extend(markdown_in(&folder));
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        folders.extend(entries.filter(|path| path.is_dir()));
    }
    found.sort();
    found
}

fn markdown_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Sessions are written as they are typed in the root of the repository. Those with a cluster are followed in
/// `kubernetes/guide.rs`.
#[test]
fn every_session_in_the_documents_goes_as_it_says() {
    std::env::set_current_dir(root()).unwrap();
    fs::create_dir_all("target").unwrap();
    let sessions = trycmd::TestCases::new();
    sessions.case("README.md");
    for page in markdown_in(&root().join("docs/guide")) {
        if !fs::read_to_string(&page).unwrap().contains("kubectl ") {
            sessions.case(page);
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let path = document.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(path.exists(), "{}: {target}", document.display());
        }
    }
}

#[test]
fn every_example_named_in_a_document_is_there() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let names = text.split(|letter: char| letter.is_whitespace() || "`'\"()[],;".contains(letter));
        for name in names.filter(|name| name.starts_with("examples/") && name.ends_with(".yaml")) {
            assert!(root().join(name).exists(), "{}: {name}", document.display());
        }
    }
}

#[test]
fn every_example_can_be_simulated() {
    let examples = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    for example in examples.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
        let output = Command::new(env!("CARGO_BIN_EXE_metronome"))
            .args(["sim", "run", "-f"])
            .arg(&example)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            example.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
