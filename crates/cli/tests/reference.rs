//! The generated pages are what the program would write today. Checked here and not by `cargo xtask codegen --check`
//! alone, because here the program is built anyway.

use std::fs;
use std::process::Command;

use metronome_kubernetes::manifests::FILES;

#[test]
fn the_generated_pages_are_up_to_date() {
    let pages = [
        ("cli", "docs/reference/cli.md"),
        ("policies", "docs/reference/policies.md"),
        ("tuning", "docs/reference/tuning.md"),
        ("queue", "deploy/crds/queue.yaml"),
        ("fabric", "deploy/crds/fabric.yaml"),
        ("training-job", "deploy/crds/trainingjob.yaml"),
        ("rights", "docs/reference/rbac.md"),
    ];
    for (page, path) in pages {
        is_what_is_printed(&[page], path);
    }
}

#[test]
fn the_chart_is_up_to_date() {
    for file in FILES {
        is_what_is_printed(&["chart", file], &format!("deploy/chart/metronome/{file}"));
    }
}

fn is_what_is_printed(page: &[&str], path: &str) {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let printed = Command::new(env!("CARGO_BIN_EXE_metronome")).arg("reference").args(page).output().unwrap();
    let (committed, printed) = (fs::read(&path).unwrap_or_default(), printed.stdout);
    assert!(committed == printed, "{path} is out of date: run `cargo xtask codegen`");
}
