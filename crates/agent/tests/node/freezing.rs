//! A real process in a real cgroup, held for a while.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use metronome_agent::freezer::Freezer;

/// A cgroup of the freezer with a process in it; both are gone afterwards.
struct Frozen {
    folder: PathBuf,
    process: Child,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if let Some(freezer) = Freezer::of(&self.folder) {
            let _ = freezer.thaw();
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        let until = Instant::now() + Duration::from_secs(2);
        while fs::remove_dir(&self.folder).is_err() && self.folder.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_process_stands_still_for_as_long_as_it_is_held() {
    let root = Path::new("/sys/fs/cgroup/freezer");
    if !rustix::process::geteuid().is_root() || !root.exists() {
        println!("left out: it takes root and the freezer of cgroups of version 1");
        return;
    }
    let folder = root.join(format!("mtr-{}-freeze", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let ticks = "while :; do echo; sleep 0.005; done";
    let process = Command::new("sh").args(["-c", ticks]).stdout(Stdio::piped()).spawn().unwrap();
    let mut held = Frozen { folder: folder.clone(), process };
    fs::write(folder.join("cgroup.procs"), held.process.id().to_string()).unwrap();
    let mut out = held.process.stdout.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::Read::read(&mut out, &mut byte), Ok(1)) && tell.send(Instant::now()).is_ok() {
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    let hold = Freezer::of(&folder).unwrap().hold(Duration::from_millis(300));
    std::thread::sleep(Duration::from_millis(600));
    assert!(hold.is_over());
    let moments: Vec<Instant> = told.try_iter().collect();
    let longest = moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    println!("{} ticks, the longest pause {longest:?} for a hold of 300 ms", moments.len());
    assert!((290..500).contains(&longest.as_millis()), "{longest:?}");
    assert_eq!(fs::read_to_string(folder.join("freezer.state")).unwrap().trim(), "THAWED");
}
