//! The host that a member sees: a name of its own, `/etc/hosts` with its gang, and its own interfaces in `/sys`.
//!
//! Libraries find the address to listen at by their host's name, and list interfaces in `/sys/class/net`. A network
//! namespace changes neither, so that every member would find `127.0.0.1` and the interfaces of this machine. The
//! member has a UTS namespace and a mount namespace of its own; what is mounted in it is gone with its last process.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::sethostname;

use crate::process::{HostIdentity, Records};

const NONE: Option<&str> = None;

/// Call it inside the member's network namespace: a mount of `/sys` shows the namespace in which it was made.
pub(super) fn assume(records: &Records, host: &HostIdentity) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)
        .map_err(|error| format!("cannot have a host name of its own: {error}"))?;
    sethostname(&host.name).map_err(|error| format!("cannot take the host name {}: {error}", host.name))?;
    // Mounts made outside later are seen here, and none of ours is seen outside.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE)
        .map_err(|error| format!("cannot keep mounts to itself: {error}"))?;
    cover(records, Path::new("/etc/hosts"), &host.hosts)?;
    if let Ok(sources) = fs::read_to_string("/etc/nsswitch.conf") {
        cover(records, Path::new("/etc/nsswitch.conf"), &hosts_by_files(&sources))?;
    }
    hide_cache();
    show_own_interfaces();
    Ok(())
}

/// Mounts a text over a file of `/etc`. A machine without the file has nothing to mount over: the member then knows the
/// others by their addresses alone, and its log says so.
fn cover(records: &Records, path: &Path, text: &str) -> Result<(), String> {
    if !path.exists() {
        eprintln!(
            "metronome shim: this machine has no {}: host names of members are unknown",
            path.display()
        );
        return Ok(());
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let file = records.write_etc(name, text).map_err(|error| format!("cannot {error}"))?;
    mount(Some(&file), path, NONE, MsFlags::MS_BIND, NONE)
        .map_err(|error| format!("cannot mount {} over {}: {error}", file.display(), path.display()))
}

/// Hosts are looked up in `/etc/hosts` first: some systems ask a resolver outside, which does not know members.
fn hosts_by_files(sources: &str) -> String {
    let others = sources.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns"]).map(|line| format!("{line}\n")).collect()
}

/// A cache daemon answers by the files of this machine, before the member's own are read.
fn hide_cache() {
    let folder = "/var/run/nscd";
    if Path::new(folder).is_dir() {
        let _ = mount(Some("none"), folder, Some("tmpfs"), MsFlags::empty(), Some("size=4k,mode=755"));
    }
}

/// Mounts `/sys` anew for this network namespace, with what is mounted below the old one, such as control groups.
/// Members run without it too: containers may forbid it.
fn show_own_interfaces() {
    let below = mounted_below_sys(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
    // Held by descriptors: their paths lead to the new `/sys` in a moment.
    let held = below.into_iter().filter_map(|path| {
        let descriptor = open(&path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        Some((descriptor, path))
    });
    let held: Vec<_> = held.collect();
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    if mount(Some("sysfs"), "/sys", Some("sysfs"), flags, NONE).is_err() {
        return;
    }
    for (descriptor, path) in &held {
        let old = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        let _ = mount(Some(&old), path, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE);
    }
}

/// The topmost mounts below `/sys`, by the text of `mountinfo`.
fn mounted_below_sys(mounts: &str) -> Vec<PathBuf> {
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let mut below: Vec<PathBuf> = points
        .map(PathBuf::from)
        .filter(|path| path.starts_with("/sys") && path != Path::new("/sys"))
        .collect();
    below.sort_unstable();
    below.dedup_by(|later, earlier| later.starts_with(earlier));
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_source_of_hosts_changes() {
        let sources = "passwd: files systemd\n# hosts: a comment\nhosts: resolve [!UNAVAIL=return] files\n";
        assert_eq!(hosts_by_files(sources), "passwd: files systemd\n# hosts: a comment\nhosts: files dns\n");
    }

    #[test]
    fn mounts_below_mounts_are_not_named_twice() {
        let mounts = "23 27 0:22 / /sys rw - sysfs sysfs rw
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
33 23 0:30 / /sys/fs/bpf rw - bpf bpf rw
34 27 0:31 / /system rw - tmpfs tmpfs rw
";
        let below: Vec<PathBuf> = ["/sys/fs/bpf", "/sys/fs/cgroup"].map(PathBuf::from).into();
        assert_eq!(mounted_below_sys(mounts), below);
    }
}
