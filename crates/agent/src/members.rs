//! Who runs on this node, as the world says it: `members.json` in the agent's folder, written whole and by rename.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use metronome_core::traffic::TrafficDirective;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Roster {
    #[serde(default)]
    pub members: Vec<Member>,
    #[serde(default)]
    pub ports: Vec<Port>,
}

/// A member of a job, on this node.
#[derive(Clone, Debug, Deserialize)]
pub struct Member {
    /// `namespace/name`.
    pub job: String,
    /// `worker-0`.
    pub member: String,
    /// With which its job shows that a report is its own.
    pub token: String,
    /// Where it looks for `turn.json`.
    pub dir: Option<PathBuf>,
    pub counters: Option<Interface>,
    /// The folder of its cgroup that can be frozen: of the freezer of version 1, or of version 2.
    pub freezer: Option<PathBuf>,
    /// Of all members of a job one is held; the others wait for it.
    #[serde(default)]
    pub leads: bool,
    /// What was decided for it on links, as its pod would carry it.
    pub turn: Option<Value>,
    #[serde(default)]
    pub gate: Gate,
    /// The bytes that it sends in each iteration, headers included, where that is known before it is measured.
    #[serde(default)]
    pub sends: Option<u64>,
    /// From which it sends. One that is not of version 4 is not told apart on links.
    pub address: Option<String>,
}

/// Where the bytes are counted that a member sends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Interface {
    pub netns: PathBuf,
    pub interface: String,
    /// The host's end of a pair receives what the member sends, before that queues for a link, and sends what is delivered to
    /// the member, after the queues. In an all-reduce both are as much. What is delivered shows how links are shared.
    #[serde(default)]
    pub direction: Direction,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    #[default]
    Received,
    Sent,
}

/// How a member is held until its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// It looks at `turn.json` between iterations and waits by itself.
    Sdk,
    /// Its cgroup is frozen for as long.
    Freeze,
    #[default]
    None,
}

/// One direction of a link at its sending end, shaped by HTB: root `1:`, class `1:1` with the rate of the link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    pub netns: PathBuf,
    pub device: String,
    pub rate_bps: u64,
    /// The number of the link in its world. Nothing follows from it here; recorders name the link by it.
    #[serde(default)]
    pub link: Option<u32>,
    /// The jobs that cross it.
    #[serde(default)]
    pub crossed_by: Vec<String>,
}

impl Member {
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.address.as_ref()?.parse().ok()
    }

    /// What was decided for it; none if that makes no sense.
    pub fn word(&self) -> Option<TrafficDirective> {
        self.turn.as_ref().and_then(|turn| TrafficDirective::deserialize(turn).ok())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot make sense of {path}")]
    Form { path: PathBuf, source: serde_json::Error },
    #[error("`{name}` in {path} is no name of an interface")]
    Name { path: PathBuf, name: String },
    #[error("{job} {member} is in {path} twice")]
    Twice { path: PathBuf, job: String, member: String },
}

/// The file, which is looked at again and again and read when it is another.
#[derive(Debug)]
pub struct RosterFile {
    path: PathBuf,
    seen: Option<Mark>,
}

/// A file that was written anew has another of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    seconds: i64,
    nanos: i64,
    length: u64,
}

impl RosterFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path, seen: None }
    }

    /// What it says, if it has changed. A file that is gone says that nobody is there.
    pub fn changed(&mut self) -> Result<Option<Roster>, RosterError> {
        let mark = match fs::metadata(&self.path) {
            Ok(found) => Some(Mark {
                inode: found.ino(),
                seconds: found.mtime(),
                nanos: found.mtime_nsec(),
                length: found.len(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(RosterError::Read { path: self.path.clone(), source }),
        };
        if mark == self.seen {
            return Ok(None);
        }
        self.seen = mark;
        match mark {
            Some(_) => read(&self.path).map(Some),
            None => Ok(Some(Roster::default())),
        }
    }
}

fn read(path: &Path) -> Result<Roster, RosterError> {
    let text = fs::read(path).map_err(|source| RosterError::Read { path: path.into(), source })?;
    let roster: Roster =
        serde_json::from_slice(&text).map_err(|source| RosterError::Form { path: path.into(), source })?;
    let interfaces = roster.members.iter().filter_map(|member| member.counters.as_ref());
    let names =
        interfaces.map(|counters| &counters.interface).chain(roster.ports.iter().map(|port| &port.device));
    if let Some(bad) = names.into_iter().find(|name| !is_a_name(name)) {
        return Err(RosterError::Name { path: path.into(), name: bad.clone() });
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = roster.members.iter().find(|member| !seen.insert((&member.job, &member.member))) {
        let (job, member) = (twice.job.clone(), twice.member.clone());
        return Err(RosterError::Twice { path: path.into(), job, member });
    }
    Ok(roster)
}

/// Names go into commands for `tc`.
fn is_a_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-@".contains(&byte);
    (1..=15).contains(&text.len()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roster_is_read_when_it_has_changed_and_is_empty_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("members.json");
        let mut file = RosterFile::new(path.clone());
        assert!(file.changed().unwrap().is_none(), "nothing there, nothing new");
        let text = r#"{"members": [{"job": "default/bert", "member": "worker-0", "token": "t", "dir": "/x",
            "counters": {"netns": "/run/netns/a", "interface": "m3"}, "freezer": null, "leads": true,
            "turn": null, "gate": "sdk", "address": "10.77.0.3"}],
            "ports": [{"netns": "/run/netns/a", "device": "up", "rate_bps": 200000000, "crossed_by": ["default/bert"]}]}"#;
        fs::write(&path, text).unwrap();
        let roster = file.changed().unwrap().unwrap();
        assert_eq!((roster.members[0].gate, roster.members[0].leads), (Gate::Sdk, true));
        assert_eq!(roster.ports[0].crossed_by, ["default/bert"]);
        assert!(file.changed().unwrap().is_none());
        fs::remove_file(&path).unwrap();
        assert!(file.changed().unwrap().unwrap().members.is_empty());
    }

    #[test]
    fn what_would_be_a_command_is_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("members.json");
        for name in ["up\\nqdisc del dev eth0", "a b", "", "sixteen-letters-"] {
            fs::write(
                &path,
                format!(r#"{{"ports": [{{"netns": "/n", "device": "{name}", "rate_bps": 1}}]}}"#),
            )
            .unwrap();
            let refused = RosterFile::new(path.clone()).changed();
            assert!(matches!(refused, Err(RosterError::Name { .. })), "{name}: {refused:?}");
        }
    }
}
