//! A real process in a real cgroup, held for a while.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use metronome_agent::freezer::Freezer;

use crate::cgroup::Member;

#[test]
fn a_process_stands_still_for_as_long_as_it_is_held() {
    let ticks = "while :; do echo; sleep 0.005; done";
    let Some(mut member) =
        Member::start("freeze", Command::new("sh").args(["-c", ticks]).stdout(Stdio::piped()))
    else {
        return;
    };
    let mut out = member.process.stdout.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while matches!(std::io::Read::read(&mut out, &mut byte), Ok(1)) && tell.send(Instant::now()).is_ok() {
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    let hold = Freezer::of(&member.folder).unwrap().hold(Duration::from_millis(300));
    std::thread::sleep(Duration::from_millis(600));
    assert!(hold.is_over());
    let moments: Vec<Instant> = told.try_iter().collect();
    let longest = moments.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    println!("{} ticks, the longest pause {longest:?} for a hold of 300 ms", moments.len());
    assert!((290..500).contains(&longest.as_millis()), "{longest:?}");
    assert_eq!(fs::read_to_string(member.folder.join("freezer.state")).unwrap().trim(), "THAWED");
}
