//! What it costs to read counters.

use metronome_agent::counters::Counters;
use metronome_agent::members::Direction;
use metronome_agent::profile::{Observer, Sample};
use rustix::time::{ClockId, clock_gettime};

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
