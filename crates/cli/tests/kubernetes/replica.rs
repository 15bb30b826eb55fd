//! A process of `metronome run`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

pub(crate) struct Replica {
    child: Child,
    identity: String,
    said: Arc<Mutex<Vec<String>>>,
}

impl Replica {
    /// Short leases: tests wait for them to run out.
    pub(crate) fn start(kubeconfig: &Path, corner: &str, identity: &str) -> Self {
        Self::start_with(kubeconfig, corner, identity, &[])
    }

    /// One that only looks on.
    pub(crate) fn observe(kubeconfig: &Path, corner: &str) -> Self {
        Self::start_with(kubeconfig, corner, "observer", &["--observe"])
    }

    fn start_with(kubeconfig: &Path, corner: &str, identity: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_metronome"))
            .args(["run", "--scheduler-name", corner, "--namespace", corner, "--identity", identity])
            .args(["--lease-duration", "1500ms", "--renew-deadline", "1s", "--retry-period", "200ms"])
            .args(["--listen", "127.0.0.1:0", "--repair-patience", "3s"])
            .args(more)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let heard = said.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard.lock().unwrap().push(line);
            }
        });
        Self { child, identity: identity.to_owned(), said }
    }

    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Where it listens, once it has said so.
    pub(crate) fn address(&self) -> Option<String> {
        let said = self.said.lock().unwrap();
        said.iter().find_map(|line| line.strip_prefix("listening on ").map(str::to_owned))
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Freezes it, as a machine that hangs does, until it is thawed.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let done = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Already gone where it was killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
