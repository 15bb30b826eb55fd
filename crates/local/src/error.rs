//! What can go wrong on this machine. Messages are fragments that fit after "cannot".

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T, E = LocalError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error("read or write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("write {}: the disk is full", path.display())]
    DiskFull { path: PathBuf },
    #[error("read {}: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("run `{program}`: {source}")]
    Spawn { program: String, source: io::Error },
    #[error("set up {what}: `{program}` says: {said}")]
    Refused { what: String, program: &'static str, said: String },
    #[error("enter the namespace {}: {source}", path.display())]
    Namespace { path: PathBuf, source: nix::Error },
    #[error("use the name `{name}`: {why}")]
    Name { name: String, why: &'static str },
    #[error("use the world `{world}`: another scheduler holds it")]
    Held { world: String },
    #[error("find link {0}: the cluster has none of that number")]
    NoLink(u32),
    #[error("find node {0}: the cluster has none of that number")]
    NoNode(u32),
    #[error("use host `{0}`: it has vanished")]
    Vanished(String),
    #[error("have more than {most} members at a time")]
    TooMany { most: u32 },
    #[error("remove {what}: {why}")]
    Stays { what: String, why: String },
    #[error("signal process {pid}: {source}")]
    Signal { pid: i32, source: nix::Error },
    #[error("do that here: {0}")]
    Missing(String),
}

impl LocalError {
    /// A full disk is told apart: what it makes impossible may be tried again when there is room.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::File { path, source },
        }
    }
}
