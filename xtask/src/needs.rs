//! What the tests need beside Rust: checked, and installed where it is missing. A tool from a Debian package has
//! `apt-get install --yes PACKAGE` as its installation.

use anyhow::Result;

use crate::shell;

pub(crate) struct Need {
    pub(crate) tool: &'static str,
    /// A command that succeeds where the tool is there.
    check: &'static [&'static str],
    install: &'static [&'static str],
}

pub(crate) const NEEDS: &[Need] = &[
    Need {
        tool: "rustfmt",
        check: &["cargo", "fmt", "--version"],
        install: &["rustup", "component", "add", "rustfmt"],
    },
    Need {
        tool: "clippy",
        check: &["cargo", "clippy", "--version"],
        install: &["rustup", "component", "add", "clippy"],
    },
    Need {
        tool: "chromium",
        check: &["chromium", "--version"],
        install: &["apt-get", "install", "--yes", "chromium"],
    },
];

impl Need {
    /// Whether the tool is there, after an attempt to install it if it was not.
    pub(crate) fn is_met(&self) -> bool {
        shell::succeeds(self.check) || (self.install().is_ok() && shell::succeeds(self.check))
    }

    fn install(&self) -> Result<()> {
        eprintln!("installing {}: {}", self.tool, self.install.join(" "));
        shell::run(self.install)
    }
}
