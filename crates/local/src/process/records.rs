//! The files in the folder of a member.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::Identity;
use crate::error::{LocalError, Result};
use crate::state::{read, write, write_first};

/// What is to be started, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub command: Vec<String>,
    /// Beside what the scheduler has in its own environment.
    pub environment: BTreeMap<String, String>,
    /// The folder in which it runs; that of the scheduler if none is said.
    pub folder: Option<PathBuf>,
    /// The file of the network namespace in which it runs.
    pub namespace: Option<PathBuf>,
    /// The host that it sees itself on; that of the scheduler if none is said.
    #[serde(default)]
    pub host: Option<HostIdentity>,
    /// The files by which it joins its group.
    pub entrances: Vec<PathBuf>,
    /// The newest of what it writes is kept: this many bytes, and at most as many again of what came before.
    pub log_limit: u64,
    /// Tells this start of a member from every other; set when the member is started.
    #[serde(default)]
    pub start_id: String,
}

impl Spec {
    /// A command and nothing else; the log is kept to 4 MiB.
    pub fn of(command: &[&str]) -> Self {
        Self {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            environment: BTreeMap::new(),
            folder: None,
            namespace: None,
            host: None,
            entrances: Vec::new(),
            log_limit: 4 << 20,
            start_id: String::new(),
        }
    }
}

/// A host name, and the hosts that are known by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostIdentity {
    pub name: String,
    /// The text of `/etc/hosts`.
    pub hosts: String,
}

/// How a member ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    pub how: How,
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether it had been asked to leave.
    pub asked: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    Exit(i32),
    Signal(i32),
    /// It never ran; why not, in words.
    NotStarted(String),
}

/// Who may start a member. The first to say so is right, for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Claim {
    Shim(Identity),
    Void,
}

#[derive(Clone, Debug)]
pub(crate) struct Records {
    folder: PathBuf,
}

const ALL: [&str; 12] = [
    "spec.json",
    "claim.json",
    "started.json",
    "asked.json",
    "killed.json",
    "refused.json",
    "ended.json",
    "log",
    "log.1",
    "shim.log",
    "hosts",
    "nsswitch.conf",
];

impl Records {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path("log")
    }

    /// Writes a file that is mounted over one of `/etc`.
    pub(crate) fn write_etc(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|error| LocalError::file(&path, error))?;
        Ok(path)
    }

    /// Removes what a member before had; what others have put into the folder stays.
    pub(crate) fn clear(&self) -> Result<()> {
        for path in ALL.map(|name| self.path(name)) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(LocalError::file(&path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn write_spec(&self, spec: &Spec) -> Result<()> {
        write(&self.path("spec.json"), spec)
    }

    pub(crate) fn read_spec(&self) -> Result<Spec> {
        let spec = read(&self.path("spec.json"))?;
        spec.ok_or_else(|| LocalError::file(&self.path("spec.json"), io::ErrorKind::NotFound.into()))
    }

    /// True if this claim is the first.
    pub(crate) fn claim(&self, claim: &Claim) -> Result<bool> {
        write_first(&self.path("claim.json"), claim)
    }

    pub(crate) fn read_claim(&self) -> Result<Option<Claim>> {
        read(&self.path("claim.json"))
    }

    pub(crate) fn write_started(&self, process: &Identity) -> Result<()> {
        write(&self.path("started.json"), process)
    }

    pub(crate) fn read_started(&self) -> Result<Option<Identity>> {
        read(&self.path("started.json"))
    }

    pub(crate) fn write_asked(&self) -> Result<()> {
        write(&self.path("asked.json"), &true)
    }

    pub(crate) fn was_asked(&self) -> bool {
        self.path("asked.json").exists()
    }

    pub(crate) fn write_killed(&self) -> Result<()> {
        write(&self.path("killed.json"), &true)
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.path("killed.json").exists()
    }

    pub(crate) fn write_refused(&self, why: &str) -> Result<()> {
        write(&self.path("refused.json"), &why)
    }

    pub(crate) fn read_refused(&self) -> Result<Option<String>> {
        read(&self.path("refused.json"))
    }

    /// The shim and the member, as far as they run.
    pub(crate) fn alive(&self) -> Vec<Identity> {
        let shim = match self.read_claim() {
            Ok(Some(Claim::Shim(shim))) => Some(shim),
            _ => None,
        };
        let member = self.read_started().ok().flatten();
        shim.into_iter().chain(member).filter(Identity::is_alive).collect()
    }

    pub(crate) fn write_ended(&self, ended: &Ended) -> Result<()> {
        write(&self.path("ended.json"), ended)
    }

    pub(crate) fn read_ended(&self) -> Result<Option<Ended>> {
        read(&self.path("ended.json"))
    }
}
