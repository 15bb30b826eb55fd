//! Namespaces that are gone when the test is, also when it fails.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use metronome_agent::namespace::within;

/// Two namespaces joined by a pair of interfaces: members send from one, and somebody takes it in the other.
#[derive(Debug)]
pub(crate) struct Pair {
    name: String,
}

/// Whether this process may make namespaces. If not, the test is recorded as skipped.
pub(crate) fn may_make_namespaces() -> bool {
    let may = rustix::process::geteuid().is_root() && Command::new("tc").arg("-V").output().is_ok();
    if !may {
        metronome_skip::skip("making network namespaces takes root and iproute2");
    }
    may
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Pair {
    /// The interface `up` of the first has these addresses and sends this many bits a second.
    pub(crate) fn new(name: &str, members: u8, rate: u64) -> Self {
        let pair = Self { name: format!("mtr-{}-{name}", std::process::id()) };
        let [one, other] = pair.names();
        for side in [&one, &other] {
            ip(&format!("netns add {side}"));
            ip(&format!("-n {side} link set lo up"));
        }
        ip(&format!("link add name up netns {one} type veth peer name down netns {other}"));
        for member in 1..=members {
            ip(&format!("-n {one} addr add 10.78.0.{member}/24 dev up"));
        }
        ip(&format!("-n {other} addr add 10.78.0.200/24 dev down"));
        ip(&format!("-n {one} link set dev up mtu 9000 gso_max_size 9000 gso_max_segs 1 up"));
        ip(&format!("-n {other} link set dev down mtu 9000 up"));
        let shape = [
            "qdisc add dev up root handle 1: htb default 0xffff".to_owned(),
            format!(
                "class add dev up parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst 25000 cburst 25000 quantum 9014"
            ),
            format!(
                "class add dev up parent 1:1 classid 1:ffff htb rate {}bit ceil {rate}bit burst 9014 cburst 25000 quantum 9014",
                rate / 100
            ),
        ];
        shape.iter().for_each(|line| {
            pair.tc(line);
        });
        pair
    }

    fn names(&self) -> [String; 2] {
        ["a", "b"].map(|side| format!("{}-{side}", self.name))
    }

    /// Where members send from, and where it is taken.
    pub(crate) fn paths(&self) -> [PathBuf; 2] {
        self.names().map(|name| PathBuf::from("/run/netns").join(name))
    }

    pub(crate) fn tc(&self, words: &str) -> String {
        let done = Command::new("tc").args(["-n", &self.names()[0]]).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "tc {words}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// Takes whatever is sent to this port.
    pub(crate) fn sink(&self) -> Worker {
        let path = self.paths()[1].clone();
        let listener = within(&path, || std::net::TcpListener::bind("10.78.0.200:7000")).unwrap();
        listener.set_nonblocking(true).unwrap();
        Worker::start(move |stop, _| {
            let mut streams: Vec<std::net::TcpStream> = Vec::new();
            let mut buffer = vec![0; 1 << 18];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    streams.push(stream);
                }
                let read =
                    |stream: &mut std::net::TcpStream| std::io::Read::read(stream, &mut buffer).unwrap_or(0);
                if streams.iter_mut().map(read).sum::<usize>() == 0 {
                    std::thread::sleep(Duration::from_micros(300));
                }
            }
        })
    }

    /// Sends from the address of a member, as `sends` says: what to send, and how long to wait after it.
    pub(crate) fn sender(
        &self,
        member: u8,
        mut sends: impl FnMut() -> (usize, Duration) + Send + 'static,
    ) -> Worker {
        let path = self.paths()[0].clone();
        let mut stream = within(&path, || connected(member)).unwrap();
        Worker::start(move |stop, sent| {
            let chunk = vec![7; 1 << 15];
            while !stop.load(Ordering::Relaxed) {
                let (mut left, pause) = sends();
                while left > 0 && !stop.load(Ordering::Relaxed) {
                    let part = left.min(chunk.len());
                    if std::io::Write::write_all(&mut stream, &chunk[..part]).is_err() {
                        return;
                    }
                    sent.fetch_add(part as u64, Ordering::Relaxed);
                    left -= part;
                }
                std::thread::sleep(pause);
            }
        })
    }
}

fn connected(member: u8) -> std::io::Result<std::net::TcpStream> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
    // Programs that other tests start have none of it.
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_send_buffer_size(&socket, 150_000)?;
    bind(&socket, &std::net::SocketAddrV4::new([10, 78, 0, member].into(), 0))?;
    connect(&socket, &std::net::SocketAddrV4::new([10, 78, 0, 200].into(), 7000))?;
    Ok(socket.into())
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in self.names() {
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
        }
    }
}

/// A thread that goes on until it is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start(work: impl FnOnce(&AtomicBool, &AtomicU64) + Send + 'static) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (told, counted) = (stop.clone(), sent.clone());
        Self { stop, sent, thread: Some(std::thread::spawn(move || work(&told, &counted))) }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
