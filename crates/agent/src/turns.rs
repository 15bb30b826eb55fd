//! Turns, told to members that wait by themselves: `turn.json` in the folder of each.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::members::{Gate, Roster};

const FILE: &str = "turn.json";
const BEING_WRITTEN: &str = ".turn.json.new";

/// What members were told, by their folder.
#[derive(Debug, Default)]
pub struct Turns {
    told: BTreeMap<PathBuf, Option<Value>>,
    /// Files that could not be written; nothing more is done about them until the roster changes.
    pub failed: u64,
}

impl Turns {
    /// Tells everybody its turn, and takes back what is no longer meant.
    pub fn follow(&mut self, roster: &Roster) {
        let mut wanted: BTreeMap<PathBuf, Option<Value>> = BTreeMap::new();
        for member in &roster.members {
            if let Some(dir) = &member.dir {
                wanted.insert(dir.clone(), member.turn.clone().filter(|_| member.gate == Gate::Sdk));
            }
        }
        let gone = self.told.keys().filter(|dir| !wanted.contains_key(*dir)).cloned().collect::<Vec<_>>();
        for dir in gone {
            self.tell(&dir, None);
            self.told.remove(&dir);
        }
        for (dir, turn) in wanted {
            if self.told.get(&dir) != Some(&turn) {
                self.tell(&dir, turn.as_ref());
                self.told.insert(dir, turn);
            }
        }
    }

    /// Takes everything back.
    pub fn clear(&mut self) {
        self.follow(&Roster::default());
    }

    fn tell(&mut self, dir: &Path, turn: Option<&Value>) {
        if write(dir, turn).is_err() {
            self.failed += 1;
        }
    }
}

/// Whole and by rename: whoever reads it never sees half of it. A member whose folder is gone needs no turn.
fn write(dir: &Path, turn: Option<&Value>) -> io::Result<()> {
    let file = dir.join(FILE);
    let done = match turn {
        Some(turn) => {
            let new = dir.join(BEING_WRITTEN);
            fs::write(&new, turn.to_string()).and_then(|()| fs::rename(&new, &file))
        }
        None => fs::remove_file(&file),
    };
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn roster(dir: &Path, turn: Option<&Value>, gate: &str) -> Roster {
        let member =
            json!({"job": "a/b", "member": "worker-0", "token": "t", "dir": dir, "turn": turn, "gate": gate});
        serde_json::from_value(json!({"members": [member]})).unwrap()
    }

    #[test]
    fn a_turn_is_written_where_the_member_looks_and_taken_back_when_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        let turn = json!({"generation": 4});
        let mut turns = Turns::default();
        turns.follow(&roster(folder.path(), Some(&turn), "sdk"));
        let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(written, turn);
        turns.follow(&roster(folder.path(), Some(&turn), "freeze"));
        assert!(!file.exists(), "whoever is frozen does not wait besides");
        turns.follow(&roster(folder.path(), Some(&turn), "sdk"));
        turns.clear();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_an_earlier_agent_left_is_removed_and_a_folder_that_is_gone_is_no_matter() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "{}").unwrap();
        let mut turns = Turns::default();
        turns.follow(&roster(folder.path(), None, "sdk"));
        assert!(!folder.path().join(FILE).exists());
        turns.follow(&roster(&folder.path().join("gone"), Some(&json!({})), "sdk"));
        assert_eq!(turns.failed, 0);
    }
}
