//! One `go build`: whole or not at all, by one process at a time, and nobody wonders what takes so long.

use std::fs::{self, File, TryLockError};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::{Program, Provided, Unavailable};

/// How much of what the compiler said is shown.
const TAIL_LINES: usize = 30;

/// Builds a program into its place, unless another process does so while we wait for it.
pub(super) fn build(program: Program, place: PathBuf) -> Result<Provided, Unavailable> {
    if !go_can_build(program) {
        return Err(Unavailable::NoGo(program));
    }
    let folder = place.parent().expect("a place in the cache lies in a folder");
    let _lock = lock(folder).map_err(|source| Unavailable::File { path: folder.to_owned(), source })?;
    if place.is_file() {
        return Ok(Provided { path: place, built_in: None });
    }
    let begin = Instant::now();
    let progress = Progress::of(program);
    go_build(program, &place)?;
    let took = begin.elapsed();
    progress.done(program, took);
    Ok(Provided { path: place, built_in: Some(took) })
}

/// Asked in the module's folder, where Go also looks whether it is new enough, or can get a version that is.
fn go_can_build(program: Program) -> bool {
    go(program, &["version"]).is_ok()
}

/// Held until the file is closed, also by the end of the process.
fn lock(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let file = File::options().create(true).append(true).open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {
            eprintln!("waiting for another process that builds in {}", folder.display());
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.lock()?;
    Ok(file)
}

/// Downloads a module where it is missing.
pub(super) fn sources(program: Program, module: &str) -> Result<PathBuf, Unavailable> {
    go(program, &["mod", "download", module])?;
    let folder = go(program, &["list", "-m", "-f", "{{.Dir}}", module])?;
    Ok(PathBuf::from(folder.trim()))
}

/// Builds beside the place and renames, so that a file in its place is always whole.
fn go_build(program: Program, place: &Path) -> Result<(), Unavailable> {
    let unfinished = place.with_extension("unfinished");
    let (flags, to) = (program.link_flags(), unfinished.display().to_string());
    let options = ["-trimpath", "-ldflags", &flags, "-tags", program.tags(), "-o", &to];
    go(program, &[&["build"], options.as_slice(), &[program.package()]].concat())?;
    fs::rename(&unfinished, place).map_err(|source| Unavailable::File { path: unfinished, source })
}

/// What Go prints, run in the folder of the module that pins everything.
fn go(program: Program, arguments: &[&str]) -> Result<String, Unavailable> {
    let mut go = Command::new("go");
    go.args(arguments).current_dir(program.module());
    // Whatever the developer prefers elsewhere: nothing but what is pinned.
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly");
    let output = go.output().map_err(|_| Unavailable::NoGo(program))?;
    if !output.status.success() {
        let said = tail(&String::from_utf8_lossy(&output.stderr));
        return Err(Unavailable::Build { program, status: output.status, output: said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// A line that moves on a terminal; elsewhere a line at the beginning and one at the end.
struct Progress {
    spinner: ProgressBar,
}

impl Progress {
    fn of(program: Program) -> Self {
        let message = format!("building {program} with go build {}", program.package());
        if !io::stderr().is_terminal() {
            eprintln!("{message}");
            return Self { spinner: ProgressBar::hidden() };
        }
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("the template is sound");
        let spinner = ProgressBar::new_spinner().with_style(style).with_message(message);
        spinner.enable_steady_tick(Duration::from_millis(200));
        Self { spinner }
    }

    fn done(&self, program: Program, took: Duration) {
        self.spinner.finish_and_clear();
        eprintln!("built {program} in {:.1} s", took.as_secs_f64());
    }
}
