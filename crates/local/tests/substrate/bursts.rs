//! What training does to a link: bursts with pauses, begun at different moments. They take as long as a fluid would that
//! is divided equally, which is what the simulator goes by.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use metronome_core::model::id::NodeId;
use metronome_core::network::packet::WIRE_PACKET;
use metronome_local::hosts::{Hosts, Plug};
use metronome_local::links::Scale;
use metronome_local::names::MemberNumber;

use crate::flows::{alone, holds_in_five_tries};
use crate::worlds::{TestWorld, mbit, tree};

const RATE: f64 = 200e6;

/// A connection that is open before anything is measured, as those of a ring are.
struct Ring {
    sends: TcpStream,
    receives: TcpStream,
}

impl Ring {
    fn between(from: &Plug, to: &Plug, port: u16) -> Self {
        let address = (to.address, port);
        let listener = to.namespace.within(|| TcpListener::bind(address).unwrap()).unwrap();
        let sends = from.namespace.within(|| TcpStream::connect(address).unwrap()).unwrap();
        sends.set_nodelay(true).unwrap();
        Self { sends, receives: listener.accept().unwrap().0 }
    }

    /// Sends so much at a moment; how long after it all has arrived.
    fn burst(&mut self, bytes: usize, at: Instant) -> Duration {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        let (sends, receives) = (&mut self.sends, &mut self.receives);
        thread::scope(|scope| {
            scope.spawn(move || sends.write_all(&vec![1; bytes]).unwrap());
            let mut left = bytes;
            let mut words = vec![0; 1 << 16];
            while left > 0 {
                left -= receives.read(&mut words).unwrap();
            }
            at.elapsed()
        })
    }
}

/// Sends chunks, each when the one before has arrived, for so long; how long one takes.
fn chunks(ring: &mut Ring, bytes: usize, length: Duration) -> f64 {
    let mut times = Vec::new();
    let until = Instant::now() + length;
    while Instant::now() < until {
        times.push(ring.burst(bytes, Instant::now()).as_secs_f64());
    }
    usual(times)
}

/// The lower quartile: a busy machine only ever adds to what a link takes.
fn usual(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 4]
}

fn close(what: &str, seconds: f64, expected: f64) -> Result<(), String> {
    let off = seconds / expected - 1.0;
    let said =
        format!("{what}: {:.1} ms, expected {:.1} ms, {:+.1} %", seconds * 1e3, expected * 1e3, off * 100.0);
    eprintln!("{said}");
    // After a pause a link lets a millisecond's worth pass at once, and a thread may be woken a millisecond late.
    if (seconds - expected).abs() < 0.04 * expected + 0.002 { Ok(()) } else { Err(said) }
}

#[test]
fn bursts_take_as_long_as_a_fluid_would() {
    let Some(world) = TestWorld::with_network() else { return };
    let folder = world.open();
    let _alone = alone();
    let cluster = tree(&["a", "a", "b", "b"], mbit(200), mbit(200));
    let mut hosts = Hosts::set_up(&folder, &cluster, Scale(1.try_into().unwrap())).unwrap();
    let plugs: Vec<Plug> = (0..4).map(|at| hosts.plug(MemberNumber(at), NodeId(at)).unwrap()).collect();
    let mut first = Ring::between(&plugs[0], &plugs[2], 6000);
    let mut second = Ring::between(&plugs[1], &plugs[3], 6001);
    let soon = || Instant::now() + Duration::from_millis(30);

    for bytes in [500_000, 2_500_000] {
        holds_in_five_tries(|| {
            let alone: Vec<f64> = (0..7).map(|_| first.burst(bytes, soon()).as_secs_f64()).collect();
            close(&format!("{bytes} bytes alone"), usual(alone), bytes as f64 * 8.0 / RATE)
        });
    }

    // 100 ms each when alone; the second comes when half of the first has been sent. Both halve the link until the
    // first is done at 150 ms, and the second has the rest for itself.
    let bytes = 2_500_000;
    holds_in_five_tries(|| {
        let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
        for _ in 0..7 {
            let start = soon();
            let later = start + Duration::from_millis(50);
            thread::scope(|scope| {
                let other = scope.spawn(|| second.burst(bytes, later));
                firsts.push(first.burst(bytes, start).as_secs_f64());
                seconds.push(other.join().unwrap().as_secs_f64());
            });
        }
        close("the first of two that overlap", usual(firsts), 0.150)?;
        close("the second of two that overlap", usual(seconds), 0.150)
    });

    // Whoever sends little at a time and waits for it has its half beside one who always has something to send.
    let chunk = 100_000;
    // Its last packet passes three switches, each of which takes it in before sending it on.
    let switches = 3.0 * f64::from(WIRE_PACKET) * 8.0 / RATE;
    holds_in_five_tries(|| {
        let beside = thread::scope(|scope| {
            scope.spawn(|| first.burst(15_000_000, Instant::now()));
            thread::sleep(Duration::from_millis(50));
            chunks(&mut second, chunk, Duration::from_millis(400))
        });
        close("chunks of 100 kB beside a stream", beside, chunk as f64 * 8.0 / (RATE / 2.0) + switches)
    });
}
