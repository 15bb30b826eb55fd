//! What a switch sees: packets counted by their DSCP field, on the wire.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use metronome_agent::marks::Marks;
use metronome_agent::members::Roster;
use rustix::net::sockopt;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::agent::{Agent, eventually};
use crate::cgroup::Member;
use crate::namespaces::{Pair, may_make_namespaces};

/// Leaves that count, and the code points they count: those of class 2 and of the first, and everything else.
const OF_CLASS_2: &str = "1:2000";
const OF_THE_FIRST: &str = "1:3000";
const UNMARKED: &str = "1:ffff";

fn count_by_code_point(pair: &Pair) {
    for (leaf, byte) in [(OF_CLASS_2, "0x60"), (OF_THE_FIRST, "0xa0")] {
        pair.tc(&format!(
            "class add dev up parent 1:1 classid {leaf} htb rate 1mbit ceil 100mbit quantum 9014"
        ));
        let matched = format!("u32 match ip dsfield {byte} 0xfc flowid {leaf}");
        pair.tc(&format!("filter add dev up parent 1: protocol ip pref 5 {matched}"));
    }
}

/// The bytes that a leaf has sent.
fn sent(pair: &Pair, leaf: &str) -> u64 {
    let all = pair.tc("-s class show dev up");
    let after = all.split(&format!("class htb {leaf} ")).nth(1).unwrap_or_default();
    let bytes = after.split("Sent ").nth(1).and_then(|rest| rest.split(' ').next());
    bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{leaf}: {all}"))
}

/// Whether all that is sent for a while goes through this leaf.
fn all_goes_through(pair: &Pair, leaf: &str) -> Option<()> {
    let counted = || [OF_CLASS_2, OF_THE_FIRST, UNMARKED].map(|leaf| sent(pair, leaf));
    let before = counted();
    std::thread::sleep(Duration::from_millis(300));
    let grown = counted().into_iter().zip(before).map(|(after, before)| after - before);
    let leaves = [OF_CLASS_2, OF_THE_FIRST, UNMARKED].into_iter().zip(grown);
    let carrying: Vec<&str> = leaves.filter(|(_, bytes)| *bytes > 0).map(|(leaf, _)| leaf).collect();
    (carrying == [leaf]).then_some(())
}

fn roster(freezer: &Path, turn: &Value) -> Value {
    json!({"members": [{"job": "default/bert", "member": "worker-0", "token": "t", "freezer": freezer, "turn": turn,
        "leads": true, "address": "10.78.0.1"}]})
}

fn word(class: u8, valid_until: &str) -> Value {
    json!({"generation": 1, "anchor": "2026-11-16T12:00:00Z", "periodNs": 0, "turnNs": 0, "class": class,
        "validUntil": valid_until})
}

#[test]
fn every_packet_of_a_member_bears_the_class_of_its_job_until_the_agent_leaves() {
    if !may_make_namespaces() {
        return;
    }
    let pair = Pair::new("mark", 1, 100_000_000);
    count_by_code_point(&pair);
    let sink = pair.sink();
    // A program that knows of nothing. Asked to, it connects anew.
    let sends = "connect() { exec 3<>/dev/tcp/10.78.0.200/7000; }; trap connect USR1; connect
        while :; do printf %4000s >&3; sleep 0.02; done";
    let netns = pair.paths()[0].file_name().unwrap().to_owned();
    let mut program = Command::new("ip");
    program.args(["netns", "exec"]).arg(netns).args(["bash", "-c", sends]).stdout(Stdio::null());
    let Some(member) = Member::start("mark", &mut program) else { return };
    eventually("it sends, unmarked", || all_goes_through(&pair, UNMARKED));
    let agent = Agent::start(&roster(&member.folder, &word(2, "2100-01-01T00:00:00Z")), |options| {
        options.mark = true;
    });
    eventually("its class is 2", || all_goes_through(&pair, OF_CLASS_2));
    assert!(agent.metrics().contains("metronome_agent_marked_connections 1\n"), "{}", agent.metrics());
    let before = sent(&pair, UNMARKED);
    let process = Pid::from_child(&member.process);
    kill_process(process, Signal::USR1).unwrap();
    eventually("it connects anew", || (sent(&pair, UNMARKED) > before).then_some(()));
    eventually("that is seen", || all_goes_through(&pair, OF_CLASS_2));
    agent.says(&roster(&member.folder, &word(2, "2026-11-16T12:00:01Z")));
    eventually("its word has lapsed", || all_goes_through(&pair, OF_THE_FIRST));
    agent.says(&json!({"members": []}));
    eventually("it is no longer ours", || all_goes_through(&pair, UNMARKED));
    agent.says(&roster(&member.folder, &word(2, "2100-01-01T00:00:00Z")));
    eventually("it is again", || all_goes_through(&pair, OF_CLASS_2));
    agent.leave();
    eventually("nobody marks it", || all_goes_through(&pair, UNMARKED));
    drop((member, sink));
}

#[test]
fn a_connection_that_its_own_program_has_marked_is_left_alone() {
    const EXPEDITED: u8 = 0xb8;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let [ours, own] = [(); 2].map(|()| TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    sockopt::set_ip_tos(&own, EXPEDITED).unwrap();
    let marks_are = || [&ours, &own].map(|connection| sockopt::ip_tos(connection).unwrap());
    // A cgroup with this very process in it.
    let group = tempfile::tempdir().unwrap();
    std::fs::write(group.path().join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let mut marks = Marks::default();
    let says = |class: u8| {
        let word = word(class, "2100-01-01T00:00:00Z");
        serde_json::from_value::<Roster>(roster(group.path(), &word)).unwrap()
    };
    for (class, byte) in [(1, 0x80), (3, 0x40)] {
        marks.follow(&says(class), 0);
        marks.look(Instant::now());
        assert_eq!(marks_are(), [byte, EXPEDITED]);
    }
    // The next agent takes back what one that was killed has left.
    let mut next = Marks::default();
    next.follow(&says(3), 0);
    next.clear();
    assert_eq!(marks_are(), [0, EXPEDITED]);
}
