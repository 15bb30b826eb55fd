//! The first stage: starts the second and watches over it until its end is on record.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, setsid};

use super::enter::NOT_STARTED;
use super::log::Log;
use crate::clock;
use crate::fault::{self, FaultPoint};
use crate::process::{Claim, Ended, How, Identity, Records};

/// How long a full disk is waited for when an end is to be recorded.
const DISK_PATIENCE: Duration = Duration::from_secs(60);
const DISK_PAUSE: Duration = Duration::from_millis(100);

/// A shim that comes so late that its folder belongs to another start already does nothing.
pub(super) fn watch(folder: &Path, start_id: &str) -> Result<(), String> {
    // Before anything else: whoever learns of this process by its claim may signal it at once.
    let signals = take_signals()?;
    // A terminal that is closed, or its interrupt key, is meant for the scheduler. It fails only for who leads a
    // session already.
    let _ = setsid();
    let records = Records::in_folder(folder);
    let own = Identity::own().ok_or("cannot read /proc")?;
    let is_meant = || records.read_spec().is_ok_and(|spec| spec.start_id == start_id);
    if !is_meant() || !records.claim(&Claim::Shim(own)).map_err(|error| words(&error))? {
        return Ok(());
    }
    fault::after(FaultPoint::ShimClaimed);
    let spec = records.read_spec().map_err(|error| words(&error))?;
    if spec.start_id != start_id {
        return Ok(());
    }
    let mut log = Log::open(records.log(), spec.log_limit);
    let how = if records.was_asked() {
        How::NotStarted("it was asked to leave before it was started".to_owned())
    } else {
        run(&records, &signals, &mut log)
    };
    record_end(&records, how, &mut log)
}

fn words(error: &crate::error::LocalError) -> String {
    format!("cannot {error}")
}

fn take_signals() -> Result<SignalFd, String> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGCHLD] {
        set.add(signal);
    }
    let taken = set
        .thread_block()
        .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC));
    taken.map_err(|error| format!("cannot take signals: {error}"))
}

/// Runs the member to its end.
fn run(records: &Records, signals: &SignalFd, log: &mut Log) -> How {
    let (mut member, output) = match start(records) {
        Ok(started) => started,
        Err(error) => return How::NotStarted(format!("cannot start a process: {error}")),
    };
    fault::after(FaultPoint::MemberSpawned);
    let pid = Pid::from_raw(member.id().cast_signed());
    if let Some(identity) = Identity::of(pid.as_raw()) {
        // Where the disk is full it runs all the same; it is found by its group.
        let _ = records.write_started(&identity);
        fault::after(FaultPoint::StartRecorded);
    }
    follow(pid, signals, output, log);
    fault::after(FaultPoint::MemberEnded);
    // It has ended and not been waited for, so its number still means its group of processes and no other's.
    let _ = killpg(pid, Signal::SIGKILL);
    match member.wait() {
        Ok(status) => how(records, status),
        Err(error) => How::NotStarted(format!("cannot wait for it: {error}")),
    }
}

fn start(records: &Records) -> io::Result<(Child, File)> {
    let (read, write) = io::pipe()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    // All but the last three, `watch FOLDER START`: what else it takes to be told as a shim.
    let own = &words[..words.len().saturating_sub(3)];
    let member = Command::new("/proc/self/exe")
        .args(own)
        .arg("enter")
        .arg(records.folder())
        .arg(std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(write.try_clone()?)
        .stderr(write)
        .spawn()?;
    let output = OwnedFd::from(read);
    fcntl(&output, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((member, File::from(output)))
}

/// Keeps what it writes and passes on what it is asked until it has ended.
fn follow(member: Pid, signals: &SignalFd, mut output: File, log: &mut Log) {
    let mut speaks = true;
    loop {
        let mut awaited = vec![PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        if speaks {
            awaited.push(PollFd::new(output.as_fd(), PollFlags::POLLIN));
        }
        // Whatever wakes us, all is looked at.
        let _ = poll(&mut awaited, PollTimeout::NONE);
        drop(awaited);
        speaks = speaks && keep(&mut output, log);
        while let Ok(Some(signal)) = signals.read_signal() {
            if signal.ssi_signo != Signal::SIGCHLD as u32 {
                let _ = kill(member, Signal::SIGTERM);
            }
        }
        if has_ended(member) {
            keep(&mut output, log);
            return;
        }
    }
}

/// Takes what there is; false once nobody can write any more.
fn keep(output: &mut File, log: &mut Log) -> bool {
    let mut words = [0; 1 << 16];
    // A member that writes without end is not to keep us from its signals.
    for _ in 0..16 {
        match output.read(&mut words) {
            Ok(0) => return false,
            Ok(length) => log.take(&words[..length]),
            Err(error) => {
                return matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted);
            }
        }
    }
    true
}

fn has_ended(member: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(member), flags), Ok(WaitStatus::StillAlive) | Err(nix::Error::EINTR))
}

fn how(records: &Records, status: ExitStatus) -> How {
    if status.code() == Some(i32::from(NOT_STARTED))
        && let Ok(Some(why)) = records.read_refused()
    {
        return How::NotStarted(why);
    }
    status.signal().map_or_else(|| How::Exit(status.code().unwrap_or(-1)), How::Signal)
}

/// Nothing matters more than this record: for it the log gives up its room.
fn record_end(records: &Records, how: How, log: &mut Log) -> Result<(), String> {
    let ended = Ended { how, at_ns: clock::now().0, asked: records.was_asked() || records.was_killed() };
    let mut tries = DISK_PATIENCE.as_millis() / DISK_PAUSE.as_millis();
    loop {
        match records.write_ended(&ended) {
            Ok(()) => {
                fault::after(FaultPoint::EndRecorded);
                return Ok(());
            }
            Err(error) if tries == 0 => return Err(words(&error)),
            Err(_) => {
                log.make_room();
                std::thread::sleep(DISK_PAUSE);
                tries -= 1;
            }
        }
    }
}
