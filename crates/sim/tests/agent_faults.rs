//! Agents that do not apply traffic policies: the jobs of their nodes share links fairly, and complete.

use std::path::Path;

use metronome_core::model::policy::Policy;
use metronome_sim::outcome::Fate;
use metronome_sim::scenario::Scenario;
use metronome_sim::world::{self, RunOptions};

/// The time at which the last of two jobs that share links ends.
fn makespan(faults: &str) -> f64 {
    let head = "apiVersion: metronome.dev/v1alpha1\nkind:";
    let job = |name: &str, gpus: u32, memory: u32| {
        format!(
            "---\n{head} TrainingJob\nmetadata: {{name: {name}}}\nspec: {{model: vgg11/512, members: 4, \
             resources: {{cpu: 8, memory: {memory}Gi, nvidia.com/gpu: {gpus}}}, work: {{iterations: 200}}}}\n"
        )
    };
    let text = format!(
        "{head} Cluster\nmetadata: {{name: lab}}\nspec: {{levels: [node], nodes: [{{count: 4, cpu: 64, \
         memory: 512Gi, gpus: 8}}], links: {{node: 100Gbps, withinNode: free}}}}\n---\n\
         {head} Workload\nmetadata: {{name: it}}\nspec: {{noise: {{compute: 1%}}, faults: [{faults}]}}\n{}{}",
        job("first", 5, 64),
        job("second", 1, 300)
    );
    let scenario = Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap();
    let outcome = world::run(&scenario, RunOptions::new(Policy::named("metronome").unwrap()), &|_| {});
    assert_eq!((outcome.alarms, &outcome.violations[..]), (0, &[][..]), "{faults}");
    assert!(outcome.jobs.iter().all(|job| job.fate == Fate::Completed), "{faults}");
    outcome.jobs.iter().filter_map(|job| job.end).map(|at| at.0 as f64 / 1e9).fold(0.0, f64::max)
}

#[test]
fn jobs_of_an_agent_that_applies_nothing_share_fairly_and_complete() {
    let applied = makespan("");
    for agent in ["deaf", "wrong", "fails"] {
        let shared = makespan(&format!("{{node: node-0, at: 0s, for: 1h, agent: {agent}}}"));
        assert!(shared > 1.15 * applied, "{agent}: {shared} s, and {applied} s where policies are applied");
    }
    let late = makespan("{node: node-0, at: 0s, for: 1h, agent: late, delay: 5s}");
    assert!(applied < late && late < 1.15 * applied, "late by 5 s: {late} s, and {applied} s in time");
}
