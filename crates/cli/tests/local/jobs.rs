//! Jobs that run to their end.

use std::fs;

use crate::ground::{Ground, iterations};

pub(crate) const CLUSTER: &str = "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  levels: [rack, node]
  nodes: [{count: 4, perRack: 2, cpu: 8, memory: 16Gi, gpus: 4}]
  links: {node: 100Gbps, rack: 100Gbps, withinNode: free}
";

/// A job of equal members, each with a core; what else there is to say of it.
pub(crate) fn job_that(name: &str, members: u32, gpus: u32, says: &str) -> String {
    format!(
        "---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  members: {members}
  resources: {{cpu: 1, memory: 1Gi, nvidia.com/gpu: {gpus}}}
{says}
"
    )
}

/// A job of a short loop; it may be stopped at any time.
pub(crate) fn job(name: &str, members: u32, gpus: u32, iterations: u64) -> String {
    let says = format!(
        "  traffic: {{period: 40ms, phases: [{{offset: 10ms, length: 8ms, rate: 50Gbps}}]}}
  work: {{iterations: {iterations}}}
  checkpoint: {{every: 200ms, takes: 1ms, restart: 10ms}}"
    );
    job_that(name, members, gpus, &says)
}

#[test]
fn jobs_of_all_shapes_run_to_their_end_and_nothing_is_left() {
    let Some(ground) = Ground::new() else { return };
    let servers = "---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {name: served}
spec:
  roles:
    - {name: ps, members: 1, resources: {cpu: 1, memory: 1Gi}}
    - {name: worker, members: 3, resources: {cpu: 1, memory: 1Gi, nvidia.com/gpu: 1}}
  model: resnet50/128
  work: {iterations: 20}
";
    let scenario = format!("{CLUSTER}{}{}{servers}", job("ring", 4, 3, 40), job("packed", 4, 1, 40));
    let ran = ground.run(&scenario, &[]);
    ran.assert_all_completed();
    for (name, count) in [("ring", 40), ("packed", 40), ("served", 20)] {
        assert_eq!(
            iterations(&ground.of_job(name).join("iterations.csv")),
            (0..count).collect::<Vec<u64>>(),
            "{name}"
        );
        let measured = &ran.job(name)["iterationMs"]["measured"];
        assert!(measured.as_f64().is_some_and(|ms| ms > 30.0), "{name} took {measured}");
    }
    ground.assert_clean();
}

#[test]
fn a_job_runs_its_own_command_and_is_told_where_the_others_are() {
    let Some(ground) = Ground::new() else { return };
    let out = ground.folder.path().join("told");
    fs::create_dir(&out).unwrap();
    let says = format!(
        "  command: [sh, -c]
  args:
    - |
      env > {out}/$RANK
      ip -4 -o address show eth0 > {out}/$RANK.address
      cat /proc/self/cgroup > {out}/$RANK.group
  work: {{duration: 5s}}",
        out = out.display()
    );
    let ran = ground.run(&format!("{CLUSTER}{}", job_that("own", 2, 4, &says)), &[]);
    ran.assert_all_completed();
    let told = |rank: u32, name: &str| {
        let all = fs::read_to_string(out.join(rank.to_string())).unwrap();
        all.lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")).map(str::to_owned))
            .unwrap_or_default()
    };
    for rank in 0..2 {
        assert_eq!((told(rank, "WORLD_SIZE"), told(rank, "LOCAL_RANK")), ("2".into(), "0".into()));
        assert_eq!(told(rank, "METRONOME_MEMBER"), format!("worker-{rank}"));
        assert_eq!(told(rank, "METRONOME_PEERS").split(',').count(), 2);
        let own = told(rank, "METRONOME_PEERS").split(',').nth(rank as usize).unwrap().to_owned();
        let address = fs::read_to_string(out.join(format!("{rank}.address"))).unwrap();
        assert!(address.contains(own.split(':').next().unwrap()), "{own} is its own: {address}");
        let group = fs::read_to_string(out.join(format!("{rank}.group"))).unwrap();
        assert!(group.contains(&format!("metronome/{}", ground.world)), "{group}");
    }
    assert_eq!(told(0, "MASTER_ADDR"), told(1, "MASTER_ADDR"));
    ground.assert_clean();
}

#[test]
fn a_command_that_fails_is_tried_again_and_then_given_up_with_the_reason() {
    let Some(ground) = Ground::new() else { return };
    let wrong = |name: &str, command: &str| {
        let says = format!("  backoffLimit: 1\n  command: {command}\n  work: {{duration: 1s}}");
        job_that(name, 1, 1, &says)
    };
    let scenario = format!(
        "{CLUSTER}{}{}{}",
        wrong("fails", "[sh, -c, 'sleep 0.3; exit 7']"),
        wrong("missing", "[/no/such/program]"),
        job("well", 2, 1, 20)
    );
    let ran = ground.run(&scenario, &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.said);
    assert_eq!(ran.job("fails")["fate"], "failed");
    assert_eq!(ran.job("fails")["why"], "worker-0 ended with 7");
    assert!(ran.job("fails")["starts"].as_u64() >= Some(2), "{}", ran.document);
    assert_eq!(ran.job("missing")["fate"], "failed");
    let why = ran.job("missing")["why"].as_str().unwrap();
    assert!(why.contains("/no/such/program"), "{why}");
    assert_eq!(ran.job("well")["fate"], "completed");
    ground.assert_clean();
}
