//! Nothing outlives the test process, however it ends.
//!
//! A shell waits for the end of a pipe whose other end only this process holds. Whether we drop it, panic or are
//! killed, the kernel closes the pipe; the shell then kills the whole process group and removes the folder. The
//! tidy end takes the same path, so that it is tried every time. (`PR_SET_PDEATHSIG` would need `unsafe`, and follows
//! the thread that spawned, which in tests ends early.)

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Removing is tried again, since a process that was just killed may still be in the middle of making a file.
const CLEAN_UP: &str = r#"
read -r _
kill -s KILL -- "-$1"
for _ in 1 2 3 4 5; do rm -rf -- "$2" && exit; sleep 0.2; done
"#;

#[derive(Debug)]
pub(super) struct Guard {
    shell: Child,
    /// Leads the process group: as long as it lives, its number stands for our group and no other. It ends by itself
    /// with its own pipe, so there is no moment at which a kill of this process would leave it behind.
    leader: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Guards a folder and every process that is spawned into `group`.
    pub(super) fn over(folder: &Path) -> io::Result<Self> {
        let leader = quiet(Command::new("cat")).spawn()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", CLEAN_UP, "guard"]).arg(leader.id().to_string()).arg(folder);
        let mut shell = quiet(shell).spawn()?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, leader, pipe })
    }

    pub(super) fn group(&self) -> i32 {
        i32::try_from(self.leader.id()).expect("a process id is a positive i32")
    }
}

/// In a group of its own, so that Ctrl-C in a terminal does not end the guard before it has done its work.
fn quiet(mut command: Command) -> Command {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.pipe.take());
        // What cannot be waited for is gone already.
        let _ = self.shell.wait();
        let _ = self.leader.wait();
    }
}
