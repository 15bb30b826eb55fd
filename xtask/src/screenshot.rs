//! `cargo xtask screenshot`: the demo's report as a real browser shows it, for the documents.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::needs::NEEDS;
use crate::shell;

const PICTURE: &str = "docs/images/demo.png";
const REPORT: &str = "target/screenshot/demo.html";
const PROFILE: &str = "target/screenshot/profile";

pub(crate) fn run() -> Result<()> {
    let browser = NEEDS.iter().find(|need| need.tool == "chromium").context("chromium is a known need")?;
    ensure!(browser.is_met(), "chromium is missing and could not be installed");
    let root = shell::root()?;
    fs::create_dir_all(root.join("docs/images"))?;
    fs::create_dir_all(root.join("target/screenshot"))?;
    let demo = ["cargo", "run", "--quiet", "--release", "--package", "metronome-cli", "--", "demo"];
    shell::run(&[&demo[..], &["--report", REPORT]].concat())?;
    let profile = root.join(PROFILE);
    photograph(&root.join(REPORT).display().to_string(), &profile.display().to_string())?;
    Ok(fs::remove_dir_all(profile)?)
}

fn photograph(report: &str, profile: &str) -> Result<()> {
    let (page, profile) = (format!("file://{report}"), format!("--user-data-dir={profile}"));
    let picture = format!("--screenshot={PICTURE}");
    shell::run(&[
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--window-size=1400,1500",
        &profile,
        &picture,
        &page,
    ])
}
