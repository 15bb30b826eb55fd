//! What the tests need beside Rust: checked, and installed where it is missing. A tool from a Debian package is
//! installed after the list of packages is brought up to date, which on a fresh machine may be empty.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;

use crate::{python, shell};

pub(crate) struct Need {
    pub(crate) tool: &'static str,
    /// The stage of `cargo xtask test` that uses it.
    pub(crate) stage: &'static str,
    /// A command that succeeds where the tool is there.
    check: &'static [&'static str],
    install: &'static [&'static str],
}

pub(crate) const NEEDS: &[Need] = &[
    Need {
        tool: "rustfmt",
        stage: "format",
        check: &["cargo", "fmt", "--version"],
        install: &["rustup", "component", "add", "rustfmt"],
    },
    Need {
        tool: "clippy",
        stage: "lints",
        check: &["cargo", "clippy", "--version"],
        install: &["rustup", "component", "add", "clippy"],
    },
    Need { tool: "python3", stage: "Python SDK", check: python::CHECK, install: python::INSTALL },
    // Reports are tested in a browser.
    Need {
        tool: "chromium",
        stage: "tests",
        check: &["chromium", "--version"],
        install: &["sh", "-c", "apt-get update && apt-get install --yes --no-install-recommends chromium"],
    },
    // The local world makes its links with it.
    Need {
        tool: "iproute2",
        stage: "tests",
        check: &["ip", "-V"],
        install: &["sh", "-c", "apt-get update && apt-get install --yes --no-install-recommends iproute2"],
    },
    // A real training runs in the local world, by Debian's own interpreter.
    Need {
        tool: "python3-torch",
        stage: "tests",
        check: &["/usr/bin/python3", "-c", "import torch, torch.distributed"],
        install: &[
            "sh",
            "-c",
            "apt-get update && apt-get install --yes --no-install-recommends python3-torch",
        ],
    },
];

impl Need {
    /// Whether the tool is there, after an attempt to install it if it was not.
    pub(crate) fn is_met(&self) -> bool {
        shell::succeeds(self.check) || (self.install().is_ok() && shell::succeeds(self.check))
    }

    /// One at a time: the package manager has a lock, and does not wait for it.
    fn install(&self) -> Result<()> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        eprintln!("installing {}: {}", self.tool, self.install.join(" "));
        // Its output would mix with that of the stages beside it; an error shows the end of it.
        shell::run_silently(self.install).inspect_err(|error| eprintln!("{error:#}"))?;
        eprintln!("installed {} in {:.1} s", self.tool, begin.elapsed().as_secs_f64());
        Ok(())
    }
}
