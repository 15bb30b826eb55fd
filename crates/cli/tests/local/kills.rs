//! Whoever is killed, and whenever: all jobs complete, nobody runs twice, nothing is left.

use std::time::{Duration, Instant};

use crate::ground::{Ground, iterations, kill, signal};
use crate::jobs::{CLUSTER, job};

/// How often something is killed; `METRONOME_KILLS` says otherwise.
const KILLS: u32 = 50;

/// A number from the environment, which `cargo xtask kills` sets.
fn variable(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn all_jobs_complete_though_scheduler_agent_and_members_are_killed_again_and_again() {
    let Some(ground) = Ground::new() else { return };
    let kills = variable("METRONOME_KILLS", KILLS);
    let longer = u64::from(kills.div_ceil(KILLS));
    let jobs: Vec<(String, u64)> =
        (0..8).map(|index| (format!("job-{index}"), longer * (60 + 30 * index))).collect();
    let documents =
        jobs.iter().zip(0..).map(|((name, iterations), at)| job(name, 2 + at % 3, 1, *iterations));
    let scenario = ground.scenario(&format!("{CLUSTER}{}", documents.collect::<String>()));
    let mut dice = Dice(variable("METRONOME_KILLS_SEED", 11).into());
    let mut scheduler = ground.start(&scenario, &[]);
    let (mut killed, begin) = ([0; 3], Instant::now());
    // A draw that finds no process to kill does not count.
    while killed.iter().sum::<u32>() < kills {
        let pause = Instant::now() + Duration::from_millis(50 + dice.below(500));
        while Instant::now() < pause {
            for (who, pids) in ground.members() {
                assert!(pids.len() < 2, "{who:?} runs twice: {pids:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        if let Some(status) = scheduler.try_wait().unwrap() {
            assert!(status.success(), "the world is lost after {killed:?} kills: {}", ground.said());
        }
        match dice.below(3) {
            0 => {
                scheduler.kill().unwrap();
                scheduler.wait().unwrap();
                scheduler = ground.start(&scenario, &[]);
                killed[0] += 1;
            }
            1 => {
                for pid in ground.agents() {
                    kill(pid);
                    killed[1] += 1;
                }
            }
            _ => {
                let members: Vec<i32> = ground.members().into_values().flatten().collect();
                if !members.is_empty() {
                    kill(members[dice.below(members.len() as u64) as usize]);
                    killed[2] += 1;
                }
            }
        }
    }
    let mut ran = ground.finish(&mut scheduler);
    // The last kill may have been that of a scheduler which had nothing left to do.
    if ran.document.is_null() {
        ran = ground.finish(&mut ground.start(&scenario, &[]));
    }
    ran.assert_all_completed();
    eprintln!("killed {killed:?} (scheduler, agent, members) in {:?}", begin.elapsed());
    assert!(killed.iter().all(|count| *count > 0), "{killed:?}");
    for (name, count) in &jobs {
        let done = iterations(&ground.of_job(name).join("iterations.csv"));
        let mut each = done.clone();
        each.sort_unstable();
        each.dedup();
        assert_eq!(each, (0..*count).collect::<Vec<u64>>(), "{name} did every iteration");
        assert!(done.last() == Some(&(count - 1)), "{name} did nothing after its last");
    }
    ground.assert_clean();
}

#[test]
fn a_member_that_is_killed_costs_what_came_after_the_last_checkpoint_and_no_more() {
    let Some(ground) = Ground::new() else { return };
    let scenario = ground.scenario(&format!("{CLUSTER}{}", job("one", 3, 1, 80)));
    let mut scheduler = ground.start(&scenario, &[]);
    let record = ground.of_job("one").join("iterations.csv");
    let checkpoint = ground.of_job("one").join("checkpoint/checkpoint.json");
    ground.wait_until(|| iterations(&record).len() >= 30 && checkpoint.exists());
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(&checkpoint).unwrap()).unwrap();
    let saved = saved["iterations"].as_u64().unwrap();
    let victim = ground.members().remove(&("default/one".to_owned(), "worker-2".to_owned())).unwrap();
    kill(victim[0]);
    let ran = ground.finish(&mut scheduler);
    ran.assert_all_completed();
    assert_eq!(ran.job("one")["restarts"], 1, "{}", ran.document);
    let done = iterations(&record);
    let back = done.windows(2).find(|pair| pair[1] <= pair[0]).map(|pair| pair[1]);
    assert!(
        back.is_none_or(|back| back >= saved),
        "from {back:?}, though {saved} were saved before the kill"
    );
    ground.assert_clean();
}

#[test]
fn whoever_is_interrupted_leaves_nothing() {
    let Some(ground) = Ground::new() else { return };
    let scenario = ground.scenario(&format!("{CLUSTER}{}", job("long", 4, 1, 100_000)));
    let mut scheduler = ground.start(&scenario, &[]);
    ground.wait_until(|| ground.members().len() >= 4);
    signal(scheduler.id() as i32, "TERM");
    let ran = ground.finish(&mut scheduler);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    assert_eq!(ran.job("long")["fate"], "unfinished");
    ground.assert_clean();
}
