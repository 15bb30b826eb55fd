//! What is written where, against folders that look like the kernel's. The real ones are in `tests/substrate`.

use std::fs;
use std::path::Path;

use metronome_core::model::units::{Cpu, Memory};

use super::*;

fn world() -> WorldName {
    WorldName::new("w").unwrap()
}

/// A machine with version 2 only.
fn unified(root: &Path, controllers: &str) -> Hierarchies {
    fs::write(root.join("cgroup.procs"), "").unwrap();
    fs::write(root.join("cgroup.controllers"), controllers).unwrap();
    Hierarchies::read(&format!("cgroup2 {} cgroup2 rw,nosuid 0 0\n", root.display()))
}

fn text(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn in_version_two_one_group_limits_everything() {
    let root = tempfile::tempdir().unwrap();
    let groups = Groups::of(unified(root.path(), "cpuset cpu io memory pids"), &world());
    let group = groups.make(MemberNumber(3)).unwrap();
    let folder = root.path().join("metronome/w/m3");
    assert_eq!(group.entrances(), [folder.join("cgroup.procs")]);
    assert_eq!(group.freezer(), Some(folder.as_path()));
    for above in [root.path().to_owned(), root.path().join("metronome"), root.path().join("metronome/w")] {
        assert_eq!(text(above.join("cgroup.subtree_control")), "+cpu +memory");
    }
    group.set_cpus(Cpu(1500)).unwrap();
    group.set_cpu_weight(300).unwrap();
    group.set_memory(Memory(1 << 30)).unwrap();
    group.freeze().unwrap();
    assert_eq!(text(folder.join("cpu.max")), "30000 20000");
    assert_eq!(text(folder.join("cpu.weight")), "300");
    assert_eq!(text(folder.join("memory.max")), "1073741824");
    assert_eq!(text(folder.join("cgroup.freeze")), "1");
    group.thaw().unwrap();
    assert_eq!(text(folder.join("cgroup.freeze")), "0");
    group.set_cpus(Cpu(1)).unwrap();
    assert_eq!(text(folder.join("cpu.max")), "1000 20000");
    assert_eq!(groups.members(), [MemberNumber(3)]);
}

#[test]
fn in_version_one_each_controller_has_its_own() {
    let root = tempfile::tempdir().unwrap();
    let mut mounts = String::new();
    for controller in ["cpu,cpuacct", "memory", "freezer"] {
        let path = root.path().join(controller);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("cgroup.procs"), "").unwrap();
        mounts += &format!("cgroup {} cgroup rw,{controller} 0 0\n", path.display());
    }
    let groups = Groups::of(Hierarchies::read(&mounts), &world());
    let group = groups.make(MemberNumber(0)).unwrap();
    assert_eq!(group.entrances().len(), 3);
    group.set_cpus(Cpu(250)).unwrap();
    group.set_cpu_weight(100).unwrap();
    group.set_memory(Memory(4096)).unwrap();
    group.freeze().unwrap();
    let cpu = root.path().join("cpu,cpuacct/metronome/w/m0");
    assert_eq!(text(cpu.join("cpu.cfs_period_us")), "20000");
    assert_eq!(text(cpu.join("cpu.cfs_quota_us")), "5000");
    assert_eq!(text(cpu.join("cpu.shares")), "1024");
    assert_eq!(text(root.path().join("memory/metronome/w/m0/memory.limit_in_bytes")), "4096");
    assert_eq!(text(root.path().join("freezer/metronome/w/m0/freezer.state")), "FROZEN");
}

#[test]
fn beside_version_one_the_second_does_what_is_left() {
    let root = tempfile::tempdir().unwrap();
    let (cpu, two) = (root.path().join("cpu"), root.path().join("unified"));
    for path in [&cpu, &two] {
        fs::create_dir(path).unwrap();
        fs::write(path.join("cgroup.procs"), "").unwrap();
    }
    fs::write(two.join("cgroup.controllers"), "").unwrap();
    let mounts = format!("c {} cgroup rw,cpu 0 0\nc {} cgroup2 rw 0 0\n", cpu.display(), two.display());
    let found = Hierarchies::read(&mounts);
    assert_eq!(found.cpu().map(|mounted| mounted.version), Some(Version::One));
    assert_eq!(found.freezer().map(|mounted| mounted.version), Some(Version::Two));
    assert_eq!(found.memory(), None);
    let group = Groups::of(found, &world()).make(MemberNumber(0)).unwrap();
    // What cannot be limited is not.
    group.set_memory(Memory(1)).unwrap();
    group.freeze().unwrap();
    assert_eq!(text(two.join("metronome/w/m0/cgroup.freeze")), "1");
    assert!(!two.join("cgroup.subtree_control").exists());
}

#[test]
fn what_may_not_be_written_is_as_if_it_were_not_there() {
    assert_eq!(Hierarchies::read("cgroup2 /nowhere/at/all cgroup2 rw 0 0\n"), Hierarchies::none());
    assert_eq!(Hierarchies::read("proc /proc proc rw 0 0\ngarbage\n"), Hierarchies::none());
    let groups = Groups::of(Hierarchies::none(), &world());
    let group = groups.make(MemberNumber(0)).unwrap();
    group.set_cpus(Cpu(1)).unwrap();
    group.remove().unwrap();
    assert_eq!(group.processes(), []);
    assert!(!groups.exist());
}
