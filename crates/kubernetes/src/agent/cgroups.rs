//! Where the processes of a pod are, by its uid: kubelets name the folders of control groups after it. They do so in one
//! of two ways, in one hierarchy or in one for each controller, and some below a group of their own.

use std::fs;
use std::path::{Path, PathBuf};

/// The class of a pod's service: those that are guaranteed theirs have no folder of their own.
const CLASSES: [Option<&str>; 3] = [None, Some("burstable"), Some("besteffort")];

/// The group below which a kubelet makes its own, where it does: those that run in containers themselves.
const PARENTS: [Option<&str>; 2] = [None, Some("kubelet")];

/// Containers lie below their pod, and what they make of their own below them.
const DEEPEST: u32 = 3;

/// More is no number of a process.
const LONGEST_LIST: usize = 64 * 1024;

/// The folder in which all processes of a pod can be frozen together, below the root of all control groups.
pub fn folder_of_pod(root: &Path, uid: &str) -> Option<PathBuf> {
    if !is_uid(uid) {
        return None;
    }
    let base = if is_unified(root) { root.to_path_buf() } else { root.join("freezer") };
    let ways = PARENTS.into_iter().flat_map(|parent| CLASSES.map(|class| (parent, class)));
    let all = ways.flat_map(|(parent, class)| [plain(parent, class, uid), sliced(parent, class, uid)]);
    all.map(|folder| base.join(folder)).find(|folder| folder.is_dir())
}

/// One hierarchy for all controllers, as the second version has it.
fn is_unified(root: &Path) -> bool {
    root.join("cgroup.controllers").is_file()
}

/// What comes from outside becomes part of a path.
fn is_uid(uid: &str) -> bool {
    !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// By the driver `cgroupfs`: `kubepods/burstable/pod<uid>`.
fn plain(parent: Option<&str>, class: Option<&str>, uid: &str) -> PathBuf {
    let pod = format!("pod{uid}");
    [parent, Some("kubepods"), class, Some(&pod)].into_iter().flatten().collect()
}

/// By the driver `systemd`, where each slice is called as all that are above it:
/// `kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice`.
fn sliced(parent: Option<&str>, class: Option<&str>, uid: &str) -> PathBuf {
    let pod = format!("pod{}", uid.replace('-', "_"));
    let (mut path, mut name) = (PathBuf::new(), String::new());
    for part in [parent, Some("kubepods"), class, Some(&pod)].into_iter().flatten() {
        name = if name.is_empty() { part.to_owned() } else { format!("{name}-{part}") };
        path.push(format!("{name}.slice"));
    }
    path
}

/// Processes of a pod, in no particular order.
pub fn processes(folder: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    collect(folder, DEEPEST, &mut found);
    found
}

fn collect(folder: &Path, deeper: u32, found: &mut Vec<u32>) {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    found.extend(text.get(..text.len().min(LONGEST_LIST)).unwrap_or_default().lines().filter_map(number));
    if deeper == 0 {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), deeper - 1, found);
        }
    }
}

/// Processes of other namespaces are shown as 0.
fn number(line: &str) -> Option<u32> {
    line.trim().parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "5d6f0f6a-8a3e-4c3b-9c57-0c2f0d9e2b11";
    const SLICED: &str = "pod5d6f0f6a_8a3e_4c3b_9c57_0c2f0d9e2b11.slice";

    /// A root with the folders of one pod, which the second version marks by a file.
    fn root(unified: bool, folder: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join(folder)).unwrap();
        if unified {
            fs::write(root.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        }
        root
    }

    #[test]
    fn a_pod_is_found_however_its_kubelet_calls_its_folder() {
        let below = [
            format!("kubepods/pod{UID}"),
            format!("kubepods/burstable/pod{UID}"),
            format!("kubepods/besteffort/pod{UID}"),
            format!("kubelet/kubepods/burstable/pod{UID}"),
            format!("kubepods.slice/kubepods-{SLICED}"),
            format!("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-{SLICED}"),
            format!(
                "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-{SLICED}"
            ),
        ];
        for folder in below {
            let second = root(true, &folder);
            assert_eq!(folder_of_pod(second.path(), UID), Some(second.path().join(&folder)), "{folder}");
            let first = root(false, &format!("freezer/{folder}"));
            let expected = first.path().join("freezer").join(&folder);
            assert_eq!(folder_of_pod(first.path(), UID), Some(expected), "{folder}");
        }
    }

    #[test]
    fn nobody_else_is_found() {
        let root = root(true, &format!("kubepods/pod{UID}"));
        fs::create_dir_all(root.path().join("elsewhere")).unwrap();
        for uid in ["", "another", "../../elsewhere", "x/../../../elsewhere"] {
            assert_eq!(folder_of_pod(root.path(), uid), None, "{uid}");
        }
        let first = tempfile::tempdir().unwrap();
        assert_eq!(folder_of_pod(first.path(), UID), None);
    }

    #[test]
    fn processes_of_all_containers_are_found_and_nonsense_is_none() {
        let root = root(true, "kubepods/pod1/a/own");
        let pod = root.path().join("kubepods/pod1");
        fs::write(pod.join("cgroup.procs"), "").unwrap();
        fs::write(pod.join("a/cgroup.procs"), "17\n4\n").unwrap();
        fs::write(pod.join("a/own/cgroup.procs"), "0\nnone\n23\n").unwrap();
        let mut found = processes(&pod);
        found.sort_unstable();
        assert_eq!(found, [4, 17, 23]);
        assert_eq!(processes(&root.path().join("nothing")).len(), 0);
    }
}
