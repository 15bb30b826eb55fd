//! Schedulers that are killed at any point, and what is left of their worlds after cleaning: nothing.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use metronome_local::LocalError;
use metronome_local::cleanup::{Leftovers, clean, leftovers};
use metronome_local::state::WorldFolder;

use crate::flows::alone;
use crate::processes::launcher;
use crate::worlds::TestWorld;

fn scheduler(world: &TestWorld) -> Child {
    let mut command = Command::new(launcher().program);
    command.arg("world").arg(world.root()).arg(world.name.as_str()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn kill(scheduler: &mut Child) {
    scheduler.kill().unwrap();
    scheduler.wait().unwrap();
}

fn wait_until_up(scheduler: &mut Child) {
    let mut said = [0; 3];
    scheduler.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"up\n");
}

/// Processes that have the world's name among their words, whoever started them: counted without any record.
fn processes_of(world: &TestWorld) -> usize {
    let name = world.name.as_str();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let ours = entries.filter(|entry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(name)
    });
    ours.count()
}

#[test]
fn whenever_a_scheduler_is_killed_nothing_is_left_and_nothing_of_others_is_touched() {
    let (Some(world), Some(other)) = (TestWorld::with_network(), TestWorld::with_network()) else { return };
    let _alone = alone();
    let began = Instant::now();
    let mut neighbour = scheduler(&other);
    wait_until_up(&mut neighbour);
    let takes = began.elapsed();
    let before = leftovers(other.root(), &other.name);
    // 3 hosts, the fabric, 4 members; a group for each member and one for all; shims, shells and what they wait for.
    assert_eq!((before.namespaces, before.groups, before.folders), (8, 5, 1));
    assert!(before.processes >= 8, "{before:?}");

    let mut found = Vec::new();
    for round in 0..30 {
        let mut scheduler = scheduler(&world);
        // The last rounds are killed when all is up.
        if round < 26 {
            std::thread::sleep(takes * round / 26);
        } else {
            wait_until_up(&mut scheduler);
        }
        kill(&mut scheduler);
        found.push(clean(world.root(), &world.name).unwrap());
        assert_eq!(leftovers(world.root(), &world.name), Leftovers::default(), "round {round}");
        assert_eq!(processes_of(&world), 0, "round {round}");
    }
    // The rounds were killed at different points.
    found.sort_unstable_by_key(|found| (found.namespaces, found.groups, found.processes));
    found.dedup();
    eprintln!(
        "{} different states were cleaned up, from {:?} to {:?}",
        found.len(),
        found[0],
        found[found.len() - 1]
    );
    assert!(found.len() >= 4, "{found:?}");

    assert_eq!(leftovers(other.root(), &other.name).namespaces, before.namespaces);
    assert_eq!(leftovers(other.root(), &other.name).groups, before.groups);
    assert!(processes_of(&other) >= 8);
    assert!(neighbour.try_wait().unwrap().is_none());
    kill(&mut neighbour);
}

#[test]
fn a_world_that_somebody_runs_is_not_cleaned() {
    let world = TestWorld::new();
    let folder = world.open();
    folder.write("world.json", &1).unwrap();
    let refused = clean(world.root(), &world.name).unwrap_err();
    assert!(matches!(refused, LocalError::Held { .. }));
    assert_eq!(refused.to_string(), format!("use the world `{}`: another scheduler holds it", world.name));
    assert_eq!(folder.read("world.json").unwrap(), Some(1));
    drop(folder);
    clean(world.root(), &world.name).unwrap();
    assert_eq!(WorldFolder::worlds(world.root()), []);
}
