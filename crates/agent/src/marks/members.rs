//! The processes of a member, and their sockets.

use std::cell::OnceCell;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Cgroups of containers lie in those of their pods; what lies deeper is a matter of a container.
const DEPTH: u32 = 4;

/// Of one member.
const MOST_PROCESSES: usize = 256;

pub(super) struct Process {
    id: i32,
    /// Only who has something new is opened.
    handle: OnceCell<Option<OwnedFd>>,
}

/// Those in a cgroup and in the ones within it. A cgroup that is gone has none.
pub(super) fn processes(folder: &Path) -> Vec<Process> {
    let mut ids = Vec::new();
    collect(folder, DEPTH, &mut ids);
    ids.into_iter().take(MOST_PROCESSES).map(|id| Process { id, handle: OnceCell::new() }).collect()
}

fn collect(folder: &Path, depth: u32, ids: &mut Vec<i32>) {
    let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    // A process that cannot be seen from here is listed as 0.
    ids.extend(listed.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|id| *id > 0));
    if depth == 0 || ids.len() >= MOST_PROCESSES {
        return;
    }
    let inside = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        collect(&entry.path(), depth - 1, ids);
    }
}

impl Process {
    /// Its sockets among so many descriptors: the number of each, and the inode.
    pub(super) fn sockets(&self, left: &mut usize) -> Vec<(i32, u64)> {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.id)).into_iter().flatten().flatten();
        let socket = |entry: fs::DirEntry| {
            let target = fs::read_link(entry.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, inode))
        };
        let most = *left;
        descriptors.take(most).inspect(|_| *left -= 1).filter_map(socket).collect()
    }

    /// None where it has ended, or may not be touched.
    pub(super) fn handle(&self) -> Option<BorrowedFd<'_>> {
        let open = || pidfd_open(Pid::from_raw(self.id)?, PidfdFlags::empty()).ok();
        self.handle.get_or_init(open).as_ref().map(OwnedFd::as_fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_containers_are_those_of_their_pod() {
        let pod = tempfile::tempdir().unwrap();
        let container = pod.path().join("container");
        fs::create_dir(&container).unwrap();
        fs::write(pod.path().join("cgroup.procs"), "").unwrap();
        fs::write(container.join("cgroup.procs"), "17\n0\n4\n").unwrap();
        let ids: Vec<i32> = processes(pod.path()).iter().map(|process| process.id).collect();
        assert_eq!(ids, [17, 4]);
        assert!(processes(&pod.path().join("gone")).is_empty());
    }

    #[test]
    fn sockets_are_looked_for_among_so_many_descriptors() {
        let _socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let ourselves = Process { id: std::process::id() as i32, handle: OnceCell::new() };
        let mut left = 10_000;
        assert!(!ourselves.sockets(&mut left).is_empty() && left < 10_000);
        assert!(ourselves.sockets(&mut 0).is_empty());
        assert!(ourselves.handle().is_some());
    }
}
