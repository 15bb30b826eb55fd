//! Work that is saved, and taken up again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What there is to save of a training that only counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    pub iterations: u64,
    pub loss: f64,
    pub members: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("cannot read the checkpoint `{}`", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("the checkpoint `{}` is damaged", .file.display())]
    Damaged { file: PathBuf, source: serde_json::Error },
}

const FILE: &str = "checkpoint.json";

impl Checkpoint {
    /// The last one; the beginning, if there is none.
    pub fn load(folder: Option<&Path>) -> Result<Self, CheckpointError> {
        let Some(folder) = folder else { return Ok(Self::default()) };
        let file = folder.join(FILE);
        match fs::read(&file) {
            Ok(text) => {
                serde_json::from_slice(&text).map_err(|source| CheckpointError::Damaged { file, source })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(CheckpointError::Read { file, source }),
        }
    }

    /// Either all of it is there afterwards, also if the power fails, or the one before is.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let (new, file) = (folder.join(".new"), folder.join(FILE));
        let text = serde_json::to_vec(self).expect("a checkpoint is plain data, which always serialises");
        let written = File::create(&new).and_then(|mut open| {
            open.write_all(&text)?;
            open.sync_all()
        });
        if let Err(error) = written {
            // A disk that is full has room again for who writes less.
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        fs::rename(&new, &file)?;
        File::open(folder)?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_found_again_and_a_failed_save_keeps_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Checkpoint::load(Some(folder.path())).unwrap(), Checkpoint::default());
        let saved = Checkpoint { iterations: 7, loss: 0.25, members: 4 };
        saved.save(folder.path()).unwrap();
        // A folder in the place of the file that is written: nothing can be.
        fs::create_dir(folder.path().join(".new")).unwrap();
        assert!(Checkpoint { iterations: 9, ..saved }.save(folder.path()).is_err());
        assert_eq!(Checkpoint::load(Some(folder.path())).unwrap(), saved);
    }

    #[test]
    fn a_damaged_checkpoint_is_not_the_beginning() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(matches!(Checkpoint::load(Some(folder.path())), Err(CheckpointError::Damaged { .. })));
    }
}
