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
            ":5:23: unknown field `gpu`; known here are name, count, perRack, per, within, cpu, memory, gpus, gpuType",
            Some("did you mean `gpus`?"),
        ),
        (
            beside_a_cluster("Queue", "  weihgt: 2"),
            ":11:3: unknown field `weihgt`; known here are parent, weight, quota, limit, lends, borrows, users, order, history",
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
            ":5:20: `99999999999999999999` is too large",
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
            document("Cluster", "  nodes: [{within: {rack: a}}]"),
            ":5:27: the topology has no level `rack`",
            Some("name it first: levels: [rack, node]"),
        ),
        (
            document(
                "Cluster",
                "  levels: [rack, node]\n  nodes: [{count: 4, perRack: 2, within: {rack: a}}]",
            ),
            ":6:49: the group is in one rack, and has several by `per`",
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
            ":6:49: the links form a cycle through `tor`; a link leads from its lower end to its upper end",
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
            ":6:11: the links form a cycle through `a`; a link leads from its lower end to its upper end",
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
        (
            job("  {members: 6, work: {duration: 10m}, topology: {teams: {size: 4, within: node}}}"),
            ":11:64: 6 workers do not make up groups of 4",
            None,
        ),
        (
            job("  {members: 8, work: {duration: 10m}, topology: {teams: {size: 8, within: node}}}"),
            ":9:18: job `it` can never run: it needs groups of 8 workers within one node, and none holds one",
            None,
        ),
        (job("  {}"), ":9:18: missing field `work`", how_long),
        (job("  work: {}"), ":11:9: there is no work in it", how_long),
        (
            job("  work: {iterations: 5}"),
            ":11:22: how long an iteration takes is not known: there is no `model` and no `traffic`",
            how_long,
        ),
        (job("  work: {duration: 0s}"), ":11:20: the duration of a job is more than nothing", None),
        (
            job("  work: {duration: 10}"),
            ":11:20: `10` has no unit of its kind; write one of ns, us, ms, s, m, h, d",
            None,
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
            ":11:34: `onMiss: Fail` is for a job with a deadline",
            Some("add deadline: {after: 6h}"),
        ),
    ]);
}

#[test]
fn a_member_has_whole_gpus_or_a_share_of_one() {
    let job = |spec: &str| beside_a_cluster("TrainingJob", &format!("  {{work: {{duration: 1s}}, {spec}}}"));
    let workload = |spec: &str| beside_a_cluster("Workload", spec);
    check(&[
        (
            job("resources: {nvidia.com/gpu: 1.5}"),
            ":11:54: a member cannot have 1.5 GPUs: it has whole ones or a share of one",
            Some("ask for whole GPUs, or for less than 1: a share of a single one"),
        ),
        (
            job("members: 97, resources: {nvidia.com/gpu: 0.6}"),
            ":9:18: job `it` can never run: it needs 97 members of 0.6 GPUs each, of which 96 have room, the cluster has 96 GPUs",
            None,
        ),
        (
            job("gpuType: a100"),
            ":11:35: no node has GPUs of type `a100`",
            Some("say in the Cluster what its GPUs are: nodes: [{gpus: 8, gpuType: a100}]"),
        ),
        (job("gpuType: []"), ":11:35: there is no GPU type in it", Some("leave `gpuType` out for any type")),
        (job("gpuType: a100, resources: {cpu: 0}"), ":11:35: `gpuType` is for members that take GPUs", None),
        (
            workload("  {arrivals: {at: [0s]}, job: {work: {duration: 1s}}, departures: nevr}"),
            ":11:67: unknown word for departures `nevr`",
            Some("did you mean `never`?"),
        ),
    ]);
}

#[test]
fn a_gpu_type_is_one_that_nodes_have() {
    let typed = |asked: &str| {
        let cluster = document("Cluster", "  nodes: [{gpus: 4, gpuType: a100}, {gpus: 8, gpuType: h100}]");
        let job = document("TrainingJob", &format!("  {{work: {{duration: 1s}}, {asked}}}"));
        format!("{cluster}---\n{job}")
    };
    check(&[
        (
            typed("gpuType: [h100, a10]"),
            ":11:42: no node has GPUs of type `a10`",
            Some("did you mean `a100`?"),
        ),
        (
            typed("gpuType: a100, resources: {nvidia.com/gpu: 8}"),
            ":9:18: job `it` can never run: it needs 1 members of 8 GPUs each, of which 0 have room, the cluster has 12 GPUs",
            None,
        ),
    ]);
    let job = "roles: [{name: worker, resources: {nvidia.com/gpu: 1}, gpuType: h100}], gpuType: h100";
    check(&[(typed(job), ":11:107: members are said both in `roles` and beside it", None)]);
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
fn a_queue_has_a_weight_and_bounds_that_go_together() {
    let queue = |spec: &str| beside_a_cluster("Queue", &format!("  {spec}"));
    let inside = |gpus: u32| {
        let child = document("Queue", &format!("  {{parent: it, quota: {{nvidia.com/gpu: {gpus}}}}}"));
        child.replace("name: it", &format!("name: of-{gpus}"))
    };
    let crowded = format!("{}---\n{}---\n{}", queue("quota: {nvidia.com/gpu: 8}"), inside(6), inside(4));
    check(&[
        (queue("weight: 0"), ":11:11: `0` is not a whole number from 1 to 1000000", None),
        (queue("weight: heavy"), ":11:11: `heavy` is not a whole number from 1 to 1000000", None),
        (
            queue("{quota: {nvidia.com/gpu: 8}, limit: {nvidia.com/gpu: 4}}"),
            ":9:18: queue `it` may hold less than its quota",
            Some("the limit is at least the quota"),
        ),
        (crowded, ":9:18: the quotas inside `it` exceed its own", Some("they come to 10 GPUs")),
        (queue("order: {user: 0.5, task: 0.6}"), ":11:10: the weights sum to 1.1 instead of 1", None),
        (
            queue("users: [{name: lab7, priority: highest}]"),
            ":11:34: unknown priority `highest`",
            Some("did you mean `high`?"),
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
        (
            policy("  tuning: {predictionTolerence: 0.01}"),
            ":11:12: there is no tuning entry `predictionTolerence`",
            Some("did you mean `predictionTolerance`?"),
        ),
        (
            policy("  tuning:\n    predictionTolerance: 0.01\n    patience: 3"),
            ":13:5: there is no tuning entry `patience`",
            Some("docs/reference/tuning.md lists them"),
        ),
        (policy("  tuning: {predictionTolerance: 7}"), ":11:33: `7` is not a number from 0 to 1", None),
        (policy("  tuning: {agingWindow: 90}"), ":11:25: `90` is not a duration from 1s to 1000000h", None),
        (policy("  tuning: {userWeight: 0.4}"), ":11:11: the weights sum to 1.1 instead of 1", None),
        (
            policy("  tuning: {userWeight: 0.4, userWeight: 0.3}"),
            ":11:29: field `userWeight` is given twice",
            None,
        ),
        (
            policy("  queueing: jump"),
            ":11:13: unknown queueing `jump`",
            Some("known are headBlocks, skip, reserve"),
        ),
    ]);
}

/// Six lines of a sound cluster with links, so that what follows begins at line 8 and its spec at line 12.
fn beside_links(kind: &str, spec: &str) -> String {
    let cluster = document("Cluster", "  nodes: [{count: 24, gpus: 4, cpu: 64}]\n  links: {node: 100Gbps}");
    format!("{cluster}---\n{}", document(kind, spec))
}

#[test]
fn a_model_is_known_and_has_links() {
    let job = |spec: &str| beside_links("TrainingJob", spec);
    let lay = Some("give the Cluster a rate for each level: links: {node: 100Gbps}");
    check(&[
        (
            beside_a_cluster("TrainingJob", "  {model: resnet50/512, work: {iterations: 5}}"),
            ":11:11: a model sends its gradients over links, and the Cluster has none",
            lay,
        ),
        (
            beside_a_cluster("Workload", &drawing("models: all")),
            ":11:11: a model sends its gradients over links, and the Cluster has none",
            lay,
        ),
        (
            job("  {model: resnet50, work: {iterations: 5}}"),
            ":12:11: there is no model `resnet50`",
            Some("known are resnet50/128, resnet50/512"),
        ),
        (
            job("  {model: resent50/512, work: {iterations: 5}}"),
            ":12:11: there is no model `resent50/512`",
            Some("did you mean `resnet50/512`?"),
        ),
        (
            job("  {model: xlm/32, work: {iterations: 5}, traffic: {period: 1s}}"),
            ":12:51: `model` and `traffic` are both given: a model knows its traffic",
            None,
        ),
        (
            job("  {declaredModel: xlm/32, work: {duration: 5s}}"),
            ":12:19: `declaredModel` is for a job that trains another `model`",
            Some("add `model`, which is what it does in fact"),
        ),
        (
            job("  {model: xlm/32, declaredModel: xlm/32, work: {iterations: 5}}"),
            ":12:34: `declaredModel` is what it trains in fact",
            Some("remove it"),
        ),
        (
            job("  {model: xlm/32, work: {iterations: 5, duration: 1m}}"),
            ":12:51: `iterations` and `duration` are both given: an iteration has its own",
            None,
        ),
        (
            job("  {model: xlm/32, work: {iterations: 1000000000000}}"),
            ":12:38: its iterations take longer than can be counted",
            None,
        ),
        (
            job("  {model: xlm/32, work: {}}"),
            ":12:25: there is no work in it",
            Some("say how long it takes alone: work: {duration: 10m}"),
        ),
        (
            beside_links("Workload", &drawing("models: [xlm/32, xml/32]")),
            ":12:20: there is no model `xml/32`",
            Some("did you mean `xlm/32`?"),
        ),
        (
            beside_links("Workload", &drawing("models: [xlm/32, xlm/32]")),
            ":12:20: model `xlm/32` is given twice",
            None,
        ),
        (beside_links("Workload", &drawing("models: []")), ":12:11: the list of models is empty", None),
        (
            beside_links("Workload", &drawing("models: some")),
            ":12:11: `models` is `all` or a list, not `some`",
            Some("write models: all, or models: [resnet50/512]"),
        ),
    ]);
}

/// A drawn workload whose first line is given; the rest is sound.
fn drawing(line: &str) -> String {
    let rest =
        ["jobs: 10", "arrivals: {poisson: {load: 0.8}}", "gpus: {from: 1, to: 8}", "duration: {median: 10m}"];
    let field = line.split(':').next().unwrap();
    let rest = rest.iter().filter(|other| !other.starts_with(field));
    std::iter::once(&line).chain(rest).map(|line| format!("  {line}\n")).collect()
}

#[test]
fn phases_lie_on_a_period() {
    let traffic = |traffic: &str| {
        beside_links("TrainingJob", &format!("  work: {{iterations: 5}}\n  traffic: {traffic}"))
    };
    let phase = |phase: &str| traffic(&format!("{{period: 100ms, phases: [{{{phase}}}]}}"));
    check(&[
        (traffic("{period: 0s}"), ":13:21: the period must be greater than zero", None),
        (traffic("{period: .inf}"), ":13:21: `.inf` is not a number with a unit", None),
        (traffic("{period: 1e300s}"), ":13:21: `1e300s` is too large", None),
        (
            phase("length: 101ms, rate: 1Gbps"),
            ":13:46: phase 0 must be longer than zero and no longer than the period",
            None,
        ),
        (
            phase("length: 0s, rate: 1Gbps"),
            ":13:46: phase 0 must be longer than zero and no longer than the period",
            None,
        ),
        (
            phase("length: 1ms, rate: 1Gbps, offset: 1s"),
            ":13:72: phase 0 begins after the period has ended",
            None,
        ),
        (
            phase("length: 9ms, rate: 1Gbps}, {length: 9ms, rate: 1Gbps, offset: 5ms"),
            ":13:74: phases 0 and 1 overlap",
            None,
        ),
        (phase("length: 9ms, rate: 0bps"), ":13:57: the rate of a phase is more than nothing", None),
    ]);
}

#[test]
fn drawn_jobs_have_sound_numbers() {
    let field = |line: &str| beside_a_cluster("Workload", &drawing(line));
    let load = |load: &str| {
        let rest = "  jobs: 10\n  gpus: {from: 1, to: 8}\n  duration: {median: 10m}";
        beside_a_cluster("Workload", &format!("{rest}\n  arrivals: {{poisson: {{load: {load}}}}}"))
    };
    check(&[
        (load("0"), ":14:30: a load is more than nothing", None),
        (load("-0.5"), ":14:30: `-0.5` is not a number from 0 to 2", None),
        (load("NaN"), ":14:30: `NaN` is not a number from 0 to 2", None),
        (load(".inf"), ":14:30: `.inf` is not a number from 0 to 2", None),
        (load("inf"), ":14:30: `inf` is not a number from 0 to 2", None),
        (load("2.1"), ":14:30: `2.1` is not a number from 0 to 2", None),
        (field("duration: {median: 0s}"), ":11:22: the median duration is more than nothing", None),
        (field("duration: {median: 1m, sigma: -1}"), ":11:33: `-1` is not a number from 0 to 5", None),
        (field("duration: {median: 1m, sigma: nan}"), ":11:33: `nan` is not a number from 0 to 5", None),
        (
            field("duration: {median: 2m, atMost: 1m}"),
            ":11:34: the median, 2m, is above the longest, 1m",
            None,
        ),
        (field("duration: {median: 2m, atMost: 400d}"), ":11:34: a job takes at most 365d", None),
        (field("gpus: {from: 4, to: 2}"), ":11:23: `from`, 4, is above `to`, 2", None),
        (field("gpus: {from: 0, to: 2}"), ":11:16: `0` is not a whole number from 1 to 4294967295", None),
        (field("gpus: {from: 1, to: 97}"), ":11:23: jobs of 97 GPUs can never run: the cluster has 96", None),
        (
            field("gpus: {from: 1, to: 8, perMember: 8}"),
            ":11:23: jobs of 8 GPUs can never run: such a job needs 1 members of 8 GPUs each, of which 0 have room, the cluster has 96 GPUs",
            None,
        ),
        (
            field("gpus: {from: 1, to: 8, perGpu: {cpu: 8}}"),
            ":11:23: jobs of 8 GPUs can never run: such a job needs 8 GPUs, 64 CPUs, the cluster has 96 GPUs",
            None,
        ),
        (
            field("gpus: {from: 5, to: 7, powersOfTwo: 0.6}"),
            ":11:39: there is no power of two from 5 to 7",
            None,
        ),
        (field("gpus: {from: 5, to: 7, powersOfTwo: 1.6}"), ":11:39: `1.6` is too large", None),
        (
            field("gpus: {from: 5}"),
            ":11:9: drawn sizes lie between `from` and `to`",
            Some("say how large: gpus: {from: 2, to: 32}"),
        ),
        (field("priorities: {high: 0.5, low: 0.6}"), ":11:15: the priorities sum to 1.1 instead of 1", None),
        (field("priorities: {high: -1}"), ":11:22: `-1` is negative", None),
        (
            field("users: [{name: ann, share: 0.5}, {name: bob, share: 0.6}]"),
            ":11:10: the shares of the users sum to 1.1 instead of 1",
            None,
        ),
        (field("users: []"), ":11:10: the shares of the users sum to 0 instead of 1", None),
        (
            field("users: [{name: ann, share: 0.5}, {name: ann, share: 0.5}]"),
            ":11:43: user `ann` is given twice",
            None,
        ),
        (
            field("users: [{name: ann, share: 1, queue: defalt}]"),
            ":11:40: there is no queue `defalt`",
            Some("did you mean `default`?"),
        ),
        (
            field("servers: {from: 3, to: 2, resources: {gpus: 1}}"),
            ":11:41: unknown field `gpus`; known here are cpu, memory, nvidia.com/gpu",
            Some("did you mean `cpu`?"),
        ),
        (
            field("servers: {from: 3, to: 2, resources: {cpu: 0}}"),
            ":11:26: `from`, 3, is above `to`, 2",
            None,
        ),
        (
            field("servers: {from: 0, to: 2, resources: {cpu: 0}}"),
            ":11:19: `0` is not a whole number from 1 to 10000",
            None,
        ),
        (
            field("servers: {from: 1, to: 2, resources: {cpu: 1}}"),
            ":11:12: a server can never run: it needs 1 CPU, the cluster has 96 GPUs",
            None,
        ),
        (field("noise: {compute: 101%}"), ":11:20: `101%` is too large", None),
        (field("job: {work: {duration: 1s}}"), ":11:8: `job` is for arrivals.at; here jobs are drawn", None),
        (field("limit: 5"), ":11:10: `limit` is for a trace", Some("say how many are drawn: jobs: 120")),
    ]);
}

#[test]
fn a_workload_says_all_that_is_drawn_and_nothing_else() {
    let workload = |spec: &str| beside_a_cluster("Workload", spec);
    check(&[
        (
            workload("  arrivals: {poisson: {load: 0.8}}"),
            ":11:30: missing field `jobs` beside `arrivals.poisson`",
            Some("say how many are drawn: jobs: 120"),
        ),
        (
            workload("  {jobs: 5, arrivals: {poisson: {load: 0.8}}}"),
            ":11:40: missing field `gpus` beside `arrivals.poisson`",
            Some("say how large: gpus: {from: 2, to: 32}, or cpus: {max: 32, asks: 4}"),
        ),
        (
            workload("  {jobs: 5, arrivals: {poisson: {load: 0.8}}, gpus: {from: 1, to: 2}}"),
            ":11:40: missing field `duration` beside `arrivals.poisson`",
            Some("say how long: duration: {median: 10m, sigma: 1.0}"),
        ),
        (
            workload("  {arrivals: {poisson: {load: 0.8}, at: [0s]}}"),
            ":11:14: arrivals are one of `trace`, `at`, `poisson` and `within`",
            None,
        ),
        (
            workload("  models: all"),
            ":11:11: it is not said when jobs arrive",
            Some("add arrivals: {trace: jobs.csv}, {at: [0s, 10s]} or {poisson: {load: 0.8}}"),
        ),
        (
            workload("  {arrivals: {trace: jobs.csv}, duration: {median: 1m}}"),
            ":11:43: `duration` is for arrivals.poisson; a trace has its own",
            None,
        ),
        (
            workload("  {arrivals: {at: [0s]}, job: {work: {duration: 1m}}, models: all}"),
            ":11:63: `models` is for arrivals.poisson; with arrivals.at the job says it all",
            None,
        ),
    ]);
}

#[test]
fn links_make_one_piece() {
    let links = |list: &str| document("Cluster", &format!("  nodes: [{{count: 3}}]\n  links: {list}"));
    let common = Some("lead both up to a switch that they have in common");
    check(&[
        (
            links("[{from: node-0, to: a, rate: 1Gbps}, {from: node-1, to: a, rate: 1Gbps}]"),
            ":6:10: no links lead from `node-0` to `node-2`",
            common,
        ),
        (
            links(
                "[{from: node-0, to: a, rate: 1Gbps}, {from: node-1, to: a, rate: 1Gbps}, {from: node-1, to: b, rate: 1Gbps}, {from: node-2, to: b, rate: 1Gbps}]",
            ),
            ":6:10: no links lead from `node-0` to `node-2`",
            common,
        ),
        (
            links("{node: 1Gbps, withinNode: 0bps}"),
            ":6:36: the rate within a node is more than nothing",
            Some("write `free` where members on one node load no link"),
        ),
        (links("{node: 0Gbps}"), ":6:17: the rate of a link is more than nothing", None),
    ]);
}

#[test]
fn a_link_fault_names_a_link() {
    let faults = |list: &str| beside_links("Workload", &format!("  faults: [{list}]"));
    check(&[
        (
            faults("{link: {from: node-3, to: rot}, at: 1s}"),
            ":12:38: there is no node and no switch `rot`",
            Some("did you mean `root`?"),
        ),
        (
            faults("{link: {from: node-3, to: node-4}, at: 1s}"),
            ":12:19: there is no link between `node-3` and `node-4`",
            Some("a link joins a node or switch to a switch right above it"),
        ),
        (
            faults("{link: {from: node-3, to: root}}"),
            ":12:19: it is not said when the link fails",
            Some("add `at: 10s`"),
        ),
        (
            faults("{link: {from: node-3, to: root}, at: 1s, rate: 0bps}"),
            ":12:59: the rate of a link is more than nothing",
            Some("leave `rate` out for a link that carries nothing"),
        ),
        (
            faults("{link: {from: node-3, to: root}, at: 1s, rate: 200Gbps}"),
            ":12:59: the link carries 100Gbps when nothing is wrong",
            Some("a fault takes something away: write a lower rate, or a part such as 50%"),
        ),
        (
            faults("{link: {from: node-3, to: root}, at: 1s, rate: 100%}"),
            ":12:59: the link carries 100Gbps when nothing is wrong",
            Some("a fault takes something away: write a lower rate, or a part such as 50%"),
        ),
        (
            faults(
                "{link: {from: node-3, to: root}, at: 1s, for: 9s}, {link: {from: root, to: node-3}, at: 5s}",
            ),
            ":12:63: another fault of the same link is not over then",
            Some("let one begin when the other is over: at, for"),
        ),
    ]);
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
        (
            faults("{node: node-0, at: 1s, members: dance}"),
            ":11:44: unknown word for what members do `dance`",
            Some("known are fail"),
        ),
        (
            faults("{steps: {fail: 1%}, notice: 5m}"),
            ":11:40: only of a node that goes it is said before that it will",
            None,
        ),
        (
            faults("{node: node-0, at: 1s, slowdown: 1}"),
            ":11:45: on a slow node everything takes longer",
            Some("write how many times as long, such as 1.5"),
        ),
        (
            faults("{node: node-0, at: 1s, slowdown: much}"),
            ":11:45: `much` is not a number from 1 to 1000",
            None,
        ),
        (
            faults("{node: node-0, at: 1s, slowdown: 2, members: fail}"),
            ":11:45: a node is slow, and nothing else of it is wrong at the same time",
            Some("write `{node: node-0, at: 10s, slowdown: 1.5}`"),
        ),
        (
            faults("{node: node-0, at: 1s, slowdown: 2, notice: 1s}"),
            ":11:56: only of a node that goes it is said before that it will",
            None,
        ),
        (faults("{at: 1s, members: fail}"), ":11:12: members fail on a node", Some("add `node: node-0`")),
        (faults("{steps: {late: 1%}}"), ":11:20: steps come late by nothing", Some("add `delay: 10s`")),
        (faults("{steps: {fail: 60%, lost: 60%}}"), ":11:20: the chances of a step sum to more than 1", None),
        (
            faults("{at: 1s}"),
            ":11:12: a fault is one of {node, at, for, notice, members, slowdown, agent, delay}, {link: {from, to}, at, for, rate}, {job, at, for} and \
             {steps: {fail, late, lost, delay}}",
            None,
        ),
    ]);
}

#[test]
fn a_job_that_hangs_is_one_that_there_is() {
    let faults = |list: &str| {
        let jobs = "arrivals: {at: [0s]}\n  job: {members: 1, work: {duration: 1m}}";
        beside_a_cluster("Workload", &format!("  faults: [{list}]\n  {jobs}"))
    };
    check(&[
        (faults("{job: it-1, at: 1s}"), ":11:18: there is no job `it-1`", Some("did you mean `it-0`?")),
        (faults("{job: it-0}"), ":11:18: it is not said when the job hangs", Some("add `at: 10s`")),
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
