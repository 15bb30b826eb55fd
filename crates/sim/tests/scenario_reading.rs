//! What a scenario says is what is read, and the reference page is true.

use std::fs;
use std::path::Path;

use metronome_core::model::cluster::{Level, Vertex};
use metronome_core::model::id::{NodeId, QueueId};
use metronome_core::model::job::{Capabilities, Deadline, Gang, Priority, RoleKind, Topology};
use metronome_core::model::policy::{
    Deadlines, Gangs, Links, Moving, Order, Placement, Policy, Preemption, Queueing, Sharing, Sizing,
    Slowdowns, Throttling, Weights,
};
use metronome_core::model::units::{
    Bandwidth, Cpu, Duration, GpuTime, Gpus, Instant, Iterations, Memory, Share,
};
use metronome_core::tuning::Tuning;
use metronome_sim::model::{self, Pattern};
use metronome_sim::noise::Noise;
use metronome_sim::scenario::{Arrival, Costs, Fault, InputError, Scenario};

fn everything() -> Scenario {
    Scenario::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/everything.yaml")).unwrap()
}

/// A trace on two nodes of eight GPUs, with what else the workload says.
fn traced(rows: &str, settings: &str) -> Scenario {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.csv"), rows).unwrap();
    let text = format!(
        "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: two}}\nspec: {{nodes: [{{count: 2, gpus: 8}}]}}\n\
         ---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {{name: traced}}\nspec:\n  arrivals: {{trace: jobs.csv}}\n{settings}"
    );
    Scenario::read_from(text.as_bytes(), "lab.yaml", folder.path()).unwrap()
}

#[test]
fn every_example_of_the_reference_is_a_scenario() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenario.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 5, "the page has examples");
    for block in blocks {
        Scenario::read_from(block.as_bytes(), "scenario.md", Path::new(""))
            .unwrap_or_else(|error| panic!("cannot {error}\n{block}"));
    }
}

#[test]
fn nodes_are_laid_out_over_the_levels() {
    let cluster = everything().cluster;
    assert_eq!(cluster.nodes().len(), 26);
    let node = cluster.node(cluster.find_node("node-13").unwrap());
    let domains: Vec<&str> = node.domains.iter().map(|domain| cluster.domain_name(*domain)).collect();
    assert_eq!(domains, ["pod-1", "rack-2"]);
    let old = cluster.node(cluster.find_node("old-1").unwrap());
    let domains: Vec<&str> = old.domains.iter().map(|domain| cluster.domain_name(*domain)).collect();
    assert_eq!(domains, ["pod-2", "rack-4"], "a group begins a new domain at every level");
    assert_eq!((old.capacity.cpu, old.capacity.memory), (Cpu::cores(32), Memory(3 << 39)));
    assert_eq!(cluster.gpu_type_name(node.gpu_type.unwrap()), "h200");
}

#[test]
fn a_tree_of_links_has_one_switch_for_each_domain() {
    let cluster = everything().cluster;
    let cables = 26 + 5 + 3;
    assert_eq!(cluster.fabric.links().len(), 2 * cables);
    let path = cluster.fabric.path(NodeId(0), NodeId(13)).unwrap();
    let rates: Vec<Bandwidth> = path.iter().map(|(link, _)| cluster.fabric.links()[*link].rate).collect();
    assert_eq!(rates.len(), 6, "up and down through rack, pod and root");
    assert_eq!(rates.iter().min(), Some(&Bandwidth(100_000_000_000)));
}

#[test]
fn a_training_job_is_read_with_everything_it_says() {
    let scenario = everything();
    let jobs = scenario.arrivals(1);
    let arrival = jobs.iter().find(|job| &*job.spec.name == "team-a/bert").unwrap();
    let spec = &arrival.spec;
    assert_eq!(arrival.at, Instant::from_secs(10));
    assert_eq!(spec.deadline, Some(Deadline::soft(Instant::from_secs(10 + 6 * 3600))));
    assert_eq!((spec.queue, spec.priority, spec.user), (QueueId(2), Priority::HIGH, Share(500_000)));
    assert_eq!(spec.roles[0].kind, RoleKind::Ps);
    assert_eq!(spec.roles[1].gang, Gang::elastic(4, 16).unwrap());
    assert_eq!(spec.work.alone, Some(Duration::from_secs(42_000)), "200,000 iterations of 210 ms");
    assert_eq!(spec.topology, Topology::Preferred(Level(1)));
    assert_eq!(spec.capabilities, Capabilities::CHECKPOINTED);
    assert_eq!(spec.checkpointing.unwrap().every, Some(Duration::from_secs(600)));
    let small = jobs.iter().find(|job| &*job.spec.name == "small").unwrap();
    assert_eq!(small.spec.capabilities, Capabilities::START_ONLY);
    assert_eq!((small.spec.gpus(), small.spec.members()), (Gpus::whole(1), 2));
}

#[test]
fn users_count_as_their_queue_says() {
    let scenario = everything();
    let user =
        |name: &str| scenario.arrivals(1).iter().find(|job| &*job.spec.name == name).unwrap().spec.user;
    assert_eq!((user("a"), user("b")), (Share::WHOLE, Share(500_000)));
    let names: Vec<&str> = scenario.queues.values().map(|queue| &*queue.name).collect();
    assert_eq!(names, ["default", "research", "students"]);
    assert_eq!(scenario.queues[QueueId(2)].parent, Some(QueueId(1)));
    let bound = scenario.queues[QueueId(1)].bound().unwrap();
    assert_eq!((bound.gpus, bound.cpu), (Gpus::whole(32), Cpu::cores(100)));
    assert!(bound.memory > Memory::gib(1 << 30), "what a quota does not name is not bounded");
}

#[test]
fn jobs_come_in_the_order_of_submission() {
    let names: Vec<String> = everything().arrivals(1).iter().map(|job| job.spec.name.to_string()).collect();
    assert_eq!(names, ["small", "a", "c", "b", "team-a/bert"]);
}

#[test]
fn the_world_takes_and_breaks_what_the_workload_says() {
    let scenario = everything();
    assert_eq!((scenario.name.as_str(), scenario.tick), ("everything", Duration::SECOND));
    assert_eq!(scenario.round, Duration::from_secs(360));
    assert_eq!(scenario.costs, Costs { start: Duration::from_secs(5), stop: Duration::from_millis(500) });
    let expected = [
        Fault::Node {
            node: NodeId(3),
            at: Instant::from_secs(10),
            lasts: Some(Duration::from_secs(5400)),
            notice: Duration::ZERO,
        },
        Fault::Node {
            node: NodeId(25),
            at: Instant::from_secs(86_400),
            lasts: None,
            notice: Duration::from_secs(600),
        },
        Fault::Slow {
            node: NodeId(4),
            at: Instant::from_secs(7200),
            lasts: Some(Duration::from_secs(3600)),
            slowdown: 1.5,
        },
        Fault::Steps {
            fail: Share(10_000),
            late: Share(10_000),
            lost: Share(1000),
            delay: Duration::from_secs(10),
        },
    ];
    assert_eq!(scenario.faults, expected);
}

#[test]
fn a_policy_keeps_what_its_base_says() {
    let policies = everything().policies;
    assert_eq!(
        policies[0],
        Policy {
            name: "mine".into(),
            order: Order::Weighted(Weights::DEFAULT),
            gangs: Gangs::Whole,
            queueing: Queueing::HeadBlocks,
            sharing: Sharing::Fair,
            sizing: Sizing::Least,
            preemption: Preemption::ByRank,
            placement: Placement::Topology,
            links: Links::Shared,
            slowdowns: Slowdowns::Weighed,
            moving: Moving::Never,
            throttling: Throttling::Never,
            deadlines: Deadlines::Ignored,
            tuning: Tuning::DEFAULT,
        }
    );
    let limits = vec![GpuTime::gpu_seconds(3250), GpuTime::gpu_seconds(7200)];
    let base = Policy::named("metronome").unwrap();
    assert_eq!(policies[1], Policy { name: "levels".into(), order: Order::LeastAttained { limits }, ..base });
}

#[test]
fn a_policy_overrides_tuning_entries_by_name() {
    let policy = "---\napiVersion: metronome.dev/v1alpha1\nkind: Policy\nmetadata: {name: tuned}\nspec:\n  \
                  tuning: {predictionTolerance: 0.02, userWeight: 0.5, brevityWeight: 18%}\n";
    let policies = traced("job,submit_s,gpus,duration_s\na,0,8,10\n", policy).policies;
    let tuning = &policies[0].tuning;
    assert!((tuning.traffic.prediction_tolerance - 0.02).abs() < f64::EPSILON);
    let overridden = tuning.entries().into_iter().filter(|entry| entry.is_overridden()).count();
    assert_eq!(overridden, 3, "all other entries keep their values");
    let Order::Weighted(weights) = &policies[0].order else { panic!("metronome orders by weights") };
    assert_eq!(*weights, Weights::of(&tuning.decide).unwrap());
    assert_ne!(*weights, Weights::DEFAULT);
}

#[test]
fn a_size_in_gpus_becomes_members_and_a_rest() {
    let scenario =
        traced("gpus,job,duration_s,submit_s\n20,a,0.000000001,1e-3\n3,b,5,0\n", "  gpus: {perMember: 8}\n");
    let jobs = scenario.arrivals(1);
    let (b, a) = (&jobs[0].spec, &jobs[1].spec);
    let sizes: Vec<_> = a.roles.iter().map(|role| (role.gang.min(), role.shape.each.gpus)).collect();
    assert_eq!(sizes, [(2, Gpus::whole(8)), (1, Gpus::whole(4))], "larger than the cluster, and kept");
    assert_eq!(a.work.alone, Some(Duration(1)), "exact to the nanosecond");
    assert_eq!(jobs[1].at, Instant(1_000_000));
    assert_eq!((b.members(), b.gpus()), (1, Gpus::whole(3)));
}

#[test]
fn an_elastic_row_has_members_that_divide_both_bounds() {
    let rows = "job,submit_s,gpus,duration_s,min_gpus,max_gpus\na,0,8,10,4,16\nb,1,8,10,6,10\nc,2,8,10,8,8\n";
    let scenario = traced(rows, "");
    let shapes: Vec<_> = scenario
        .arrivals(1)
        .iter()
        .map(|job| {
            (job.spec.roles[0].gang.min(), job.spec.roles[0].gang.max(), job.spec.roles[0].shape.each.gpus)
        })
        .collect();
    assert_eq!(shapes, [(1, 4, Gpus::whole(4)), (3, 5, Gpus::whole(2)), (1, 1, Gpus::whole(8))]);
    let alone: Vec<_> = scenario.arrivals(1).iter().map(|job| job.spec.work.alone.unwrap()).collect();
    assert_eq!(alone[0], Duration::from_secs(20), "half the GPUs take twice the time");
}

#[test]
fn priorities_are_drawn_in_their_shares_and_the_same_again() {
    let rows: String = (0..2000).map(|n| format!("j{n},0,1,1\n")).collect();
    let rows = format!("job,submit_s,gpus,duration_s\n{rows}");
    let draw = || traced(&rows, "  priorities: {high: 0.2, normal: 50%, low: 0.3}\n  limit: 1000\n");
    let (first, second) = (draw(), draw());
    assert_eq!(first.job_count(), 1000);
    let high = first.arrivals(1).iter().filter(|job| job.spec.priority == Priority::HIGH).count();
    assert!((150..250).contains(&high), "{high} of 1000");
    assert_eq!(first.arrivals(1), second.arrivals(2), "a trace is the same for every seed");
}

#[test]
fn a_trace_may_be_sorted_by_nothing_and_written_by_anyone() {
    let rows = "\u{feff}job, submit_s ,gpus,duration_s,model\r\nb,2,1,1,vgg\r\n\"a\",1,1,1,\r\n\r\n";
    let jobs = traced(rows, "").arrivals(1);
    let names: Vec<&str> = jobs.iter().map(|job| &*job.spec.name).collect();
    assert_eq!(names, ["a", "b"]);
}

/// Two racks of two nodes with four GPUs, with links, and what else there is.
fn linked(rates: &str, documents: &str) -> Result<Scenario, InputError> {
    let text = format!(
        "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: lab}}\nspec:\n  levels: [rack, node]\n  \
         nodes: [{{count: 4, perRack: 2, gpus: 4}}]\n  links: {{{rates}}}\n{documents}"
    );
    Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new(""))
}

fn training_job(spec: &str) -> String {
    format!(
        "---\napiVersion: metronome.dev/v1alpha1\nkind: TrainingJob\nmetadata: {{name: it}}\nspec: {{{spec}}}\n"
    )
}

fn only_job(rates: &str, spec: &str) -> Arrival {
    linked(rates, &training_job(spec)).unwrap().arrivals(1).remove(0)
}

const RATES: &str = "node: 100Gbps, rack: 60Gbps";

#[test]
fn a_model_says_what_an_iteration_takes_alone_on_the_fewest_nodes() {
    let vgg = model::named("vgg16/128").unwrap();
    let job = |members| {
        only_job(RATES, &format!("model: vgg16/128, members: {members}, work: {{iterations: 1000}}"))
    };
    let ways = [(4, 1, "100Gbps"), (8, 2, "100Gbps"), (12, 3, "60Gbps"), (16, 4, "60Gbps")];
    for (members, nodes, rate) in ways {
        let job = job(members);
        let training = job.training.unwrap();
        assert_eq!(training.pattern, Pattern::Gradients(vgg.clone()));
        assert_eq!((training.iterations, &training.noise), (1000, &Noise::None));
        let iteration =
            vgg.iteration.alone(metronome_core::model::profile::ring_load(nodes), rate.parse().unwrap());
        assert_eq!(job.spec.work.alone, Some(iteration.times(1000)), "{members} members");
        assert_eq!(job.spec.work.iterations, Some(Iterations(1000)));
    }
    assert!(job(4).spec.work.alone < job(8).spec.work.alone);
    let within = |rate: &str| {
        only_job(
            &format!("{RATES}, withinNode: {rate}"),
            "model: vgg16/128, members: 4, work: {iterations: 1}",
        )
    };
    let slow = vgg.iteration.alone(1.5, "10Gbps".parse().unwrap());
    assert_eq!(within("10Gbps").spec.work.alone, Some(slow), "a ring over four GPUs of one node");
    assert_eq!(within("free").spec.work.alone, Some(vgg.iteration.alone(0.0, Bandwidth(1))));
    let kept = |rates: &str| linked(rates, &training_job("work: {duration: 1s}")).unwrap().within_node;
    assert_eq!(kept("node: 1Gbps, rack: 1Gbps, withinNode: 900Gbps"), Some(Bandwidth(900_000_000_000)));
    assert_eq!(kept("node: 1Gbps, rack: 1Gbps, withinNode: free"), None);
}

#[test]
fn a_duration_becomes_iterations_where_a_pattern_is_known() {
    let job = only_job(
        RATES,
        "traffic: {period: 300ms, phases: [{length: 60ms, rate: 40Gbps}]}, work: {duration: 1m}",
    );
    let training = job.training.unwrap();
    assert!(matches!(&training.pattern, Pattern::Phases(traffic) if traffic.phases().len() == 1));
    assert_eq!((training.iterations, job.spec.work.alone), (200, Some(Duration::MINUTE)));
    assert!(job.spec.profile.as_ref().unwrap().traffic.is_some());
    let alone = |rate: &str| {
        let traffic = format!("traffic: {{period: 300ms, phases: [{{length: 60ms, rate: {rate}}}]}}");
        only_job(RATES, &format!("members: 5, {traffic}, work: {{iterations: 10}}")).spec.work.alone
    };
    assert_eq!(alone("200Gbps"), Some(Duration::from_secs(3)), "twice as long, and still within the period");
    assert_eq!(alone("1Tbps"), Some(Duration::from_secs(6)), "a burst that outlasts it holds the next up");
    let tiny = only_job(RATES, "model: xlm/32, work: {duration: 1ms}");
    assert_eq!(tiny.training.unwrap().iterations, 1);
    let plain = only_job(RATES, "work: {duration: 1m}");
    assert_eq!((plain.training, plain.spec.profile.clone()), (None, None));
}

#[test]
fn traffic_without_links_is_a_hint() {
    let scenario = traced("job,submit_s,gpus,duration_s\na,0,1,1\n", "");
    assert!(scenario.cluster.fabric.is_empty());
    let jobs = everything().arrivals(1);
    let bert = jobs.iter().find(|job| &*job.spec.name == "team-a/bert").unwrap();
    assert!(bert.training.is_some(), "this one has links");
    let text = format!(
        "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: one}}\nspec: {{nodes: [{{gpus: 1}}]}}\n{}",
        training_job("traffic: {period: 100ms}, work: {iterations: 10}")
    );
    let job = Scenario::read_from(text.as_bytes(), "lab.yaml", Path::new("")).unwrap().arrivals(1).remove(0);
    assert_eq!((job.training, job.spec.work.alone), (None, Some(Duration::SECOND)));
    assert!(job.spec.profile.as_ref().unwrap().traffic.is_some());
}

/// A trace on the linked lab.
fn linked_trace(rows: &str) -> Result<Vec<Arrival>, InputError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.csv"), rows).unwrap();
    let text = "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\n\
        spec: {nodes: [{count: 4, gpus: 4, cpu: 64}], links: {node: 100Gbps}}\n---\n\
        apiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {name: it}\n\
        spec: {arrivals: {trace: jobs.csv}, noise: {compute: 2%}, gpus: {perGpu: {cpu: 8}}}\n";
    Scenario::read_from(text.as_bytes(), "lab.yaml", folder.path()).map(|scenario| scenario.arrivals(1))
}

#[test]
fn a_known_model_makes_a_training_loop_of_a_row() {
    let jobs = linked_trace(
        "job,submit_s,gpus,duration_s,model,iterations,min_gpus,max_gpus\n\
         counted,0,8,,xlm/32,1000,,\nboth,1,8,77,xlm/32,1000,,\ntimed,2,8,100,xlm/32,,,\n\
         stranger,3,8,100,vgg19,500,,\nelastic,4,8,100,xlm/32,,4,16\nhuge,5,400,100,xlm/32,,,\n",
    )
    .unwrap();
    let xlm = model::named("xlm/32").unwrap();
    let iteration = xlm.iteration.alone(1.0, "100Gbps".parse().unwrap());
    let alone: Vec<Duration> = jobs.iter().map(|job| job.spec.work.alone.unwrap()).collect();
    assert_eq!(
        alone[..2],
        [iteration.times(1000), iteration.times(1000)],
        "iterations count before a duration"
    );
    assert!(alone[2].0.abs_diff(Duration::from_secs(100).0) <= iteration.0 / 2);
    assert_eq!(jobs[2].training.as_ref().unwrap().noise, Noise::Gaussian(Share(20_000)));
    assert_eq!(jobs[3].training, None, "a model that is not known is ignored");
    assert_eq!((alone[3], jobs[3].spec.work.iterations), (Duration::from_secs(100), Some(Iterations(500))));
    assert!(alone[4].0.abs_diff(Duration::from_secs(200).0) < Duration::SECOND.0, "at its smallest size");
    assert_eq!(jobs[0].spec.least().cpu, Cpu::cores(64));
    assert!(jobs[5].training.is_some(), "kept, to be refused in the run");
    let error =
        linked_trace("job,submit_s,gpus,duration_s,model,iterations\na,0,8,,xml/32,1000\n").unwrap_err();
    assert_eq!((error.message(), error.position().unwrap().line), ("job `a` has no duration", 2));
    assert_eq!(error.hint(), Some("a model that is known would do: did you mean `xlm/32`?"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("jobs.csv"), "job,submit_s,gpus,duration_s,model\na,0,1,1,xlm/32\n")
        .unwrap();
    let text = "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {name: lab}\nspec: {nodes: [{gpus: 4}]}\n---\n\
        apiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {name: it}\nspec: {arrivals: {trace: jobs.csv}}\n";
    let error = Scenario::read_from(text.as_bytes(), "lab.yaml", folder.path()).unwrap_err();
    assert_eq!(error.message(), "a model sends its gradients over links, and the Cluster has none");
}

#[test]
fn a_link_fault_is_both_directions_of_a_cable() {
    let faults = "---\napiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {name: w}\nspec:\n  faults:\n    \
        - {link: {from: node-3, to: rack-1}, at: 10m, for: 5m, rate: 10Gbps}\n    \
        - {link: {from: root, to: rack-0}, at: 1s}\n";
    let scenario = linked(RATES, &format!("{}{faults}", training_job("work: {duration: 1s}"))).unwrap();
    let fabric = &scenario.cluster.fabric;
    let Fault::Link { links, at, lasts, rate } = scenario.faults[0] else { panic!("{:?}", scenario.faults) };
    assert_eq!((at, lasts), (Instant::from_secs(600), Some(Duration::from_secs(300))));
    assert_eq!(rate, Some(Bandwidth(10_000_000_000)));
    let ends = links.map(|link| (fabric.links()[link].from, fabric.links()[link].to));
    let (node, rack) = (Vertex::Node(NodeId(3)), fabric.find_switch("rack-1").unwrap());
    assert_eq!(ends, [(node, rack), (rack, node)]);
    let Fault::Link { links, rate, .. } = scenario.faults[1] else { panic!("{:?}", scenario.faults) };
    assert_eq!((fabric.links()[links[0]].rate, rate), (Bandwidth(60_000_000_000), None));
}

#[test]
fn noise_is_drawn_from_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let read = |noise: &str, table: &str| {
        fs::write(folder.path().join("times.csv"), table).unwrap();
        let text = format!(
            "apiVersion: metronome.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: lab}}\n\
             spec: {{nodes: [{{count: 2, gpus: 4}}], links: {{node: 100Gbps}}}}\n---\n\
             apiVersion: metronome.dev/v1alpha1\nkind: Workload\nmetadata: {{name: w}}\n\
             spec: {{jobs: 3, arrivals: {{poisson: {{load: 0.5}}}}, models: all, gpus: {{from: 1, to: 4}}, \
             duration: {{median: 1m}}, noise: {{{noise}}}}}\n"
        );
        Scenario::read_from(text.as_bytes(), "noise.yaml", folder.path())
    };
    let scenario = read("measured: times.csv", "worker,batch_time_norm\n0,1\n1,3\n").unwrap();
    let noise = scenario.arrivals(1)[0].training.as_ref().unwrap().noise.clone();
    assert!(matches!(&noise, Noise::Measured(factors) if factors.values() == [0.5, 1.5]), "{noise:?}");
    let error = |noise, table| read(noise, table).unwrap_err().to_string();
    assert!(error("measured: times.csv", "worker\n0\n").contains("times.csv"), "no such column");
    assert!(error("measured: times.csv, column: t", "t\n-1\n").contains("times.csv: "));
    assert!(error("measured: none.csv", "").ends_with("none.csv: there is no such file"));
    assert!(error("measured: times.csv, compute: 1%", "").contains("noise.yaml:9:"));
    assert!(error("compute: 1%, column: t", "").contains("noise.yaml:9:"));
}
