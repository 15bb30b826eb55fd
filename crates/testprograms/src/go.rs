//! Programs built by `go build` from a module that pins everything, and the sources of such modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::amended::{LEFT_OUT, write_module};
use crate::build::{at, run};
use crate::cache::read;
use crate::program::Source;
use crate::{Program, Unavailable};

/// For every package: no debug information, which the linker would drop again.
const COMPILE_FLAGS: &str = "-gcflags=all=-dwarf=false";

/// Asked in the module's folder, where Go also looks whether it is new enough, or can get a version that is.
pub(crate) fn can_build(program: Program) -> bool {
    go(program, &["version"]).is_ok()
}

/// Everything that determines the programs of a module: pinned versions and build flags.
pub(crate) fn inputs(program: Program) -> Result<String, Unavailable> {
    let module = program.module();
    let pinned = read(&module.join("go.mod"))? + &read(&module.join("go.sum"))?;
    Ok([&pinned, COMPILE_FLAGS, &program.link_flags(), LEFT_OUT].join("\n"))
}

/// Builds programs of one module into a folder, by one command.
pub(crate) fn build(programs: &[Program], folder: &Path) -> Result<(), Unavailable> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let first = programs[0];
    let link = format!("-ldflags={}", first.link_flags());
    // The slash makes it a folder also for a single program.
    let to = format!("{}/", folder.display());
    let packages: Vec<&str> = programs.iter().map(|program| program.package()).collect();
    let module = format!("-modfile={}", write_module(programs, folder)?.display());
    let options = ["build", "-trimpath", COMPILE_FLAGS, &link, &module, "-o", &to];
    // Go gives way to the Rust compiler beside it, which takes longer.
    let mut nice = Command::new("nice");
    nice.args(["-n", "10", "go"]);
    say(nice, first, &[&options, packages.as_slice()].concat())?;
    Ok(())
}

/// Downloads a module where it is missing.
pub(crate) fn sources(program: Program, module: &str) -> Result<PathBuf, Unavailable> {
    go(program, &["mod", "download", module])?;
    let folder = go(program, &["list", "-m", "-f", "{{.Dir}}", module])?;
    Ok(PathBuf::from(folder.trim()))
}

/// What Go prints.
fn go(program: Program, arguments: &[&str]) -> Result<String, Unavailable> {
    say(Command::new("go"), program, arguments)
}

/// The same by a command that runs Go, in the folder of the module.
fn say(mut go: Command, program: Program, arguments: &[&str]) -> Result<String, Unavailable> {
    go.args(arguments).current_dir(program.module());
    // The developer's own Go settings do not count: the build uses pinned versions alone.
    go.env("CGO_ENABLED", "0").env("GOFLAGS", "-mod=readonly");
    let what = match program.source() {
        Source::Go(module) => format!("the Go module {module}"),
        Source::Debian(_) => program.to_string(),
    };
    let output = run(&mut go, "go", &what).map_err(|error| match error {
        Unavailable::File { .. } => Unavailable::NoGo(program),
        other => other,
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
