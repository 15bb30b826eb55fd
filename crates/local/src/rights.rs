//! What is possible on this machine, and what follows where something is not.

use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, thread};

use nix::sched::{CloneFlags, unshare};
use serde::Serialize;

use crate::cgroup::Hierarchies;

/// What a world may do here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rights {
    /// Hosts are namespaces, and links are shaped.
    pub network: bool,
    /// Cores of members are limited.
    pub cpu: bool,
    /// Memory of members is limited.
    pub memory: bool,
    /// Members can be frozen.
    pub freezer: bool,
    pub missing: Vec<Missing>,
}

/// Something that is not there, and what follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub what: &'static str,
    pub follows: &'static str,
}

/// What was found; the rest is judgement.
#[derive(Clone, Copy, Debug)]
struct Found {
    root: bool,
    ip: bool,
    tc: bool,
    bridge: bool,
    shaping: bool,
    cpu: bool,
    memory: bool,
    freezer: bool,
}

impl Rights {
    /// Looks at this machine.
    pub fn look() -> Self {
        let root = nix::unistd::geteuid().is_root();
        let [ip, tc, bridge] = ["ip", "tc", "bridge"].map(is_there);
        let groups = Hierarchies::find();
        Self::judge(Found {
            root,
            ip,
            tc,
            bridge,
            shaping: root && ip && tc && shaping_works(),
            cpu: groups.cpu().is_some(),
            memory: groups.memory().is_some(),
            freezer: groups.freezer().is_some(),
        })
    }

    fn judge(found: Found) -> Self {
        const NO_LINKS: &str = "plain processes on loopback, links are not shaped";
        let mut missing = Vec::new();
        let mut need = |there: bool, what, follows| {
            if !there {
                missing.push(Missing { what, follows });
            }
        };
        if found.root {
            need(found.ip && found.tc && found.bridge, "`ip`, `tc` and `bridge` of iproute2", NO_LINKS);
            if found.ip && found.tc {
                need(found.shaping, "network namespaces with HTB", NO_LINKS);
            }
            need(found.cpu, "cgroups for CPU", "cores of members are not limited");
            need(found.memory, "cgroups for memory", "memory of members is not limited");
            need(found.freezer, "cgroups that freeze", "turns are kept by the members themselves only");
        } else {
            need(
                false,
                "root",
                "plain processes on loopback, links are not shaped, cores and memory not limited",
            );
        }
        Self {
            network: found.root && found.bridge && found.shaping,
            cpu: found.root && found.cpu,
            memory: found.root && found.memory,
            freezer: found.root && found.freezer,
            missing,
        }
    }
}

fn is_there(program: &str) -> bool {
    says_yes(program, "-V")
}

fn says_yes(program: &str, words: &str) -> bool {
    let mut command = Command::new(program);
    command.args(words.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether a device can be shaped in a namespace of its own: one without a name, which goes with its thread.
fn shaping_works() -> bool {
    let look = || {
        unshare(CloneFlags::CLONE_NEWNET).is_ok()
            && says_yes("ip", "link add dev up type veth peer name down")
            && says_yes("ip", "link add dev br0 type bridge")
            && says_yes("tc", "qdisc add dev up root handle 1: htb default 0xffff")
    };
    thread::scope(|scope| scope.spawn(look).join().unwrap_or(false))
}

/// Whether a file is there and may be written.
pub(crate) fn may_write(path: &Path) -> bool {
    fs::OpenOptions::new().append(true).open(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Found = Found {
        root: true,
        ip: true,
        tc: true,
        bridge: true,
        shaping: true,
        cpu: true,
        memory: true,
        freezer: true,
    };

    #[test]
    fn where_all_is_there_nothing_is_missing() {
        let rights = Rights::judge(ALL);
        assert!(rights.network && rights.cpu && rights.memory && rights.freezer);
        assert_eq!(rights.missing, []);
    }

    #[test]
    fn without_root_one_sentence_says_it_all() {
        let rights = Rights::judge(Found { root: false, shaping: false, ..ALL });
        assert!(!rights.network && !rights.cpu && !rights.memory && !rights.freezer);
        assert_eq!(rights.missing.len(), 1);
        assert_eq!(rights.missing[0].what, "root");
    }

    #[test]
    fn each_thing_that_is_missing_is_named_with_what_follows() {
        let rights = Rights::judge(Found { tc: false, shaping: false, memory: false, ..ALL });
        assert!(!rights.network && rights.cpu && !rights.memory);
        let what: Vec<&str> = rights.missing.iter().map(|missing| missing.what).collect();
        assert_eq!(what, ["`ip`, `tc` and `bridge` of iproute2", "cgroups for memory"]);
    }

    #[test]
    fn several_may_look_at_once_and_see_the_same() {
        let seen: Vec<Rights> = thread::scope(|scope| {
            let looks: Vec<_> = (0..4).map(|_| scope.spawn(Rights::look)).collect();
            looks.into_iter().map(|look| look.join().unwrap()).collect()
        });
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
        let all = seen[0].network && seen[0].cpu && seen[0].memory && seen[0].freezer;
        assert_eq!(seen[0].missing.is_empty(), all);
    }
}
