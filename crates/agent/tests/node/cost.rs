//! What it costs to read counters.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use metronome_agent::counters::Counters;
use metronome_agent::marks::Marks;
use metronome_agent::members::Direction;
use metronome_agent::profile::{Observer, Sample};
use rustix::time::{ClockId, clock_gettime};

use serde_json::json;

use crate::namespaces::{Pair, may_make_namespaces};

const INTERFACES: usize = 50;

/// Seconds of a core that this thread has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[test]
fn profiles_of_twelve_jobs_take_less_than_a_hundredth_of_a_core() {
    const MS: u64 = 1_000_000;
    let sent = |at: u64| at / (130 * MS) * 1_600_000 + (at % (130 * MS)).min(64 * MS) / 40;
    let samples = 20_000;
    let (began, mut observer, mut looks) = (cpu(), Observer::default(), 0);
    let mut at = 0;
    for step in 0..samples {
        at += 6 * MS + step * 7_919 % 3 * MS;
        if observer.feed(Sample { at, bytes: sent(at) }) {
            observer.look();
            looks += 1;
        }
    }
    let part = (cpu() - began) / (at as f64 / 1e9);
    println!("a job: {looks} looks at {samples} samples, {:.3} % of a core", part * 100.0);
    assert!(observer.known().is_some());
    assert!(12.0 * part < 0.01, "{part}");
}

#[test]
fn fifty_counters_every_ten_milliseconds_take_less_than_a_hundredth_of_a_core() {
    if !may_make_namespaces() {
        return;
    }
    let pair = Pair::new("cost", 1, 1_000_000_000);
    let path = pair.paths()[0].clone();
    let name = path.file_name().unwrap().to_str().unwrap();
    for at in 0..INTERFACES / 2 {
        let words = format!("-n {name} link add m{} type veth peer name m{}", 2 * at, 2 * at + 1);
        assert!(std::process::Command::new("ip").args(words.split(' ')).status().unwrap().success());
    }
    let mut counters = Counters::open(&path).unwrap();
    counters.watch((0..INTERFACES).map(|at| (format!("m{at}"), Direction::Received, at)));
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let (began, mut seen) = (cpu(), 0);
        for _ in 0..50 {
            counters.read(|_, _| seen += 1).unwrap();
        }
        assert_eq!(seen, 50 * INTERFACES);
        best = best.min((cpu() - began) / 50.0);
    }
    let part = best / 0.010;
    println!("{INTERFACES} counters: {:.0} µs a look, {:.2} % of a core at 10 ms", best * 1e6, part * 100.0);
    assert!(part < 0.01, "{part}");
}

#[test]
fn marking_the_connections_of_fifty_members_takes_less_than_a_hundredth_of_a_core() {
    const MEMBERS: usize = 50;
    const CONNECTIONS: usize = 4;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connects: String =
        (3..3 + CONNECTIONS).map(|at| format!("exec {at}<>/dev/tcp/127.0.0.1/{port}; ")).collect();
    let folder = tempfile::tempdir().unwrap();
    // Each ends when nobody holds the other end of what it reads.
    let program = format!("{connects} read");
    let start = || Command::new("bash").args(["-c", &program]).stdin(Stdio::piped()).spawn().unwrap();
    let mut members: Vec<_> = (0..MEMBERS).map(|_| start()).collect();
    let accepted: Vec<_> = (0..MEMBERS * CONNECTIONS).map(|_| listener.accept().unwrap()).collect();
    let listed = members.iter().enumerate().map(|(at, process)| {
        let group = folder.path().join(at.to_string());
        std::fs::create_dir(&group).unwrap();
        std::fs::write(group.join("cgroup.procs"), process.id().to_string()).unwrap();
        json!({"job": format!("default/job-{at}"), "member": "worker-0", "token": "t", "freezer": group})
    });
    let roster = serde_json::from_value(json!({"members": listed.collect::<Vec<_>>()})).unwrap();
    let (mut marks, mut now) = (Marks::default(), Instant::now());
    let mut a_second = || {
        let began = cpu();
        marks.follow(&roster, 0);
        now += Duration::from_secs(2);
        (0..=MEMBERS).for_each(|_| marks.look(now));
        (cpu() - began, marks.marked())
    };
    let (first, marked) = a_second();
    let best = (0..10).map(|_| a_second().0).fold(f64::INFINITY, f64::min);
    println!(
        "{MEMBERS} members with {CONNECTIONS} connections: {:.1} ms at first, then {:.1} ms a second",
        first * 1e3,
        best * 1e3
    );
    marks.clear();
    members.iter_mut().for_each(|member| drop(member.stdin.take()));
    members.iter_mut().for_each(|member| assert!(member.wait().is_ok()));
    drop(accepted);
    assert_eq!(marked, MEMBERS * CONNECTIONS);
    assert!(best < 0.01, "{best}");
}
