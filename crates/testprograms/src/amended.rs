//! A Go module of ours in which one module of others lacks a file.
//!
//! Kubeflow's Trainer describes its API for documents in a file that names a type which Kubernetes 1.37 no longer has. The
//! controller does not use it. Without the file the controller compiles with the same packages as everything else.

use std::fs;
use std::path::{Path, PathBuf};

use crate::build::at;
use crate::cache::read;
use crate::{Program, Unavailable, go};

/// The program whose module lacks a file.
const PROGRAM: Program = Program::Trainer;
/// The folders of the module that are compiled.
const PARTS: [&str; 2] = ["cmd", "pkg"];
/// The file of the module that is not compiled.
pub(crate) const LEFT_OUT: &str = "pkg/apis/trainer/v1alpha1/zz_generated.openapi.go";

/// Writes a `go.mod` into a folder for a build of these programs, and its `go.sum` beside it.
pub(crate) fn write_module(programs: &[Program], folder: &Path) -> Result<PathBuf, Unavailable> {
    let module = programs[0].module();
    let mut go_mod = read(&module.join("go.mod"))?;
    if programs.contains(&PROGRAM) {
        let copy = folder.join("amended");
        copy_module(&go::sources(PROGRAM, PROGRAM.source_module())?, &copy).map_err(at(&copy))?;
        go_mod += &format!("\nreplace {} => {}\n", PROGRAM.source_module(), copy.display());
    }
    let path = folder.join("go.mod");
    fs::write(&path, go_mod).map_err(at(&path))?;
    let sums = folder.join("go.sum");
    fs::copy(module.join("go.sum"), &sums).map_err(at(&sums))?;
    Ok(path)
}

fn copy_module(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    fs::copy(from.join("go.mod"), to.join("go.mod"))?;
    PARTS.iter().try_for_each(|part| copy_folder(&from.join(part), &to.join(part), &from.join(LEFT_OUT)))
}

fn copy_folder(from: &Path, to: &Path, left_out: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, to) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if path.is_dir() {
            copy_folder(&path, &to, left_out)?;
        } else if path != left_out {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_but_the_file_that_is_left_out() {
        let folder = std::env::temp_dir().join(format!("metronome-amended-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        for file in ["go.mod", "cmd/main.go", LEFT_OUT, "docs/page.md"] {
            fs::create_dir_all(from.join(file).parent().unwrap()).unwrap();
            fs::write(from.join(file), file).unwrap();
        }
        copy_module(&from, &to).unwrap();
        let copied = ["go.mod", "cmd/main.go", LEFT_OUT, "docs/page.md"].map(|file| to.join(file).is_file());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(copied, [true, true, false, false]);
    }
}
