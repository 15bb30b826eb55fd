//! Where this machine has its control groups.

use std::fs;
use std::path::PathBuf;

use super::super::rights::may_write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// One hierarchy of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    pub version: Version,
    pub path: PathBuf,
    /// What it is to pass on to groups below; version 2 only.
    pub controllers: Vec<&'static str>,
}

/// The hierarchy for each thing that is limited; none where the machine has none, or we may not write to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    cpu: Option<Mounted>,
    memory: Option<Mounted>,
    freezer: Option<Mounted>,
}

impl Hierarchies {
    /// Looks at this machine.
    pub fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        Self::read(&mounts)
    }

    /// For who may not make groups, or wants none.
    pub fn none() -> Self {
        Self::default()
    }

    /// From the lines of `/proc/self/mounts`. What is limited by version 1 cannot be limited by version 2.
    pub fn read(mounts: &str) -> Self {
        let all: Vec<(&str, PathBuf, &str)> = mounts.lines().filter_map(line).collect();
        let two = all.iter().find(|(kind, ..)| *kind == "cgroup2").map(|(_, path, _)| path.clone());
        let two = two.filter(|path| may_write(&path.join("cgroup.procs")));
        let offered = two.as_ref().map(|path| fs::read_to_string(path.join("cgroup.controllers")));
        let offered = offered.and_then(Result::ok).unwrap_or_default();
        let offered: Vec<&str> = offered.split_whitespace().collect();
        let controllers: Vec<&'static str> =
            ["cpu", "memory"].into_iter().filter(|name| offered.contains(name)).collect();
        let unified =
            two.map(|path| Mounted { version: Version::Two, path, controllers: controllers.clone() });
        let one = |controller: &str| {
            let found = all.iter().find(|(kind, _, options)| {
                *kind == "cgroup" && options.split(',').any(|option| option == controller)
            });
            let path = found.map(|(_, path, _)| path.clone())?;
            let mounted = Mounted { version: Version::One, path, controllers: Vec::new() };
            may_write(&mounted.path.join("cgroup.procs")).then_some(mounted)
        };
        let either = |controller: &'static str| {
            one(controller).or_else(|| unified.clone().filter(|_| controllers.contains(&controller)))
        };
        Self { cpu: either("cpu"), memory: either("memory"), freezer: one("freezer").or(unified.clone()) }
    }

    pub fn cpu(&self) -> Option<&Mounted> {
        self.cpu.as_ref()
    }

    pub fn memory(&self) -> Option<&Mounted> {
        self.memory.as_ref()
    }

    pub fn freezer(&self) -> Option<&Mounted> {
        self.freezer.as_ref()
    }

    /// Each hierarchy once.
    pub(super) fn distinct(&self) -> Vec<&Mounted> {
        let mut distinct: Vec<&Mounted> = Vec::new();
        for mounted in [&self.cpu, &self.memory, &self.freezer].into_iter().flatten() {
            if !distinct.contains(&mounted) {
                distinct.push(mounted);
            }
        }
        distinct
    }
}

/// The kind, the folder and the options of one line.
fn line(line: &str) -> Option<(&str, PathBuf, &str)> {
    let mut words = line.split(' ');
    let (_, path, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
    kind.starts_with("cgroup").then(|| (kind, PathBuf::from(path.replace("\\040", " ")), options))
}
