//! Members as processes: how they start, end, are found again and leave nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use metronome_core::model::units::{Cpu, Memory};
use metronome_local::cgroup::{Group, Groups, Hierarchies};
use metronome_local::names::MemberNumber;
use metronome_local::process::{Ended, How, Launcher, Member, Spec, Status};
use metronome_local::state::WorldFolder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::worlds::TestWorld;

pub(crate) fn launcher() -> Launcher {
    Launcher { program: env!("CARGO_BIN_EXE_metronome-local-shim").into(), arguments: vec!["shim".into()] }
}

/// Until something is so; not for ever.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ended(member: &mut Member) -> Ended {
    let mut found = None;
    wait_until("a member ends", || match member.status().unwrap() {
        Status::Ended(ended) => {
            found = Some(ended);
            true
        }
        Status::Lost => panic!("nobody knows how it ended"),
        Status::Starting | Status::Running { .. } => false,
    });
    found.unwrap()
}

fn running(member: &mut Member) -> i32 {
    let mut found = 0;
    wait_until("a member runs", || match member.status().unwrap() {
        Status::Running { pid } => {
            found = pid;
            true
        }
        Status::Starting => false,
        other => panic!("{other:?}"),
    });
    found
}

/// A world whose members have groups where that is possible.
struct Stage {
    folder: WorldFolder,
    groups: Groups,
    /// Last, when nobody holds its lock any more: it removes what there is.
    _world: TestWorld,
}

impl Stage {
    fn new() -> Self {
        let world = TestWorld::new();
        let folder = WorldFolder::open(world.root(), &world.name).unwrap();
        let groups = Groups::of(Hierarchies::find(), &world.name);
        Self { folder, groups, _world: world }
    }

    fn folder(&self) -> PathBuf {
        self.folder.member(MemberNumber(0)).unwrap()
    }

    fn group(&self) -> Group {
        self.groups.make(MemberNumber(0)).unwrap()
    }

    /// Starts a line of shell.
    fn start(&self, line: &str) -> Member {
        let group = self.group();
        let spec = Spec { entrances: group.entrances(), ..Spec::of(&["/bin/sh", "-c", line]) };
        Member::start(&launcher(), &self.folder(), &spec, Some(group)).unwrap()
    }

    /// The same without any group, as it is without root.
    fn start_plainly(&self, line: &str) -> Member {
        Member::start(&launcher(), &self.folder(), &Spec::of(&["/bin/sh", "-c", line]), None).unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default()
    }

    /// Until the member says it is so far.
    fn wait_for(&self, word: &str) {
        wait_until(word, || self.log().contains(word));
    }

    /// A number that the member has written into its log, `name=123`.
    fn number(&self, name: &str) -> i32 {
        let log = self.log();
        let line = log.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("no {name} in {log}")).parse().unwrap()
    }
}

fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn how_a_member_ends_is_on_record() {
    let stage = Stage::new();
    for (line, how) in [
        ("echo out; echo err >&2; exit 0", How::Exit(0)),
        ("exit 7", How::Exit(7)),
        ("kill -9 $$", How::Signal(9)),
        ("exit 127", How::Exit(127)),
    ] {
        let ended = ended(&mut stage.start(line));
        assert_eq!(ended.how, how);
        assert!(!ended.asked);
        let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert!(since.as_nanos() as u64 - ended.at_ns < 60_000_000_000);
    }
    assert_eq!(ended(&mut stage.start("echo out; echo err >&2")).how, How::Exit(0));
    assert_eq!(stage.log(), "out\nerr\n");
}

#[test]
fn a_command_that_cannot_be_started_is_told_in_words() {
    let stage = Stage::new();
    let start =
        |spec: &Spec| ended(&mut Member::start(&launcher(), &stage.folder(), spec, None).unwrap()).how;
    let How::NotStarted(why) = start(&Spec::of(&["/no/such/program"])) else { panic!() };
    assert!(why.starts_with("cannot run `/no/such/program`: No such file"), "{why}");
    let nowhere = Spec { namespace: Some("/run/netns/mtr-none".into()), ..Spec::of(&["true"]) };
    let How::NotStarted(why) = start(&nowhere) else { panic!() };
    assert!(why.starts_with("cannot open /run/netns/mtr-none"), "{why}");
    assert_eq!(start(&Spec::of(&[])), How::NotStarted("there is no command".into()));
}

#[test]
fn a_member_is_given_its_environment_and_its_folder() {
    let stage = Stage::new();
    let environment = [("METRONOME_JOB".to_owned(), "default/bert".to_owned())].into();
    let spec = Spec {
        environment,
        folder: Some("/".into()),
        ..Spec::of(&["/bin/sh", "-c", "echo $METRONOME_JOB $(pwd)"])
    };
    let mut member = Member::start(&launcher(), &stage.folder(), &spec, None).unwrap();
    assert_eq!(ended(&mut member).how, How::Exit(0));
    assert_eq!(stage.log(), "default/bert /\n");
}

#[test]
fn who_is_asked_to_leave_may_save_first() {
    let stage = Stage::new();
    let mut member = stage.start("trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    stage.wait_for("ready");
    assert!(!member.was_asked());
    member.ask_to_leave().unwrap();
    let ended = ended(&mut member);
    assert_eq!((ended.how, ended.asked), (How::Exit(3), true));
    assert!(stage.log().contains("saved"));
}

#[test]
fn who_is_asked_before_it_runs_leaves_all_the_same() {
    for _ in 0..10 {
        let stage = Stage::new();
        let mut member = stage.start("sleep 60");
        member.ask_to_leave().unwrap();
        let ended = ended(&mut member);
        assert!(ended.asked);
        assert!(matches!(ended.how, How::Signal(15) | How::NotStarted(_)), "{ended:?}");
    }
}

#[test]
fn who_is_killed_leaves_nobody_whenever_it_happens() {
    for (at, with_group) in (0..12).map(|at| (at, at % 2 == 0)) {
        let stage = Stage::new();
        let line = "sleep 62 & echo child=$!; wait";
        let mut member = if with_group { stage.start(line) } else { stage.start_plainly(line) };
        std::thread::sleep(Duration::from_millis(3 * at));
        member.kill().unwrap();
        assert!(matches!(member.status().unwrap(), Status::Ended(_) | Status::Lost));
        assert_eq!(stage.groups.find(MemberNumber(0)).processes(), []);
        if stage.log().contains("child=") {
            let child = stage.number("child");
            wait_until("its child is gone", || !is_alive(child));
        }
    }
}

#[test]
fn with_its_group_goes_who_has_left_its_session() {
    let stage = Stage::new();
    if Hierarchies::find().freezer().is_none() {
        return metronome_skip::skip("no control groups");
    }
    let mut member = stage.start("setsid sh -c 'echo child=$$; exec sleep 61' & wait");
    stage.wait_for("child=");
    let child = stage.number("child");
    member.kill().unwrap();
    assert!(!is_alive(child));
    assert_eq!(stage.groups.find(MemberNumber(0)).processes(), []);
}

#[test]
fn a_member_dies_with_its_shim_and_is_lost() {
    let stage = Stage::new();
    let mut member = stage.start("echo shim=$PPID; while :; do sleep 0.01; done");
    let pid = running(&mut member);
    stage.wait_for("shim=");
    kill(Pid::from_raw(stage.number("shim")), Signal::SIGKILL).unwrap();
    wait_until("it is lost", || member.status().unwrap() == Status::Lost);
    wait_until("it is gone", || !is_alive(pid));
}

#[test]
fn a_scheduler_that_comes_later_finds_who_runs_and_who_has_ended() {
    let stage = Stage::new();
    // A scheduler that starts a member and is gone.
    let spec =
        Spec { entrances: stage.group().entrances(), ..Spec::of(&["/bin/sh", "-c", "echo ready; sleep 63"]) };
    fs::write(stage.folder().join("to-start.json"), serde_json::to_string(&spec).unwrap()).unwrap();
    let program = launcher().program;
    let mut scheduler = Command::new(program).arg("start").arg(stage.folder()).spawn().unwrap();
    stage.wait_for("ready");
    scheduler.kill().unwrap();
    scheduler.wait().unwrap();

    let mut member = Member::adopt(&stage.folder(), Some(stage.group())).unwrap();
    let pid = running(&mut member);
    assert!(is_alive(pid));
    assert!(!member.was_asked());
    member.ask_to_leave().unwrap();
    let first = ended(&mut member);
    assert_eq!((&first.how, first.asked), (&How::Signal(15), true));
    let mut again = Member::adopt(&stage.folder(), None).unwrap();
    assert_eq!(again.status().unwrap(), Status::Ended(first));
}

#[test]
fn a_shim_that_comes_after_its_member_was_given_up_starts_nothing() {
    let stage = Stage::new();
    write_spec(&stage, "first");
    let mut member = Member::adopt(&stage.folder(), None).unwrap();
    assert_eq!(member.status().unwrap(), Status::Lost);
    assert!(run_shim(&stage, "first"));
    assert_eq!(member.status().unwrap(), Status::Lost);
    assert!(!stage.folder().join("started.json").exists());
}

#[test]
fn a_shim_of_an_earlier_start_starts_nothing_and_claims_nothing() {
    let stage = Stage::new();
    write_spec(&stage, "second");
    assert!(run_shim(&stage, "first"));
    assert!(!stage.folder().join("claim.json").exists(), "the shim of the second start is still to come");
    assert!(!stage.folder().join("started.json").exists());
}

/// What a scheduler writes before it starts a shim.
fn write_spec(stage: &Stage, start_id: &str) {
    let spec = Spec { start_id: start_id.to_owned(), ..Spec::of(&["sleep", "64"]) };
    fs::write(stage.folder().join("spec.json"), serde_json::to_string(&spec).unwrap()).unwrap();
}

/// Runs a shim that a scheduler had started for one start of the member; whether it ends well.
fn run_shim(stage: &Stage, start_id: &str) -> bool {
    let mut shim = Command::new(launcher().program);
    shim.args(["shim", "watch"]).arg(stage.folder()).arg(start_id).status().unwrap().success()
}

#[test]
fn a_number_that_means_another_process_now_is_not_signalled() {
    let stage = Stage::new();
    let mut member = stage.start("echo ready; sleep 65");
    running(&mut member);
    member.kill().unwrap();
    // As if the machine had given the shim's and the member's number to this very process.
    let own = std::process::id();
    let record = format!(r#"{{"pid": {own}, "began": 1, "boot": "x"}}"#);
    fs::write(stage.folder().join("started.json"), &record).unwrap();
    fs::write(stage.folder().join("claim.json"), format!(r#"{{"shim": {record}}}"#)).unwrap();
    fs::remove_file(stage.folder().join("ended.json")).unwrap();
    let mut member = Member::adopt(&stage.folder(), None).unwrap();
    assert_eq!(member.status().unwrap(), Status::Lost);
    member.ask_to_leave().unwrap();
    member.kill().unwrap();
}

#[test]
fn what_a_member_writes_without_end_is_kept_to_the_limit() {
    let stage = Stage::new();
    let spec = Spec { log_limit: 10_000, ..Spec::of(&["/bin/sh", "-c", "seq 1 200000; echo last"]) };
    let mut member = Member::start(&launcher(), &stage.folder(), &spec, None).unwrap();
    assert_eq!(ended(&mut member).how, How::Exit(0));
    let size = |name: &str| fs::metadata(stage.folder().join(name)).unwrap().len();
    assert!(size("log") + size("log.1") < 300_000, "{} and {}", size("log"), size("log.1"));
    assert!(stage.log().ends_with("last\n"));
}

#[test]
fn cores_are_limited_and_the_limit_is_changed_in_place() {
    let stage = Stage::new();
    if Hierarchies::find().cpu().is_none() {
        return metronome_skip::skip("no control groups for CPU");
    }
    let group = stage.group();
    group.set_cpus(Cpu(100)).unwrap();
    group.set_cpu_weight(200).unwrap();
    group.set_memory(Memory(256 << 20)).unwrap();
    let mut member = stage.start("while :; do :; done");
    let pid = running(&mut member);
    let spent = |length: Duration| {
        let before = cpu_time(pid);
        std::thread::sleep(length);
        (cpu_time(pid) - before).as_secs_f64() / length.as_secs_f64()
    };
    let little = spent(Duration::from_millis(800));
    group.set_cpus(Cpu(400)).unwrap();
    let more = spent(Duration::from_millis(800));
    eprintln!("a tenth of a core: {little:.3}; four tenths: {more:.3}");
    assert!(little < 0.15, "{little}");
    assert!(more > little * 1.5 && more < 0.5, "{more}");
    member.kill().unwrap();
}

fn cpu_time(pid: i32) -> Duration {
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn who_is_frozen_stands_still_and_can_be_killed() {
    let stage = Stage::new();
    if Hierarchies::find().freezer().is_none() {
        return metronome_skip::skip("no control groups that freeze");
    }
    let mut member = stage.start("while :; do echo beat; sleep 0.01; done");
    stage.wait_for("beat");
    let group = stage.group();
    group.freeze().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let frozen = stage.log().len();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(stage.log().len(), frozen);
    group.thaw().unwrap();
    wait_until("it goes on", || stage.log().len() > frozen);
    group.freeze().unwrap();
    member.kill().unwrap();
    assert!(matches!(member.status().unwrap(), Status::Ended(Ended { how: How::Signal(9), .. })));
    group.remove().unwrap();
    assert!(group.entrances().iter().all(|entrance| !Path::new(entrance).exists()));
}
