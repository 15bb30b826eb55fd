//! Programs taken out of Debian packages, which are downloaded and unpacked but not installed: nothing is started, and
//! no rights are needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::build::{at, run};
use crate::{Program, Unavailable};

/// Everything that determines the program: the package, in the version of this machine's Debian release.
pub(crate) fn inputs(package: &str) -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    format!("{package}\n{release}")
}

pub(crate) fn can_extract() -> bool {
    let runs = |tool: &str| {
        let mut command = Command::new(tool);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    runs("apt-get") && runs("dpkg-deb")
}

/// Puts the program of a package into a folder.
pub(crate) fn extract(program: Program, package: &str, folder: &Path) -> Result<(), Unavailable> {
    let archive = folder.join("package");
    let download = |what: &str| {
        let mut apt = Command::new("apt-get");
        run(apt.args(["--quiet", "download", package]).current_dir(folder), "apt-get", what)
    };
    let what = program.to_string();
    fs::create_dir_all(folder).map_err(at(folder))?;
    if download(&what).is_err() {
        // The lists of a fresh machine are empty.
        run(Command::new("apt-get").args(["--quiet", "update"]), "apt-get", &what)?;
        download(&what)?;
    }
    let unpack = "dpkg-deb --extract ./*.deb package && mv package/usr/bin/\"$0\" .";
    let mut shell = Command::new("sh");
    run(shell.args(["-c", unpack, program.command()]).current_dir(folder), "dpkg-deb", &what)?;
    fs::remove_dir_all(&archive).map_err(at(&archive))
}
