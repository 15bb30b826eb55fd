//! A disk that is full: what is written is there whole or not at all, it is said, and a member's end is on record all
//! the same.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use metronome_local::LocalError;
use metronome_local::names::{MemberNumber, WorldName};
use metronome_local::process::{Ended, How, Member, Spec, Status};
use metronome_local::state::WorldFolder;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::processes::{launcher, wait_until};

/// Does something with a disk of 256 KiB that nobody else sees and that goes with its thread. False without root.
fn with_small_disk(deed: impl FnOnce(&Path) + Send) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let in_private = || {
        if unshare(CloneFlags::CLONE_NEWNS).is_err() {
            return false;
        }
        let none: Option<&str> = None;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
        mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some("size=256k")).unwrap();
        deed(folder.path());
        true
    };
    let done = thread::scope(|scope| scope.spawn(in_private).join());
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Fills the disk to the last byte.
fn fill(disk: &Path) {
    let filler = disk.join("filler");
    let filled = fs::write(&filler, vec![1; 1 << 20]);
    assert!(filled.is_err());
    assert!(fs::metadata(&filler).unwrap().len() > 0);
}

#[test]
fn a_document_is_there_as_it_was_and_the_reason_is_said() {
    let tested = with_small_disk(|disk| {
        let folder = WorldFolder::open(disk, &WorldName::new("full").unwrap()).unwrap();
        folder.write("world.json", &vec![1; 100]).unwrap();
        fill(disk);
        let refused = folder.write("world.json", &vec![2; 10_000]).unwrap_err();
        assert!(matches!(refused, LocalError::DiskFull { .. }), "{refused}");
        assert_eq!(folder.read("world.json").unwrap(), Some(vec![1; 100]));
        fs::remove_file(disk.join("filler")).unwrap();
        folder.write("world.json", &vec![2; 10_000]).unwrap();
        assert_eq!(folder.read("world.json").unwrap(), Some(vec![2; 10_000]));
    });
    if !tested {
        metronome_skip::skip("no rights to mount");
    }
}

#[test]
fn the_end_of_a_member_is_recorded_at_the_cost_of_its_log() {
    let tested = with_small_disk(|disk| {
        let folder = WorldFolder::open(disk, &WorldName::new("full").unwrap()).unwrap();
        let place = folder.member(MemberNumber(0)).unwrap();
        // It writes more than the disk holds.
        let spec = Spec::of(&["/bin/sh", "-c", "seq 1 100000; exit 5"]);
        let mut member = Member::start(&launcher(), &place, &spec, None).unwrap();
        let mut status = Status::Starting;
        wait_until("a member ends", || {
            status = member.status().unwrap();
            matches!(status, Status::Ended(_) | Status::Lost)
        });
        assert!(matches!(status, Status::Ended(Ended { how: How::Exit(5), .. })), "{status:?}");
        // Its shim is gone before the disk is.
        thread::sleep(Duration::from_millis(50));
    });
    if !tested {
        metronome_skip::skip("no rights to mount");
    }
}
