//! The report in a real browser: it is drawn, its script runs to the end, and nobody else's does.
//!
//! Needs Chromium, which `cargo xtask test` installs; without it these tests are skipped. The pages
//! and screenshots stay in cargo's folder for tests, to be looked at.

mod sample;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use metronome_sim::report;

const QUIET: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
];

fn there_is_a_browser() -> bool {
    let there =
        Command::new("chromium").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        metronome_skip::skip("there is no chromium; `cargo xtask test` installs it");
    }
    there
}

/// Runs the browser on a page, with a profile of its own, and gives what it prints.
fn browse(page: &str, options: &[String]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser.args(QUIET).arg(format!("--user-data-dir={}", profile.path().display())).args(options).arg(page);
    let output = browser.output().expect("chromium runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Where the page lies; each test has its own.
fn page(name: &str) -> PathBuf {
    let path = folder().join(format!("{name}.html"));
    fs::write(&path, report::html("sample", &sample::outcomes(120))).unwrap();
    path
}

/// The size of the picture in bytes: what is blank takes next to none.
fn photograph(page: &str, name: &str, look: &[&str]) -> u64 {
    let picture = folder().join(format!("{name}.png"));
    let mut options = vec![format!("--screenshot={}", picture.display())];
    options.extend(look.iter().map(|option| (*option).to_owned()));
    browse(page, &options);
    fs::metadata(&picture).unwrap().len()
}

fn address(page: &Path) -> String {
    format!("file://{}", page.display())
}

#[test]
fn the_browser_draws_every_picture_and_runs_only_our_script() {
    if !there_is_a_browser() {
        return;
    }
    let dom = browse(&address(&page("drawn")), &["--dump-dom".to_owned()]);
    assert!(dom.contains("data-ready=\"yes\""), "the script ran to its end");
    assert!(dom.contains("<title>sample – Metronome</title>"), "no job has changed the title");
    assert_eq!(dom.matches("<script").count(), 1);
    assert_eq!(dom.matches("aria-label=\"job timeline\"").count(), 3);
    let in_meetings = 3 * 3 * sample::MET;
    assert_eq!(
        dom.matches("data-job=").count(),
        360 + in_meetings,
        "a ring, a bar and an area in each course"
    );
    for (course, pictures) in [("shared fairly", 2), ("as decided", 1)] {
        assert_eq!(dom.matches(&format!(", {course}\">")).count(), pictures, "{course}");
    }
    assert!(dom.matches("<path").count() > 400, "shapes were understood as shapes");
    assert!(!dom.contains("parsererror") && !dom.contains("NaN"));
}

#[test]
fn the_report_is_not_blank_in_light_or_dark_wide_or_narrow() {
    if !there_is_a_browser() {
        return;
    }
    let page = address(&page("seen"));
    for (name, width, height) in [("wide", 1400, 2600), ("narrow", 500, 3600)] {
        let size = format!("--window-size={width},{height}");
        let blank = photograph("about:blank", "blank", &[&size]);
        let light = photograph(&page, &format!("{name}-light"), &[&size]);
        let dark = photograph(&page, &format!("{name}-dark"), &[&size, DARK]);
        assert!(light > 5 * blank && dark > 5 * blank, "{name}: {light} and {dark} against {blank} bytes");
    }
}

/// As if the user had chosen dark colours everywhere.
const DARK: &str = "--blink-settings=preferredColorScheme=0";
