//! `metronome local logs`

mod choose;
mod follow;
mod print;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use metronome_local::logs::MemberLog;
use metronome_local::names::WorldName;
use metronome_local::state::WorldFolder;
use metronome_sim::near::meant_or_known;

use crate::failure::Failure;
use crate::reply::Reply;
use print::Printer;

/// Print the logs of members that run or have run on this machine
///
/// Without a job, logs of all jobs are printed. Where several members are printed, each line begins with the member's
/// name. Of every member the last five attempts are kept until the world runs again or is cleaned. The scheduler need not
/// be running.
#[derive(Debug, Args)]
pub(crate) struct LocalLogs {
    /// Name of the job, or `namespace/name`; all jobs, if not given
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// Only this member, such as worker-3
    #[arg(long, short, value_name = "NAME")]
    member: Option<String>,
    /// Name of the world on this machine
    #[arg(long, value_name = "NAME", default_value = "local")]
    world: String,
    /// Where worlds have their folders
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Go on printing until the run is over
    #[arg(long, short)]
    follow: bool,
    /// Print the last N lines of each member; all, if not given
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Print the attempt before the newest
    #[arg(long, conflicts_with = "follow")]
    previous: bool,
}

/// A log may be moved to its job's folder between the moments in which it is found and opened.
const TRIES: u32 = 5;

pub(crate) fn run(args: &LocalLogs) -> Result<Reply, Failure> {
    let folder = args.world_folder()?;
    if args.follow {
        return follow::follow(&folder, args);
    }
    let mut tries = 1;
    loop {
        let logs = choose::chosen(&folder, args)?;
        let texts: io::Result<Vec<Vec<u8>>> = logs.iter().map(read_whole).collect();
        match texts {
            Ok(texts) => return Ok(print_all(&logs, &texts, args.tail)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => tries += 1,
            Err(error) => return Err(unreadable(&folder, &error)),
        }
    }
}

fn print_all(logs: &[MemberLog], texts: &[Vec<u8>], tail: Option<usize>) -> Reply {
    let printer = Printer::of(logs.iter());
    for (log, text) in logs.iter().zip(texts) {
        for line in last(&lines(text), tail) {
            if !printer.print(log, line) {
                return Reply::nothing();
            }
        }
    }
    Reply::nothing()
}

fn read_whole(log: &MemberLog) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for file in &log.files {
        File::open(file)?.read_to_end(&mut text)?;
    }
    Ok(text)
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect()
}

fn last<'a, 'b>(lines: &'a [&'b [u8]], tail: Option<usize>) -> &'a [&'b [u8]] {
    &lines[lines.len().saturating_sub(tail.unwrap_or(lines.len()))..]
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::world(format!("read {}", path.display())).because(error);
    match error.kind() {
        io::ErrorKind::PermissionDenied => failure.hint("the world belongs to another user: try `sudo`"),
        _ => failure,
    }
}

impl LocalLogs {
    fn world_folder(&self) -> Result<PathBuf, Failure> {
        let root = self.dir.clone().unwrap_or_else(WorldFolder::usual_root);
        let world = WorldName::new(&self.world).map_err(|error| Failure::input(error.to_string()))?;
        let folder = root.join(world.as_str());
        match std::fs::read_dir(&folder) {
            Ok(_) => Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.no_world(&root)),
            Err(error) => Err(unreadable(&folder, &error)),
        }
    }

    fn no_world(&self, root: &Path) -> Failure {
        let failure = Failure::input(format!("find a world `{}` in {}", self.world, root.display()));
        let known: Vec<String> = WorldFolder::worlds(root).iter().map(ToString::to_string).collect();
        if !known.is_empty() {
            return failure.hint(meant_or_known(&self.world, known.iter().map(String::as_str)));
        }
        match self.dir {
            Some(_) => {
                failure.hint("there are no worlds in this folder; `--dir` is that of `metronome local run`")
            }
            None => failure.hint("`metronome local run` starts one; worlds of root are seen with `sudo`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_printed_where_a_number_is_given() {
        let all = lines(b"one\ntwo\n\nlast");
        assert_eq!(all, [&b"one"[..], b"two", b"", b"last"]);
        assert_eq!(last(&all, Some(2)), [&b""[..], b"last"]);
        assert_eq!(last(&all, Some(9)).len(), 4);
        assert_eq!(last(&all, None).len(), 4);
        assert_eq!(lines(b"").len(), 0);
    }
}
