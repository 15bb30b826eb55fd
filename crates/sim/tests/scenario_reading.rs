//! What a scenario says is what is read, and the reference page is true.

use std::fs;
use std::path::Path;

use metronome_core::cluster::Level;
use metronome_core::id::{NodeId, QueueId};
use metronome_core::job::{Capabilities, Gang, Priority, RoleKind, Topology};
use metronome_core::policy::{Gangs, Links, Order, Placement, Policy, Preemption, Queueing, Weights};
use metronome_core::units::{Bandwidth, Cpu, Duration, GpuTime, Gpus, Instant, Memory, Share};
use metronome_sim::scenario::{Costs, Fault, Scenario};

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
    assert_eq!(spec.deadline, Some(Instant::from_secs(10 + 6 * 3600)));
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
    assert_eq!(scenario.costs, Costs { start: Duration::from_secs(5), stop: Duration::from_millis(500) });
    let expected = [
        Fault::Node { node: NodeId(3), at: Instant::from_secs(10), lasts: Some(Duration::from_secs(5400)) },
        Fault::Node { node: NodeId(25), at: Instant::from_secs(86_400), lasts: None },
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
            preemption: Preemption::ByRank,
            placement: Placement::Topology,
            links: Links::Shared,
        }
    );
    let limits = vec![GpuTime::gpu_seconds(3250), GpuTime::gpu_seconds(7200)];
    let base = Policy::named("metronome").unwrap();
    assert_eq!(policies[1], Policy { name: "levels".into(), order: Order::LeastAttained { limits }, ..base });
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
