//! The whole agent, on threads of this process.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use metronome_agent::{AgentError, Options, run};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

pub(crate) struct Agent {
    folder: TempDir,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<(), AgentError>>,
}

impl Agent {
    /// Begins with this roster; `more` says what else it is to do.
    pub(crate) fn start(roster: &Value, more: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "secret").unwrap();
        say(folder.path(), roster);
        let dir = folder.path().to_owned();
        let mut options = Options { dir, listen: None, step: Duration::from_millis(5), mark: false };
        more(&mut options);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(run(options, async {
                let _ = stopped.await;
            }))
        });
        Self { folder, stop, thread }
    }

    pub(crate) fn says(&self, roster: &Value) {
        say(self.folder.path(), roster);
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn ask(&self, request: &str) -> String {
        let Ok(mut stream) = UnixStream::connect(self.socket()) else { return String::new() };
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut answer = String::new();
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        answer
    }

    pub(crate) fn metrics(&self) -> String {
        self.ask("GET /metrics HTTP/1.0\r\n\r\n")
    }

    /// Returns when it has left.
    pub(crate) fn leave(self) {
        let socket = self.socket();
        drop(self.stop);
        self.thread.join().unwrap().unwrap();
        assert!(!socket.exists());
    }
}

fn say(folder: &Path, roster: &Value) {
    let new = folder.join("members.new");
    std::fs::write(&new, roster.to_string()).unwrap();
    std::fs::rename(new, folder.join("members.json")).unwrap();
}

pub(crate) fn eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(40);
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
