//! The generated pages are what the program would write today. Checked here and not by `cargo xtask codegen --check`
//! alone, because here the program is built anyway.

use std::fs;
use std::process::Command;

#[test]
fn the_generated_pages_are_up_to_date() {
    let pages = [
        ("cli", "docs/reference/cli.md"),
        ("policies", "docs/reference/policies.md"),
        ("queue", "deploy/crds/queue.yaml"),
    ];
    for (page, path) in pages {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        let printed =
            Command::new(env!("CARGO_BIN_EXE_metronome")).args(["reference", page]).output().unwrap();
        let (committed, printed) = (fs::read(&path).unwrap(), printed.stdout);
        assert!(committed == printed, "{path} is out of date: run `cargo xtask codegen`");
    }
}
