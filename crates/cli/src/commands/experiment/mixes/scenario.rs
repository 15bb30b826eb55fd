//! From a mix to a scenario: nodes and links on which the members of a job are apart and all jobs share the links.

use std::fmt::Write;

use super::definition::{MEMBERS, Mix, Set, Shares, job_name};

/// Where the jobs of a mix run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wiring {
    /// Every job has links of its own.
    Separate,
    /// The links that the mix names are shared by all jobs.
    Shared,
}

/// A rack's uplink is the bottleneck if the links below carry so much more.
const NODE_LINK_FACTOR: f64 = 4.0;

/// What one member asks for, where members of three jobs share a node: of each resource one job takes more than half, so
/// that no node has two members of one job.
const SCARCE: [&str; 3] = [
    "{cpu: 60, memory: 10Gi, nvidia.com/gpu: 1}",
    "{cpu: 16, memory: 600Gi, nvidia.com/gpu: 1}",
    "{cpu: 16, memory: 10Gi, nvidia.com/gpu: 60}",
];

/// What a member asks for that fills its node.
const WHOLE: &str = "{cpu: 100, memory: 1000Gi, nvidia.com/gpu: 1}";

/// The documents of a scenario; `commands` has the words of each job's program.
pub(super) fn documents(set: &Set, mix: &Mix, wiring: Wiring, commands: &[Vec<String>]) -> String {
    let mut text = cluster(set, mix, wiring);
    for (place, (job, command)) in mix.jobs.iter().zip(commands).enumerate() {
        let shares_nodes = wiring == Wiring::Shared && mix.shares == Shares::Nodes;
        let (resources, kind) = match shares_nodes {
            true => (SCARCE[place % SCARCE.len()], String::new()),
            false => (WHOLE, format!("  gpuType: t{place}\n")),
        };
        let words = serde_json::to_string(command).expect("words are text");
        let milliseconds = (job.alone_ms * job.iterations as f64).round();
        write!(
            text,
            "---\napiVersion: metronome.dev/v1alpha1\nkind: TrainingJob\nmetadata: {{name: {}}}\nspec:\n  members: {MEMBERS}\n  \
             backoffLimit: 0\n  resources: {resources}\n{kind}  command: {words}\n  work: {{duration: {milliseconds}ms}}\n",
            job_name(place)
        )
        .expect("a string takes everything");
    }
    text
}

fn cluster(set: &Set, mix: &Mix, wiring: Wiring) -> String {
    let rate = set.link_gbps;
    let each = "cpu: 100, memory: 1000Gi, gpus";
    let (levels, nodes, links) = match (wiring, mix.shares) {
        (Wiring::Separate, _) => {
            let group =
                |place: usize| format!("{{name: n{place}, count: {MEMBERS}, {each}: 1, gpuType: t{place}}}");
            ("[node]", groups(mix, group), format!("node: {rate}Gbps"))
        }
        (Wiring::Shared, Shares::Nodes) => {
            ("[node]", format!("{{count: {MEMBERS}, {each}: 100}}"), format!("node: {rate}Gbps"))
        }
        (Wiring::Shared, Shares::Racks) => {
            let group = |place: usize| {
                let side = |side: &str| {
                    format!(
                        "{{name: {side}{place}, count: 1, {each}: 1, gpuType: t{place}, within: {{rack: {side}}}}}"
                    )
                };
                format!("{}, {}", side("left"), side("right"))
            };
            let links = format!("node: {}Gbps, rack: {rate}Gbps", rate * NODE_LINK_FACTOR);
            ("[rack, node]", groups(mix, group), links)
        }
    };
    format!(
        "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {}}}\nspec:\n  levels: {levels}\n  nodes: [{nodes}]\n  \
         links: {{{links}}}\n",
        set.name
    )
}

fn groups(mix: &Mix, group: impl Fn(usize) -> String) -> String {
    (0..mix.jobs.len()).map(group).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use metronome_sim::model::alone::Alone;
    use metronome_sim::scenario::Scenario;

    use super::super::definition::tests::mixes;
    use super::*;

    fn scenario(mix: usize, wiring: Wiring) -> Scenario {
        let mixes = mixes();
        let set = &mixes.sets[0];
        let commands = vec![vec!["python3".to_owned(), "train.py".to_owned()]; 2];
        let text = documents(set, &set.mixes[mix], wiring, &commands);
        Scenario::read_from(text.as_bytes(), "mix", Path::new("")).unwrap()
    }

    #[test]
    fn members_of_a_job_never_fit_on_one_node() {
        for (mix, wiring) in
            [(0, Wiring::Shared), (1, Wiring::Shared), (0, Wiring::Separate), (1, Wiring::Separate)]
        {
            let scenario = scenario(mix, wiring);
            let alone = Alone::new(&scenario.cluster, None);
            for arrival in scenario.arrivals(1) {
                let placed = alone.fewest_nodes(&arrival.spec).unwrap();
                let nodes: std::collections::BTreeSet<_> = placed.iter().map(|part| part.node).collect();
                assert_eq!(nodes.len(), 2, "{} in mix {mix}, {wiring:?}", arrival.spec.name);
                assert!(arrival.training.is_none() && arrival.spec.profile.is_none(), "nothing is declared");
            }
        }
    }

    #[test]
    fn separate_jobs_have_a_node_for_every_member_and_shared_ones_meet() {
        assert_eq!(scenario(0, Wiring::Shared).cluster.nodes().len(), 2);
        assert_eq!(scenario(0, Wiring::Separate).cluster.nodes().len(), 4);
        let racks = scenario(1, Wiring::Shared);
        assert_eq!(racks.cluster.nodes().len(), 4);
        let rates: Vec<u64> = racks.cluster.fabric.links().iter().map(|(_, link)| link.rate.0).collect();
        assert_eq!(
            rates.iter().filter(|rate| **rate == 100_000_000_000).count(),
            4,
            "two uplinks, two ways each"
        );
    }
}
