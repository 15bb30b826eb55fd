//! The second stage: joins the member's group and namespace and becomes its command.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getppid, setsid};

use super::host;
use crate::fault::{self, FaultPoint};
use crate::process::{Records, Spec};

/// What a shell says of a command that it cannot start.
pub(super) const NOT_STARTED: u8 = 127;

/// Returns only if the command could not be started.
pub(super) fn enter(folder: &Path, watcher: &str) -> Result<(), String> {
    let records = Records::in_folder(folder);
    let why = match become_member(&records, watcher) {
        Ok(never) => match never {},
        Err(why) => why,
    };
    records.write_refused(&why).map_err(|error| format!("{why}; cannot {error}"))?;
    Err(why)
}

enum Never {}

fn become_member(records: &Records, watcher: &str) -> Result<Never, String> {
    // This is kept by the command: no member lives on without somebody to record its end.
    set_pdeathsig(Signal::SIGKILL).map_err(|error| format!("cannot be tied to the shim: {error}"))?;
    if getppid().to_string() != watcher {
        return Err("its shim has ended".to_owned());
    }
    let spec = records.read_spec().map_err(|error| format!("cannot {error}"))?;
    setsid().map_err(|error| format!("cannot begin a session: {error}"))?;
    join(&spec)?;
    if let Some(identity) = &spec.host {
        host::assume(records, identity)?;
        fault::after(FaultPoint::HostAssumed);
    }
    // After joining: whoever kills the group from now on kills this process, and whoever did before has said so.
    if records.was_killed() {
        return Err("it was killed before it was started".to_owned());
    }
    SigSet::empty().thread_set_mask().map_err(|error| format!("cannot take signals: {error}"))?;
    Err(exec(&spec))
}

fn join(spec: &Spec) -> Result<(), String> {
    for entrance in &spec.entrances {
        let joined = fs::write(entrance, std::process::id().to_string());
        joined.map_err(|error| format!("cannot join {}: {error}", entrance.display()))?;
    }
    fault::after(FaultPoint::GroupJoined);
    if let Some(path) = &spec.namespace {
        let namespace =
            File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        let entered = setns(namespace, CloneFlags::CLONE_NEWNET);
        entered.map_err(|error| format!("cannot enter {}: {error}", path.display()))?;
        fault::after(FaultPoint::NamespaceJoined);
    }
    Ok(())
}

fn exec(spec: &Spec) -> String {
    let Some((program, arguments)) = spec.command.split_first() else {
        return "there is no command".to_owned();
    };
    let mut command = Command::new(program);
    command.args(arguments).envs(&spec.environment);
    if let Some(folder) = &spec.folder {
        command.current_dir(folder);
    }
    let error = command.exec();
    format!("cannot run `{program}`: {error}")
}
