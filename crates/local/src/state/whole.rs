//! Documents that are there whole or not at all, also after the machine has lost its power.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{LocalError, Result};

/// Writes beside the file, then takes the file's place.
pub fn write(path: &Path, document: &impl Serialize) -> Result<()> {
    let beside = beside(path);
    let written = text(path, document)?;
    let placed = put(&beside, &written).and_then(|()| fs::rename(&beside, path)).and_then(|()| settle(path));
    placed.map_err(|error| {
        // Half a file takes room that a full disk does not have.
        let _ = fs::remove_file(&beside);
        LocalError::file(path, error)
    })
}

/// Writes a file that must not be there yet; false if it is.
pub(crate) fn write_first(path: &Path, document: &impl Serialize) -> Result<bool> {
    let beside = beside(path);
    let written = text(path, document)?;
    let linked = put(&beside, &written).and_then(|()| fs::hard_link(&beside, path));
    let _ = fs::remove_file(&beside);
    match linked {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(LocalError::file(path, error)),
    }
}

/// Reads a document; nothing where there is none.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LocalError::file(path, error)),
    };
    let document = serde_json::from_slice(&text);
    document.map(Some).map_err(|source| LocalError::Json { path: path.to_owned(), source })
}

fn text(path: &Path, document: &impl Serialize) -> Result<Vec<u8>> {
    let text = serde_json::to_vec(document);
    text.map_err(|source| LocalError::Json { path: path.to_owned(), source })
}

/// One name for each process: two that write the same file do not write into each other's.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}

/// Whether a file of this name is one that a process was writing when it ended.
pub(crate) fn is_unfinished(name: &str) -> bool {
    let number = name.strip_prefix('.').and_then(|name| name.rsplit_once('.'));
    number.is_some_and(|(_, pid)| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}

/// A name is safe on disk once its folder is.
fn settle(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_first_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("claim");
        assert!(write_first(&path, &1).unwrap());
        assert!(!write_first(&path, &2).unwrap());
        assert_eq!(read::<u32>(&path).unwrap(), Some(1));
        write(&path, &3).unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), Some(3));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn half_a_document_is_an_error_and_none_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), None);
        fs::write(&path, "[1,").unwrap();
        assert!(matches!(read::<Vec<u32>>(&path), Err(LocalError::Json { .. })));
    }

    #[test]
    fn a_full_disk_is_told_apart() {
        let error = LocalError::file(Path::new("x"), io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(error.to_string(), "write x: the disk is full");
    }
}
