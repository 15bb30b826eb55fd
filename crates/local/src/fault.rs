//! Fault points: every side effect of a local world, in the order in which it happens, and a way to kill the process
//! right after one of them.
//!
//! A test sets [`VARIABLE`] to `NAME:COUNT:FILE`. The process that reaches the fault point `NAME` for the `COUNT`-th time
//! kills itself with `SIGKILL` if it can remove `FILE`, so that one process dies, once, however many inherit the
//! variable. Without the variable a fault point costs one load.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The environment variable that arms one fault point.
pub const VARIABLE: &str = "METRONOME_FAULT";

/// The process that causes a side effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    Scheduler,
    /// The process that starts a member and records its end.
    Shim,
    /// The process that becomes the member.
    Member,
}

/// The operation that a side effect belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Open,
    Start,
    Run,
    Leave,
    Clear,
    Close,
    Recover,
}

macro_rules! side_effects {
    ($($point:ident $name:literal $process:ident $phase:ident : $left:literal => $recovery:literal;)*) => {
        /// A side effect, named after what has just been done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FaultPoint { $($point),* }

        impl FaultPoint {
            /// All fault points, in the order in which a world reaches them.
            pub const ALL: &[Self] = &[$(Self::$point),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$point => $name),* }
            }

            pub fn process(self) -> Process {
                match self { $(Self::$point => Process::$process),* }
            }

            pub fn phase(self) -> Phase {
                match self { $(Self::$point => Phase::$phase),* }
            }

            /// What a kill at this point leaves behind.
            pub fn left_behind(self) -> &'static str {
                match self { $(Self::$point => $left),* }
            }

            /// How the next scheduler, or the one that runs, goes on.
            pub fn recovery(self) -> &'static str {
                match self { $(Self::$point => $recovery),* }
            }
        }
    };
}

// name, process, phase: what a kill leaves behind => how the world recovers
side_effects! {
    FolderLocked "folder-locked" Scheduler Open:
        "an empty folder" => "the folder is locked again";
    StateBegun "state-begun" Scheduler Open:
        "a state file without hosts" => "hosts are made";
    NamespacesMade "namespaces-made" Scheduler Open:
        "namespaces without devices" => "the state file has no hosts: all is removed and made again";
    SwitchesMade "switches-made" Scheduler Open:
        "switches without hosts" => "the state file has no hosts: all is removed and made again";
    HostMade "host-made" Scheduler Open:
        "some hosts" => "the state file has no hosts: all is removed and made again";
    HostsRecorded "hosts-recorded" Scheduler Open:
        "hosts, no agent" => "hosts are adopted, an agent is started";
    AgentTokenWritten "agent-token-written" Scheduler Open:
        "a token, no agent" => "the token is used again";
    AgentSpawned "agent-spawned" Scheduler Open:
        "an agent without a scheduler" => "the agent is killed, another is started";
    AgentTold "agent-told" Scheduler Open:
        "an agent with its list of members" => "the agent is killed, another is started";

    AttemptRecorded "attempt-recorded" Scheduler Start:
        "a start that is counted and did not happen" => "the job is placed again, as the next attempt";
    MemberNamespaceMade "member-namespace-made" Scheduler Start:
        "a namespace without a cable" => "the stray member is removed, the job is placed again";
    CablePlugged "cable-plugged" Scheduler Start:
        "a cable without an address" => "the stray member is removed, the job is placed again";
    AddressSet "address-set" Scheduler Start:
        "an address that switches do not know" => "the stray member is removed, the job is placed again";
    RouteSet "route-set" Scheduler Start:
        "routes to a member without a queue" => "the next member of this number replaces the routes";
    QueueMade "queue-made" Scheduler Start:
        "a queue of a member without a process" => "the next member of this number replaces the queue";
    TaskWritten "task-written" Scheduler Start:
        "a task file" => "the file is written again";
    MemberFolderMade "member-folder-made" Scheduler Start:
        "an empty member folder that the state file does not list" => "the stray member is removed, the job is placed again";
    GroupPartMade "group-part-made" Scheduler Start:
        "a control group in one of several hierarchies" => "the stray member is removed, the job is placed again";
    LimitsSet "limits-set" Scheduler Start:
        "a control group with limits" => "the stray member is removed, the job is placed again";
    SpecWritten "spec-written" Scheduler Start:
        "a member that nothing starts" => "the member is claimed as void and removed, the job is placed again";
    ShimSpawned "shim-spawned" Scheduler Start:
        "a running member that the state file does not list" => "the stray member is killed, the job restarts from its checkpoint";
    SizeWritten "size-written" Scheduler Start:
        "a running gang that the state file does not list" => "stray members are killed, the job restarts from its checkpoint";
    StateWritten "state-written" Scheduler Run:
        "a running gang that the state file lists" => "the gang is adopted";

    ShimClaimed "shim-claimed" Shim Start:
        "a member whose shim is gone" => "the member counts as lost, the gang restarts";
    GroupJoined "group-joined" Member Start:
        "a process in its control group, before its command" => "the shim records the end, the gang restarts";
    NamespaceJoined "namespace-joined" Member Start:
        "a process in its namespace, before its command" => "the shim records the end, the gang restarts";
    HostAssumed "host-assumed" Member Start:
        "a process with a host name of its own, before its command" => "the shim records the end, the gang restarts";
    MemberSpawned "member-spawned" Shim Start:
        "a process that dies with its shim" => "the member counts as lost, the gang restarts";
    StartRecorded "start-recorded" Shim Start:
        "a process that dies with its shim" => "the member counts as lost, the gang restarts";
    MemberEnded "member-ended" Shim Run:
        "an end that is not on record" => "the member counts as lost, the gang restarts from its checkpoint";
    EndRecorded "end-recorded" Shim Run:
        "a member that has ended, on record" => "the record is read";

    WeightSet "weight-set" Scheduler Run:
        "a control group with another CPU weight" => "the weight is set again";
    HostVanished "host-vanished" Scheduler Run:
        "a host without cables that the engine believes to be there" => "the fault is injected again";
    MembersLost "members-lost" Scheduler Run:
        "killed members on a host that is gone" => "the fault is injected again, the gang is placed elsewhere";
    HostBack "host-back" Scheduler Run:
        "a host with cables that the engine believes to be gone" => "the fault is injected again";
    LinkChanged "link-changed" Scheduler Run:
        "a link with another rate" => "the fault is injected again";

    WeightRaised "weight-raised" Scheduler Leave:
        "a member that was not asked yet" => "the gang is adopted, the engine decides again";
    LeaveRecorded "leave-recorded" Scheduler Leave:
        "a member that is to leave and does not know" => "all members are asked again, then the job is placed again";
    LeaveAsked "leave-asked" Scheduler Leave:
        "members of which some were asked to leave" => "all members are asked, then the job is placed again";
    KillRecorded "kill-recorded" Scheduler Leave:
        "a member that counts as killed and runs" => "the member is killed, the job restarts from its checkpoint";
    MemberKilled "member-killed" Scheduler Leave:
        "a killed member with all that it had" => "the pieces are removed, the job restarts from its checkpoint";

    CableRemoved "cable-removed" Scheduler Clear:
        "a namespace without a cable" => "the other pieces are removed";
    RouteRemoved "route-removed" Scheduler Clear:
        "a queue without routes" => "the other pieces are removed";
    QueueRemoved "queue-removed" Scheduler Clear:
        "a namespace without a queue" => "the other pieces are removed";
    MemberNamespaceRemoved "member-namespace-removed" Scheduler Clear:
        "a control group and a folder" => "the other pieces are removed";
    GroupPartRemoved "group-part-removed" Scheduler Clear:
        "a control group in some of several hierarchies" => "the other pieces are removed";
    GroupRemoved "group-removed" Scheduler Clear:
        "a folder of a member that the state file lists" => "the log is kept, the folder is removed";
    LogKept "log-kept" Scheduler Clear:
        "a folder of a member without its log" => "the folder is removed";
    MemberFolderRemoved "member-folder-removed" Scheduler Clear:
        "a member in the state file of which there is nothing" => "the job is placed again";
    JobEndRecorded "job-end-recorded" Scheduler Clear:
        "a job that is over, with all that its members had" => "the pieces are removed, the job stays over";

    AgentStopped "agent-stopped" Scheduler Close:
        "a world without an agent" => "an agent is started and stopped";
    MembersRemoved "members-removed" Scheduler Close:
        "a world without members" => "what is left is removed";
    GroupsRemoved "groups-removed" Scheduler Close:
        "hosts without control groups" => "what is left is removed";
    WorldNamespaceRemoved "world-namespace-removed" Scheduler Close:
        "some of the hosts" => "what is left is removed and made again";

    HostsAdopted "hosts-adopted" Scheduler Recover:
        "a recovery that was cut off" => "recovery begins again";
    StraysRemoved "strays-removed" Scheduler Recover:
        "a recovery that was cut off" => "recovery begins again";
    JobAdopted "job-adopted" Scheduler Recover:
        "a recovery that was cut off" => "recovery begins again";
}

/// What [`VARIABLE`] says.
#[derive(Debug)]
struct Armed {
    name: String,
    count: u32,
    file: PathBuf,
    reached: AtomicU32,
}

impl Armed {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(3, ':');
        let (name, count, file) = (words.next()?, words.next()?, words.next()?);
        let (count, reached) = (count.parse().ok()?, AtomicU32::new(0));
        Some(Self { name: name.to_owned(), count, file: file.into(), reached })
    }

    fn is_due(&self, point: FaultPoint) -> bool {
        self.name == point.name()
            && self.reached.fetch_add(1, Ordering::Relaxed) + 1 == self.count
            && std::fs::remove_file(&self.file).is_ok()
    }
}

/// Marks that a side effect has just happened. The process ends here if the point is armed.
pub(crate) fn after(point: FaultPoint) {
    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();
    let armed = ARMED.get_or_init(|| std::env::var(VARIABLE).ok().and_then(|text| Armed::parse(&text)));
    if armed.as_ref().is_some_and(|armed| armed.is_due(point)) {
        let _ = kill(Pid::this(), Signal::SIGKILL);
        // The signal ends the process at the latest when this thread is scheduled again.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_point_has_its_own_name() {
        let mut names: Vec<&str> = FaultPoint::ALL.iter().map(|point| point.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FaultPoint::ALL.len());
    }

    #[test]
    fn an_armed_point_is_due_once_and_at_its_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("once");
        std::fs::write(&file, "").unwrap();
        let armed = Armed::parse(&format!("shim-spawned:2:{}", file.display())).unwrap();
        assert!(!armed.is_due(FaultPoint::SpecWritten));
        assert!(!armed.is_due(FaultPoint::ShimSpawned), "the first time");
        assert!(armed.is_due(FaultPoint::ShimSpawned), "the second time");
        assert!(!file.exists());
        let again = Armed::parse(&format!("shim-spawned:1:{}", file.display())).unwrap();
        assert!(!again.is_due(FaultPoint::ShimSpawned), "another process was killed already");
        assert!(Armed::parse("shim-spawned").is_none());
    }
}
