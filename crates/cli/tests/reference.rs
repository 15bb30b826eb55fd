//! The generated pages are what the program would write today. Checked here and not by `cargo xtask codegen --check`
//! alone, because here the program is built anyway.

use std::fs;
use std::process::Command;

#[test]
fn the_generated_pages_are_up_to_date() {
    for page in ["cli", "policies"] {
        let path = format!("{}/../../docs/reference/{page}.md", env!("CARGO_MANIFEST_DIR"));
        let printed =
            Command::new(env!("CARGO_BIN_EXE_metronome")).args(["reference", page]).output().unwrap();
        let (committed, printed) = (fs::read(&path).unwrap(), printed.stdout);
        assert!(committed == printed, "{path} is out of date: run `cargo xtask codegen`");
    }
}
