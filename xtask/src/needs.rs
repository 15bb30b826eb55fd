//! What the tests need beside Rust: checked, and installed where it is missing. A tool from a Debian package is
//! installed after the list of packages is brought up to date, which on a fresh machine may be empty.

use anyhow::Result;

use crate::{python, shell};

pub(crate) struct Need {
    pub(crate) tool: &'static str,
    /// What is left out without it.
    pub(crate) serves: &'static str,
    /// A command that succeeds where the tool is there.
    check: &'static [&'static str],
    install: &'static [&'static str],
}

pub(crate) const NEEDS: &[Need] = &[
    Need {
        tool: "rustfmt",
        serves: "format",
        check: &["cargo", "fmt", "--version"],
        install: &["rustup", "component", "add", "rustfmt"],
    },
    Need {
        tool: "clippy",
        serves: "lints",
        check: &["cargo", "clippy", "--version"],
        install: &["rustup", "component", "add", "clippy"],
    },
    Need {
        tool: "chromium",
        serves: "tests in a browser",
        check: &["chromium", "--version"],
        install: &["sh", "-c", "apt-get update && apt-get install --yes --no-install-recommends chromium"],
    },
    Need {
        tool: "iproute2",
        serves: "tests on real links",
        check: &["ip", "-V"],
        install: &["sh", "-c", "apt-get update && apt-get install --yes --no-install-recommends iproute2"],
    },
    Need { tool: "python3", serves: "Python SDK", check: python::CHECK, install: python::INSTALL },
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
