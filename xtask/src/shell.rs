//! Running other programs from the root of the repository.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The root of the repository: cargo says where this package lies.
pub(crate) fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = PathBuf::from(package).parent().map(PathBuf::from);
    root.context("this package lies in the root folder")
}

fn command(line: &[&str]) -> Result<Command> {
    let (program, arguments) = line.split_first().context("a command has a name")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root()?);
    if std::env::var_os("CI").is_some() {
        // Incremental compilation costs a build that is never repeated a part of its time.
        command.env("CARGO_INCREMENTAL", "0");
    }
    Ok(command)
}

/// Runs a program that writes to our own output, in a folder of the repository, with more environment.
pub(crate) fn run_in(folder: &str, line: &[&str], environment: &[(&str, String)]) -> Result<()> {
    let envs = environment.iter().map(|(name, value)| (*name, value.as_str()));
    let status = command(line)?.current_dir(root()?.join(folder)).envs(envs).status();
    let status = status.with_context(|| format!("cannot run `{}`", line[0]))?;
    ensure!(status.success(), "`{}` ended with {status}", line.join(" "));
    Ok(())
}

/// The exit code of a program that writes to our own output.
pub(crate) fn code(line: &[&str]) -> Result<u8> {
    let status = command(line)?.status().with_context(|| format!("cannot run `{}`", line[0]))?;
    let code = status.code().with_context(|| format!("`{}` ended with {status}", line.join(" ")))?;
    Ok(u8::try_from(code)?)
}

pub(crate) fn run(line: &[&str]) -> Result<()> {
    run_in(".", line, &[])
}

/// What a program prints; what it complains about goes to our own standard error.
pub(crate) fn output(line: &[&str]) -> Result<String> {
    let output = command(line)?.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `{}`", line[0]))?;
    ensure!(output.status.success(), "`{}` ended with {}", line.join(" "), output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a program that runs in a folder of the repository succeeds, and what it prints on standard output.
pub(crate) fn status_and_output(
    line: &[&str],
    folder: &str,
    environment: &[(&str, String)],
) -> Result<(bool, String)> {
    let envs = environment.iter().map(|(name, value)| (*name, value.as_str()));
    let output =
        command(line)?.current_dir(root()?.join(folder)).envs(envs).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run `{}`", line[0]))?;
    Ok((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Runs a program whose output is shown only if it fails.
pub(crate) fn run_silently(line: &[&str]) -> Result<()> {
    let output = command(line)?.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run `{}`", line[0]))?;
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{}` ended with {}\n{said}", line.join(" "), output.status);
    Ok(())
}

/// Whether a program runs and is content, quietly.
pub(crate) fn succeeds(line: &[&str]) -> bool {
    let quiet = |mut command: Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    command(line).and_then(|command| Ok(quiet(command)?)).is_ok_and(|status| status.success())
}
