//! `tc`, kept running: a leaf changes a few hundred times a second, and a process for each change would cost more than all
//! the rest of the agent.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::members::Port;
use crate::namespace;

use super::leaf::{END, FIRST};

#[derive(Debug)]
pub(super) struct Tc {
    running: Option<(Child, ChildStdin)>,
    /// Commands that were not carried out.
    refused: Arc<AtomicU64>,
    began: Instant,
}

/// A port that does not let us is tried again, but not sooner.
const PAUSE: Duration = Duration::from_secs(2);
/// How long it may take to carry out what is left when we leave.
const GRACE: Duration = Duration::from_secs(3);

impl Tc {
    pub(super) fn start(netns: &Path) -> Self {
        let refused = Arc::new(AtomicU64::new(0));
        let running = spawn(netns).ok().and_then(|mut child| {
            let said = child.stdin.take()?;
            let errors = BufReader::new(child.stderr.take()?);
            let counted = refused.clone();
            // Ends when `tc` does.
            std::thread::spawn(move || {
                let failed = |line: &String| line.starts_with("Command failed");
                let count = errors.lines().map_while(Result::ok).filter(failed);
                count.for_each(|_| {
                    counted.fetch_add(1, Ordering::Relaxed);
                });
            });
            Some((child, said))
        });
        if running.is_none() {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        Self { running, refused, began: Instant::now() }
    }

    /// Where there is nothing to be said. It counts as refused, so that somebody learns of it and it is tried again.
    pub(super) fn none() -> Self {
        Self { running: None, refused: Arc::new(AtomicU64::new(1)), began: Instant::now() }
    }

    pub(super) fn is_there(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn say(&mut self, commands: &str) {
        let said = self.running.as_mut().map(|(_, stdin)| stdin.write_all(commands.as_bytes()));
        if !matches!(said, Some(Ok(()))) {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Something was not carried out, so nobody knows what is there.
    pub(super) fn is_broken(&self) -> bool {
        self.refused() > 0 && self.began.elapsed() > PAUSE
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Lets it carry out everything that was said.
    pub(super) fn finish(&mut self) {
        let Some((mut child, said)) = self.running.take() else { return };
        drop(said);
        let until = Instant::now() + GRACE;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        end(child);
    }
}

impl Drop for Tc {
    fn drop(&mut self) {
        if let Some((child, _)) = self.running.take() {
            end(child);
        }
    }
}

/// It may have ended already; then there is nothing to be done.
fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn spawn(netns: &Path) -> io::Result<Child> {
    namespace::within(netns, || {
        let mut command = Command::new("tc");
        command.args(["-force", "-batch", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    })
}

/// Removes leaves that an earlier agent made. Says whether the port is shaped as agreed: it has the leaf for everybody.
pub(super) fn remove_leftovers(port: &Port) -> bool {
    let numbers = leaves(port).unwrap_or_default();
    if !numbers.contains(&EVERYBODY) {
        return false;
    }
    let ours: Vec<u16> = numbers.into_iter().filter(|number| (FIRST..END).contains(number)).collect();
    if ours.is_empty() {
        return true;
    }
    let mut tc = Tc::start(&port.netns);
    for number in ours {
        let device = &port.device;
        tc.say(&format!("filter del dev {device} parent 1: protocol ip pref {number}\n"));
        tc.say(&format!("class del dev {device} classid 1:{number:x}\n"));
    }
    tc.finish();
    true
}

/// The number of the leaf of whoever has none of its own.
const EVERYBODY: u16 = 0xffff;

/// The numbers of all leaves that are there.
fn leaves(port: &Port) -> io::Result<Vec<u16>> {
    let shown = namespace::within(&port.netns, || {
        Command::new("tc").args(["class", "show", "dev", &port.device]).stderr(Stdio::null()).output()
    })?;
    let text = String::from_utf8_lossy(&shown.stdout);
    let number = |line: &str| {
        let id = line.strip_prefix("class htb 1:")?.split(' ').next()?;
        u16::from_str_radix(id, 16).ok()
    };
    Ok(text.lines().filter_map(number).collect())
}
