//! Hosts that vanish, links that are cut, disks that are full.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::ground::{Ground, iterations};
use crate::jobs::{CLUSTER, job, job_that};

fn workload(faults: &str) -> String {
    format!(
        "---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {{name: mishaps}}\nspec: {{faults: [{faults}]}}\n"
    )
}

#[test]
fn when_a_host_vanishes_its_jobs_go_on_elsewhere_and_others_do_not_notice() {
    let Some(ground) = Ground::new() else { return };
    let faults = workload("{node: node-0, at: 2s}");
    let scenario = format!("{CLUSTER}{faults}{}{}", job("first", 2, 4, 90), job("second", 1, 4, 90));
    let ran = ground.run(&scenario, &[]);
    ran.assert_all_completed();
    let started = |name: &str| ran.job(name)["starts"].as_u64().unwrap();
    assert_eq!((started("first"), started("second")), (2, 1), "{} {}", ran.document, ran.said);
    assert_eq!(iterations(&ground.of_job("second").join("iterations.csv")).len(), 90);
    ground.assert_clean();
}

#[test]
fn when_a_link_is_cut_a_job_waits_and_goes_on_once_it_is_whole() {
    let Some(ground) = Ground::new() else { return };
    let faults = workload("{link: {from: node-0, to: rack-0}, at: 1s, for: 2s}");
    let scenario = format!("{CLUSTER}{faults}{}", job("crossing", 4, 4, 60));
    let ran = ground.run(&scenario, &[]);
    ran.assert_all_completed();
    assert_eq!(ran.job("crossing")["starts"], 1, "{}", ran.said);
    let took = ran.job("crossing")["iterationMs"]["measured"].as_f64().unwrap();
    assert!(took * 60.0 > 60.0 * 40.0 + 1_500.0, "it stood still for a while: {took} ms an iteration");
    ground.assert_clean();
}

#[test]
fn a_full_disk_costs_checkpoints_but_no_job() {
    let Some(ground) = Ground::new() else { return };
    // A small disk of its own, filled up by the job itself.
    let disk = ground.root();
    std::fs::create_dir(&disk).unwrap();
    let mount =
        |words: &[&str]| Command::new(words[0]).args(&words[1..]).arg(&disk).status().unwrap().success();
    assert!(mount(&["mount", "-t", "tmpfs", "-o", "size=4m", "none"]));
    let says = format!(
        "  command: [sh, -c, 'sleep 1; dd if=/dev/zero of={0}/full bs=64k 2> /dev/null; sleep 1; rm {0}/full']
  work: {{duration: 5s}}",
        disk.display()
    );
    let filler = job_that("filler", 1, 1, &says);
    let scenario = ground.scenario(&format!("{CLUSTER}{}{filler}", job("saves", 2, 1, 90)));
    let mut scheduler = ground.start(&scenario, &[]);
    let checkpoint = ground.of_job("saves").join("checkpoint/checkpoint.json");
    let saved = || std::fs::read(&checkpoint).unwrap_or_default();
    let full = disk.join("full");
    ground.wait_until(|| std::fs::metadata(&full).is_ok_and(|full| full.len() > 3_000_000));
    std::thread::sleep(Duration::from_millis(100));
    let (before, since) = (saved(), Instant::now());
    std::thread::sleep(Duration::from_millis(600));
    let (after, was_full) = (saved(), full.exists());
    eprintln!("looked for {:?}", since.elapsed());
    let ran = ground.finish(&mut scheduler);
    let done = iterations(&ground.of_job("saves").join("iterations.csv"));
    let last: serde_json::Value = serde_json::from_slice(&saved()).unwrap_or_default();
    ground.assert_clean();
    assert!(mount(&["umount"]));
    assert_eq!(ran.job("saves")["fate"], "completed", "{} {}", ran.document, ran.said);
    assert_eq!(ran.job("saves")["starts"], 1, "{}", ran.said);
    assert!(
        was_full && before == after && !before.is_empty(),
        "nothing can be saved, and what was saved stays"
    );
    assert_eq!(last["iterations"], 90, "there is room again");
    assert!(done.last() == Some(&89), "{done:?}");
}
