//! One build: whole or not at all, by one process at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use crate::program::Source;
use crate::{Built, Program, Unavailable, cache, debian, go};

/// How many lines of a tool's output an error shows.
const TAIL_LINES: usize = 30;

/// Builds programs of one source into the cache, unless another process has done so while this one waited for it.
pub(crate) fn build(programs: &[Program]) -> Result<Option<Built>, Unavailable> {
    let first = programs[0];
    let source = first.source();
    source.is_possible(first)?;
    let folder = cache::folder(first)?;
    let _lock = lock(&folder).map_err(at(&folder))?;
    let missing = |program: &Program| !folder.join(program.command()).is_file();
    let programs: Vec<Program> = programs.iter().copied().filter(missing).collect();
    if programs.is_empty() {
        return Ok(None);
    }
    let (begin, names) = (Instant::now(), names(&programs));
    eprintln!("building {names}: {source}");
    let unfinished = folder.join("unfinished");
    match source {
        Source::Go(_) => go::build(&programs, &unfinished)?,
        Source::Debian(package) => debian::extract(first, package, &unfinished)?,
    }
    for program in &programs {
        let (from, to) = (unfinished.join(program.built_as()), folder.join(program.command()));
        fs::rename(&from, to).map_err(at(&from))?;
    }
    fs::remove_dir_all(&unfinished).map_err(at(&unfinished))?;
    let took = begin.elapsed();
    eprintln!("built {names} in {:.1} s", took.as_secs_f64());
    Ok(Some(Built { programs, took }))
}

impl Source {
    fn is_possible(self, program: Program) -> Result<(), Unavailable> {
        match self {
            Self::Go(_) if !go::can_build(program) => Err(Unavailable::NoGo(program)),
            Self::Debian(_) if !debian::can_extract() => Err(Unavailable::NoDebian(program)),
            _ => Ok(()),
        }
    }
}

fn names(programs: &[Program]) -> String {
    programs.iter().map(Program::to_string).collect::<Vec<_>>().join(", ")
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Unavailable {
    let path = path.to_owned();
    |source| Unavailable::File { path, source }
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

/// The output of a tool, or an error with the end of what it said.
pub(crate) fn run(command: &mut Command, tool: &'static str, what: &str) -> Result<Output, Unavailable> {
    let output = command.output().map_err(at(&PathBuf::from(tool)))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = tail(&String::from_utf8_lossy(&output.stderr));
    Err(Unavailable::Build { what: what.to_owned(), tool, status: output.status, output: said })
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}
