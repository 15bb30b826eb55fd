//! Bad input, case by case: every error says file, line, column and what is wrong.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use metronome_sim::scenario::{InputError, Scenario};

/// A document of some kind, whose `spec` begins at line 5.
fn document(kind: &str, spec: &str) -> String {
    format!("apiVersion: metronome.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: it}}\nspec:\n{spec}\n")
}

/// Five lines of a sound cluster, so that what follows it begins at line 7 and its spec at line 11.
fn beside_a_cluster(kind: &str, spec: &str) -> String {
    format!("{}---\n{}", document("Cluster", "  nodes: [{count: 24, gpus: 4}]"), document(kind, spec))
}

fn error_of(text: &str) -> InputError {
    Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).expect_err(text)
}

/// Each case: the text, the error, the hint.
fn check(cases: &[(String, &str, Option<&str>)]) {
    for (text, expected, hint) in cases {
        let error = error_of(text);
        assert_eq!(error.to_string(), format!("read lab.yaml{expected}"), "{text}");
        assert_eq!(error.hint(), *hint, "{text}");
    }
}

#[test]
fn a_document_has_a_known_version_and_kind() {
    let begins = Some("every document begins with apiVersion: metronome.dev/v1alpha1");
    check(&[
        ("kind: Cluster\n".into(), ":1:1: missing field `apiVersion`", begins),
        ("apiVersion: v1\nkind: Pod\n".into(), ":1:13: unknown apiVersion `v1`", begins),
        (document("Clutser", "  {}"), ":2:7: unknown kind `Clutser`", Some("did you mean `Cluster`?")),
        (
            "apiVersion: metronome.dev/v1alpha1\nkind: Queue\nmetadata: {name: it}\n".into(),
            ":1:1: missing field `spec` of this Queue",
            None,
        ),
        (
            "apiVersion: metronome.dev/v1alpha1\nspec: {}\nkind: Cluster\nmetadata: {name: it}\n".into(),
            ":2:7: `spec` comes before `kind`",
            Some("write `kind` first: it says what the fields of `spec` are"),
        ),
        (
            String::new(),
            ": there is no Cluster in it",
            Some("add a document of kind Cluster: it says what there is"),
        ),
        ("- a\n".into(), ":1:1: a group of fields such as {name: value} is expected here", None),
        ("kind: [".into(), ":1:7: a single value is expected here", None),
        ("{".into(), ":1:1: unclosed bracket '{'", None),
    ]);
}

#[test]
fn an_unknown_field_is_named_with_the_nearest_known() {
    check(&[
        (
            document("Cluster", "  nodes: [{count: 24, gpu: 4}]"),
            ":5:23: unknown field `gpu`; known here are name, count, perRack, per, cpu, memory, gpus, gpuType",
            Some("did you mean `gpus`?"),
        ),
        (
            beside_a_cluster("Queue", "  weihgt: 2"),
            ":11:3: unknown field `weihgt`; known here are parent, weight, quota, lends, borrows, users",
            Some("did you mean `weight`?"),
        ),
        (
            beside_a_cluster("TrainingJob", "  resources: {nvidia.com/gpus: 2}"),
            ":11:15: unknown field `nvidia.com/gpus`; known here are cpu, memory, nvidia.com/gpu",
            Some("did you mean `nvidia.com/gpu`?"),
        ),
        (document("Cluster", "  nodes: [{count: 1, count: 2}]"), ":5:22: field `count` is given twice", None),
        (document("Cluster", "  levels: [node]"), ":5:3: missing field `nodes`", None),
    ]);
}

#[test]
fn a_cluster_has_nodes_in_bounded_numbers() {
    check(&[
        (document("Cluster", "  nodes: []"), ": the Cluster has no nodes", None),
        (
            document("Cluster", "  nodes: [{count: -1}]"),
            ":5:19: `-1` is not a whole number from 1 to 200000",
            None,
        ),
        (
            document("Cluster", "  nodes: [{count: 1e30}]"),
            ":5:19: `1e30` is not a whole number from 1 to 200000",
            None,
        ),
        (
            document("Cluster", "  nodes: [{count: 150000}, {count: 150000}]"),
            ":5:36: there are more than 200000 nodes",
            None,
        ),
        (document("Cluster", "  nodes: [{gpus: .inf}]"), ":5:18: `.inf` is not a number with a unit", None),
        (
            document("Cluster", "  nodes: [{memory: 99999999999999999999}]"),
            ":5:20: `99999999999999999999` is more than can be counted here",
            None,
        ),
        (
            document("Cluster", "  nodes: [{name: a, count: 2}, {name: a}]"),
            ":5:32: two nodes are called `a-0`",
            None,
        ),
        (
            document("Cluster", "  levels: [node, rack]\n  nodes: [{}]"),
            ":5:18: the last level is `node`, not `rack`",
            None,
        ),
        (
            document("Cluster", "  nodes: [{count: 4, perRack: 2}]"),
            ":5:31: the topology has no level `rack`",
            Some("name it first: levels: [rack, node]"),
        ),
        (
            document("Cluster", "  levels: [pod, rack, node]\n  nodes: [{count: 9, per: {pod: 7, rack: 2}}]"),
            ":6:42: 7 nodes of the level above are not a multiple of 2 per rack",
            None,
        ),
    ]);
}

#[test]
fn links_lead_from_below_to_above() {
    let links = |list: &str| document("Cluster", &format!("  nodes: [{{count: 2}}]\n  links: {list}"));
    check(&[
        (
            links(
                "[{from: node-0, to: tor, rate: 1Gbps}, {from: tor, to: top, rate: 1Gbps}, {from: top, to: tor, rate: 1Gbps}]",
            ),
            ":6:49: the links go round in a circle through `tor`; a link leads from below to above",
            None,
        ),
        (
            links("[{from: node-9, to: tor, rate: 1Gbps}]"),
            ":6:18: `node-9` is neither a node nor a switch that a link leads up to",
            Some("nodes are called `node-0` and so on, unless their group has a name"),
        ),
        (
            links("[{from: tor, to: node-0, rate: 1Gbps}]"),
            ":6:27: a link leads up to `node-0`, which is a node",
            Some("write the node as `from`: links are said from below to above"),
        ),
        (
            links("[{from: node-0, to: tor, rate: 0Gbps}]"),
            ":6:41: the rate of a link is more than nothing",
            None,
        ),
        (
            links("[{from: node-0, to: tor, rate: 1Gbps}, {from: node-0, to: tor, rate: 1Gbps}]"),
            ":6:49: two links lead from `node-0` to `tor`",
            None,
        ),
        (
            links("[{from: a, to: a, rate: 1Gbps}]"),
            ":6:11: the links go round in a circle through `a`; a link leads from below to above",
            None,
        ),
        (
            links("{node: 100Gbps, rack: 10Gbps}"),
            ":6:32: the topology has no level `rack`",
            Some("known are node"),
        ),
        (links("{withinNode: free}"), ":6:10: the links of level `node` have no rate", None),
        (links("{node: fast}"), ":6:17: `fast` is not a number with a unit", None),
    ]);
}

#[test]
fn a_job_says_what_can_be_done() {
    let job = |spec: &str| beside_a_cluster("TrainingJob", spec);
    let how_long = Some("say how long it takes alone: work: {duration: 10m}");
    check(&[
        (
            job("  {members: 128, resources: {nvidia.com/gpu: 4}, work: {duration: 10m}}"),
            ":9:18: job `it` can never run: it needs 512 GPUs, the cluster has 96 GPUs",
            None,
        ),
        (
            job("  {resources: {nvidia.com/gpu: 8}, work: {duration: 10m}}"),
            ":9:18: job `it` can never run: it needs 1 members of 8 GPUs each, of which 0 have room, the cluster has 96 GPUs",
            None,
        ),
        (
            job("  {members: 5, work: {duration: 10m}, topology: {required: node}}"),
            ":9:18: job `it` can never run: it needs 5 GPUs within one node, and none is that large",
            None,
        ),
        (job("  {}"), ":9:18: missing field `work`", how_long),
        (job("  work: {}"), ":11:9: there is no work in it", how_long),
        (
            job("  work: {iterations: 5}"),
            ":11:22: how long an iteration takes is not known: there is no `traffic.period`",
            how_long,
        ),
        (job("  work: {duration: 0s}"), ":11:20: the duration of a job is more than nothing", None),
        (
            job("  work: {duration: 10}"),
            ":11:20: `10` has no unit of its kind; write one of ns, us, ms, s, m, h, d",
            None,
        ),
        (
            job("  model: resnet50/512"),
            ":11:10: `model` needs the network model, which this version does not have",
            Some("say how long it takes: work: {duration: 10m}"),
        ),
        (
            job("  {queue: reserch, work: {duration: 1s}}"),
            ":11:11: there is no queue `reserch`",
            Some("known are default"),
        ),
        (
            job("  {work: {duration: 1s}, topology: {preferred: rack}}"),
            ":11:48: the topology has no level `rack`",
            Some("known are node"),
        ),
        (
            job("  {work: {duration: 1s}, deadline: {at: 2026-11-15T18:00:00Z}}"),
            ":11:41: a date means nothing in a simulation, whose time begins at zero",
            Some("count from submission: deadline: {after: 6h}"),
        ),
        (
            job("  {work: {duration: 1s}, template: {spec: {containers: []}}}"),
            ":11:36: a pod template means something only in Kubernetes",
            Some("say what a member takes: resources: {cpu: 8, nvidia.com/gpu: 1}"),
        ),
        (
            job("  {work: {duration: 1s}, priorityClassName: hihg}"),
            ":11:45: unknown priority class `hihg`",
            Some("did you mean `high`?"),
        ),
        (
            job("  {work: {duration: 1s}, members: 0}"),
            ":11:35: `0` is not a whole number from 1 to 1000000",
            None,
        ),
        (
            job("  {work: {duration: 1s}, minMembers: 4, maxMembers: 2}"),
            ":11:53: the smallest size, 4, is above the largest, 2",
            None,
        ),
        (
            job("  {work: {duration: 1s}, onMiss: Fail}"),
            ":11:34: `onMiss: Fail` is not simulated by this version",
            None,
        ),
    ]);
}

#[test]
fn names_are_given_once() {
    let long = "n".repeat(254);
    let job = "spec: {work: {duration: 1s}}\n";
    let head = "apiVersion: metronome.dev/v1alpha1\nkind: TrainingJob\n";
    let named = |name: &str| format!("{head}metadata: {{name: {name}}}\n{job}");
    check(&[
        (
            format!("{}---\n{}---\n{}", document("Cluster", "  nodes: [{gpus: 1}]"), named("a"), named("a")),
            ":14:18: a second TrainingJob called `a`; the first is at line 9",
            None,
        ),
        (
            beside_a_cluster("Cluster", "  nodes: [{}]"),
            ":9:18: a second Cluster called `it`; the first is at line 3",
            None,
        ),
        (named(&long), &format!(":3:18: the name `{}…` is longer than 253 bytes", "n".repeat(60)), None),
        (named("''"), ":3:18: a name is not empty", None),
    ]);
}

#[test]
fn queues_lead_to_the_root() {
    let queue = |name: &str, parent: &str| {
        format!(
            "---\napiVersion: metronome.dev/v1alpha1\nkind: Queue\nmetadata: {{name: {name}}}\nspec: {{parent: {parent}}}\n"
        )
    };
    let cluster = document("Cluster", "  nodes: [{}]");
    check(&[
        (
            format!("{cluster}{}{}", queue("a", "b"), queue("b", "a")),
            ":10:16: queue `a` is above itself",
            None,
        ),
        (
            format!("{cluster}{}{}", queue("research", "root"), queue("b", "reserch")),
            ":15:16: there is no queue `reserch`",
            Some("did you mean `research`?"),
        ),
        (
            format!("{cluster}{}", queue("root", "root")),
            ":9:18: `root` is above all queues and has no document",
            None,
        ),
    ]);
}

#[test]
fn a_policy_changes_one_that_is_built_in() {
    let policy = |spec: &str| beside_a_cluster("Policy", spec);
    check(&[
        (
            policy("  base: volcno"),
            ":11:9: there is no built-in policy `volcno`",
            Some("did you mean `volcano`?"),
        ),
        (
            policy("  order: {weighted: {user: 0.5, task: 0.4}}"),
            ":11:21: the weights sum to 0.9 instead of 1",
            None,
        ),
        (
            policy("  order: lifo"),
            ":11:10: unknown word `lifo`; known here are fifo, priority, srtf, srsf, leastAttained, weighted",
            Some("did you mean `fifo`?"),
        ),
        (
            policy("  order: {leastAttained: {limits: [7200, 3250]}}"),
            ":11:42: the limits rise from level to level",
            None,
        ),
        (policy("  queueing: jump"), ":11:13: unknown queueing `jump`", Some("known are headBlocks, skip")),
    ]);
}

#[test]
fn what_needs_the_network_is_refused_and_not_ignored() {
    let fields = [
        ("arrivals: {poisson: {load: 0.8}}", "arrivals.poisson", 23),
        ("models: all", "models", 11),
        ("gpus: {powersOfTwo: 0.6, from: 2, to: 32}", "gpus.powersOfTwo", 23),
        ("duration: {median: 10m}", "duration", 13),
        ("noise: {compute: 1%}", "noise", 10),
    ];
    for (field, what, column) in fields {
        let error = error_of(&beside_a_cluster("Workload", &format!("  {field}")));
        let expected = format!(
            "read lab.yaml:11:{column}: `{what}` needs the network model, which this version does not have"
        );
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn faults_name_what_there_is() {
    let faults = |list: &str| beside_a_cluster("Workload", &format!("  faults: [{list}]"));
    check(&[
        (
            faults("{node: node-99, at: 1s}"),
            ":11:19: there is no node `node-99`",
            Some("did you mean `node-9`?"),
        ),
        (faults("{steps: {late: 1%}}"), ":11:20: steps come late by nothing", Some("add `delay: 10s`")),
        (faults("{steps: {fail: 60%, lost: 60%}}"), ":11:20: the chances of a step sum to more than 1", None),
        (
            faults("{at: 1s}"),
            ":11:12: a fault is either {node, at, for} or {steps: {fail, late, lost, delay}}",
            None,
        ),
    ]);
}

#[test]
fn deep_nesting_and_alias_bombs_are_given_up() {
    let deep = document("Mystery", &format!("  a: {}", "[".repeat(100_000)));
    let levels: Vec<String> =
        (0..20).map(|n| format!("  b{}: &b{} [*b{n},*b{n},*b{n},*b{n},*b{n}]", n + 1, n + 1)).collect();
    let bomb = document("Mystery", &format!("  b0: &b0 [x,x,x,x,x]\n{}", levels.join("\n")));
    for text in [deep, bomb] {
        let error = error_of(&text);
        assert_eq!(error.message(), "it is nested too deep or has more values than a scenario can have");
        assert!(error.position().is_some());
    }
}

#[test]
fn an_endless_or_unreadable_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let endless = io::repeat(b'#').take(1 << 30);
    let error = Scenario::read_from(endless, "-", folder.path()).unwrap_err();
    assert_eq!(error.to_string(), "read -: it is larger than 16 MiB");

    let error = Scenario::read(folder.path()).unwrap_err();
    assert_eq!(error.message(), "it is a folder");
    let error = Scenario::read(&folder.path().join("absent.yaml")).unwrap_err();
    assert_eq!(error.message(), "there is no such file");

    let binary = folder.path().join("binary.yaml");
    fs::write(&binary, b"a: b\nc: \xff\xfe\n").unwrap();
    let error = Scenario::read(&binary).unwrap_err();
    assert_eq!((error.message(), error.position().map(|at| at.line)), ("it is not UTF-8 text", Some(2)));
}
