//! Flows of real TCP between members, and what of them arrives when.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use metronome_local::hosts::Plug;

/// Bytes that arrived, and when.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pieces: Vec<(Duration, usize)>,
}

impl Arrivals {
    /// Bits a second between two moments.
    pub(crate) fn rate(&self, from: Duration, to: Duration) -> f64 {
        let within = self.pieces.iter().filter(|(at, _)| from <= *at && *at < to);
        within.map(|(_, bytes)| *bytes as f64 * 8.0).sum::<f64>() / (to - from).as_secs_f64()
    }

    /// The rates of one window after the other.
    pub(crate) fn windows(&self, from: Duration, to: Duration, length: Duration) -> Vec<f64> {
        let count = ((to - from).as_nanos() / length.as_nanos()) as u32;
        (0..count).map(|at| self.rate(from + length * at, from + length * (at + 1))).collect()
    }
}

/// A measurement of rates, while no other is made.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to send from one member to another for so long; what arrives.
pub(crate) fn begin(from: &Plug, to: &Plug, port: u16, length: Duration) -> JoinHandle<Arrivals> {
    let (from, to, start) = (from.clone(), to.clone(), Instant::now());
    thread::spawn(move || send(&from, &to, port, start, length))
}

fn send(from: &Plug, to: &Plug, port: u16, start: Instant, length: Duration) -> Arrivals {
    let address = (to.address, port);
    let listener = to.namespace.within(|| TcpListener::bind(address).unwrap()).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = from.namespace.within(|| TcpStream::connect(address).unwrap()).unwrap();
            stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
            let words = vec![7; 1 << 16];
            while start.elapsed() < length {
                // A link that is cut takes nothing; that is no reason to wait beyond the end.
                let _ = stream.write(&words);
            }
        });
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut pieces = Vec::new();
        let mut words = vec![0; 1 << 16];
        while start.elapsed() < length {
            match stream.read(&mut words) {
                Ok(0) => break,
                Ok(bytes) => pieces.push((start.elapsed(), bytes)),
                Err(_) => {}
            }
        }
        Arrivals { pieces }
    })
}

/// Several flows at once, each over a port of its own.
pub(crate) fn send_all(flows: &[(&Plug, &Plug)], length: Duration) -> Vec<Arrivals> {
    let threads: Vec<_> =
        (5000..).zip(flows).map(|(port, (from, to))| begin(from, to, port, length)).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// A measurement that a slow moment of the machine may spoil: one of five is to hold.
pub(crate) fn holds_in_five_tries(mut holds: impl FnMut() -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..5 {
        match holds() {
            Ok(()) => return,
            Err(why) => last = why,
        }
        thread::sleep(Duration::from_millis(300));
    }
    panic!("{last}");
}
