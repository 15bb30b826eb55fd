//! The executable of this crate's own tests. `metronome` has the shim as a hidden subcommand; the rest are schedulers
//! that do one thing and may be killed at it.

use std::num::NonZeroU64;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use metronome_core::model::cluster::{Cluster, NodeSpec};
use metronome_core::model::id::NodeId;
use metronome_core::model::units::Bandwidth;
use metronome_local::cgroup::{Groups, Hierarchies};
use metronome_local::hosts::Hosts;
use metronome_local::links::Scale;
use metronome_local::names::{MemberNumber, WorldName};
use metronome_local::process::{Launcher, Member, Spec, Status};
use metronome_local::state::WorldFolder;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((word, rest)) if word == "shim" => ExitCode::from(metronome_local::shim::main(rest)),
        Some((word, rest)) if word == "start" => start(Path::new(&rest[0])),
        Some((word, rest)) if word == "world" => world(Path::new(&rest[0]), &rest[1]),
        _ => ExitCode::FAILURE,
    }
}

/// Sets up a small world in which four members run, says so, and does nothing more.
fn world(root: &Path, name: &str) -> ExitCode {
    let name = WorldName::new(name).unwrap();
    let folder = WorldFolder::open(root, &name).unwrap();
    let mut cluster = Cluster::new(&["rack"]).unwrap();
    for (node, rack) in [("node-0", "a"), ("node-1", "a"), ("node-2", "b")] {
        let spec = NodeSpec { name: node.into(), domains: vec![rack.into()], ..NodeSpec::default() };
        cluster.add_node(&spec).unwrap();
    }
    cluster.connect_as_tree(&[Bandwidth(100_000_000), Bandwidth(100_000_000)]).unwrap();
    let mut hosts = Hosts::set_up(&folder, &cluster, Scale(NonZeroU64::MIN)).unwrap();
    let groups = Groups::of(Hierarchies::find(), &name);
    let mut members = Vec::new();
    for number in (0..4).map(MemberNumber) {
        let plug = hosts.plug(number, NodeId(number.0 % 3)).unwrap();
        let group = groups.make(number).unwrap();
        let line = format!("echo {name}; trap '' TERM; while :; do sleep 1; done");
        let spec = Spec {
            namespace: Some(plug.namespace.path()),
            entrances: group.entrances(),
            ..Spec::of(&["/bin/sh", "-c", &line])
        };
        members
            .push(Member::start(&launcher(), &folder.member(number).unwrap(), &spec, Some(group)).unwrap());
    }
    for member in &mut members {
        while member.status().unwrap() == Status::Starting {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    println!("up");
    std::thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}

fn launcher() -> Launcher {
    Launcher {
        program: std::env::current_exe().expect("a program has a name"),
        arguments: vec!["shim".into()],
    }
}

/// Starts what `to-start.json` says and does nothing more.
fn start(folder: &Path) -> ExitCode {
    let spec: Spec = metronome_local::state::read(&folder.join("to-start.json")).unwrap().unwrap();
    let _member = Member::start(&launcher(), folder, &spec, None).unwrap();
    std::thread::sleep(Duration::from_secs(60));
    ExitCode::SUCCESS
}
