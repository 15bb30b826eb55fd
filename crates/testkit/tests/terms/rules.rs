//! Members beside, apart from and spread among others.

use std::sync::Arc;

use metronome_core::check::Violation;
use metronome_core::engine::Event;
use metronome_core::model::id::{GroupId, JobId, NodeId};
use metronome_core::model::job::{JobSpec, Rule};
use metronome_core::model::plan::{Amendment, Assignment, Generation, Part};
use metronome_core::model::report::Reason;
use metronome_testkit::build::{policy, racks};
use metronome_testkit::drive::Driver;

use super::{NOW, assert_well, each_its_own, gang, nodes, observe, runs, single, two_by_two};

/// Four nodes of four GPUs with one group over these domains.
fn world(domains: Vec<(NodeId, u32)>, others: Vec<(NodeId, u32)>) -> (Driver, GroupId) {
    let mut driver = Driver::new(racks(2, 2, 4), policy("volcano"));
    let partition = driver.engine.add_partition(NOW, domains);
    let group = driver.engine.add_group(NOW, partition, others, vec![]);
    (driver, group)
}

fn ruled(mut spec: JobSpec, groups: &[GroupId], rules: &[Rule]) -> JobSpec {
    spec.roles[0].shape.groups = Arc::from(groups);
    spec.roles[0].shape.rules = Arc::from(rules);
    spec
}

fn together(group: GroupId, or_first: bool) -> Rule {
    Rule::Together { groups: vec![group], or_first }
}

fn spread(group: GroupId, skew: u32) -> Rule {
    Rule::Spread { group, skew, own: true, least_domains: 0 }
}

/// How many members a job has in each pair of nodes.
fn by_pair(driver: &Driver, job: JobId) -> [u32; 2] {
    let mut pairs = [0, 0];
    for part in driver.engine.plan().get(job).unwrap().parts() {
        pairs[part.node.0 as usize / 2] += part.members;
    }
    pairs
}

#[test]
fn members_that_keep_apart_never_share_a_domain() {
    let (mut driver, group) = world(each_its_own(), vec![(NodeId(2), 1)]);
    let job = driver.submit(ruled(gang("a", 3, 1), &[group], &[Rule::Apart(group)]));
    driver.settle();
    assert_eq!(nodes(&driver, job), [0, 1, 3]);
    let late = driver.submit(ruled(single("b", 1), &[group], &[Rule::Apart(group)]));
    driver.settle();
    assert_eq!(driver.engine.verdict(late), Some(Reason::AntiAffinityUnsatisfied { members: 1, fit: 0 }));
    observe(&mut driver, Event::OthersChanged { group, node: NodeId(2), count: 0 });
    driver.settle();
    assert_eq!(nodes(&driver, late), [2]);
    assert_well(&driver);
}

#[test]
fn to_keep_apart_binds_who_comes_not_who_is_there() {
    let (mut driver, group) = world(vec![(NodeId(0), 0)], vec![]);
    let apart = driver.submit(ruled(single("apart", 1), &[], &[Rule::Apart(group)]));
    driver.settle();
    let member = driver.submit(ruled(single("member", 1), &[group], &[]));
    driver.settle();
    assert_eq!((nodes(&driver, apart), nodes(&driver, member)), (vec![0], vec![0]));
    assert_well(&driver);
}

#[test]
fn members_that_belong_together_wait_for_whom_they_belong_to() {
    let (mut driver, group) = world(two_by_two(), vec![]);
    let follower = driver.submit(ruled(single("follower", 1), &[], &[together(group, false)]));
    driver.settle();
    assert_eq!(driver.engine.verdict(follower), Some(Reason::AffinityUnsatisfied { members: 1, fit: 0 }));
    let leader = driver.submit(ruled(single("leader", 4), &[group], &[]));
    driver.settle();
    assert!(runs(&driver, leader) && runs(&driver, follower));
    assert_eq!(nodes(&driver, leader)[0] / 2, nodes(&driver, follower)[0] / 2);
    assert_well(&driver);
}

#[test]
fn who_waits_for_somebody_behind_in_line_follows_in_the_same_pass() {
    let (mut driver, group) = world(two_by_two(), vec![]);
    let follower = driver.submit(ruled(single("follower", 1), &[], &[together(group, false)]));
    driver.submit(ruled(single("leader", 4), &[group], &[]));
    driver.poll();
    assert!(driver.engine.plan().get(follower).is_some());
    assert_well(&driver);
}

#[test]
fn the_first_of_a_gang_goes_where_there_is_room_for_all_of_it() {
    let (mut driver, group) = world(two_by_two(), vec![]);
    driver.submit(single("half", 2));
    driver.settle();
    let job = driver.submit(ruled(gang("a", 8, 1), &[group], &[together(group, true)]));
    driver.settle();
    assert_eq!(by_pair(&driver, job), [0, 8], "the fuller pair would hold six");
    assert_well(&driver);
}

#[test]
fn members_that_spread_keep_the_domains_even() {
    let (mut driver, group) = world(two_by_two(), vec![(NodeId(0), 2)]);
    let job = driver.submit(ruled(gang("a", 6, 1), &[group], &[spread(group, 1)]));
    driver.settle();
    assert_eq!(by_pair(&driver, job), [2, 4]);
    let late = driver.submit(ruled(gang("b", 6, 1), &[group], &[spread(group, 1)]));
    driver.settle();
    assert_eq!(driver.engine.verdict(late), None, "it fits, three and three");
    let last = driver.submit(ruled(gang("c", 2, 1), &[group], &[spread(group, 0)]));
    driver.settle();
    assert_eq!(driver.engine.verdict(last), Some(Reason::SpreadUnsatisfied { members: 2, fit: 0 }));
    assert_well(&driver);
}

#[test]
fn with_too_few_domains_nobody_counts_as_the_least() {
    let (mut driver, group) = world(two_by_two(), vec![]);
    let rule = Rule::Spread { group, skew: 1, own: true, least_domains: 3 };
    let job = driver.submit(ruled(gang("a", 2, 1), &[group], std::slice::from_ref(&rule)));
    driver.settle();
    assert_eq!(by_pair(&driver, job), [1, 1]);
    let more = driver.submit(ruled(single("b", 1), &[group], &[rule]));
    driver.settle();
    assert_eq!(driver.engine.verdict(more), Some(Reason::SpreadUnsatisfied { members: 1, fit: 0 }));
}

#[test]
fn a_role_may_join_a_group_while_it_runs() {
    let (mut driver, group) = world(each_its_own(), vec![]);
    let job = driver.submit(single("a", 1));
    driver.settle();
    let partition = driver.engine.state().groups.groups[group].partition;
    observe(&mut driver, Event::Group { group, partition, others: vec![], members: vec![(job, 0)] });
    let apart = driver.submit(ruled(single("b", 1), &[], &[Rule::Apart(group)]));
    driver.settle();
    assert_ne!(nodes(&driver, job), nodes(&driver, apart));
    assert_well(&driver);
}

#[test]
fn feasible_nodes_are_those_with_room_that_the_rules_allow() {
    let (mut driver, group) = world(two_by_two(), vec![(NodeId(0), 1)]);
    driver.submit(single("full", 4));
    driver.settle();
    let job = driver.submit(ruled(single("a", 1), &[], &[together(group, false)]));
    assert_eq!(driver.engine.feasible_nodes(job), [NodeId(1)]);
    let pair = driver.submit(gang("b", 2, 1));
    assert_eq!(driver.engine.feasible_nodes(pair), [], "a gang has no single node");
}

/// The checker's word on a job of one role placed by hand.
fn judged(driver: &Driver, job: JobId, nodes: &[u32]) -> Result<(), Violation> {
    let part = |node: &u32| Part::of(0, NodeId(*node), 1);
    let spec = &driver.engine.job(job).unwrap().spec;
    let to = Assignment::whole(spec, nodes.iter().map(part).collect()).unwrap();
    let changes = [(job, Some(Arc::new(to)))].into_iter().collect();
    driver.engine.check(Amendment::of_assignments(Generation(1), changes)).map(|_| ())
}

#[test]
fn the_checker_recounts_who_is_where() {
    let (mut driver, group) = world(two_by_two(), vec![(NodeId(0), 1)]);
    let apart = driver.submit(ruled(gang("apart", 2, 1), &[], &[Rule::Apart(group)]));
    assert_eq!(judged(&driver, apart, &[2, 3]), Ok(()));
    assert_eq!(judged(&driver, apart, &[2, 1]), Err(Violation::AntiAffinityBroken(apart, NodeId(1))));
    let near = driver.submit(ruled(gang("near", 2, 1), &[group], &[together(group, true)]));
    assert_eq!(judged(&driver, near, &[0, 1]), Ok(()));
    assert_eq!(judged(&driver, near, &[0, 2]), Err(Violation::AffinityBroken(near, NodeId(2))));
    let even = driver.submit(ruled(gang("even", 2, 1), &[group], &[spread(group, 0)]));
    assert_eq!(judged(&driver, even, &[0, 1]), Err(Violation::SpreadBroken(even, NodeId(0))));
    let alone = driver.submit(ruled(gang("alone", 2, 1), &[group], &[Rule::Apart(group)]));
    assert_eq!(judged(&driver, alone, &[2, 3]), Err(Violation::AntiAffinityBroken(alone, NodeId(2))));
}

#[test]
fn of_two_who_keep_apart_from_each_other_one_is_wrong() {
    let (mut driver, group) = world(two_by_two(), vec![]);
    let spec = ruled(single("a", 1), &[group], &[Rule::Apart(group)]);
    let jobs = [driver.submit(spec.clone()), driver.submit(spec.clone())];
    let on = |node| {
        let part = Part::of(0, NodeId(node), 1);
        Some(Arc::new(Assignment::whole(&spec, vec![part]).unwrap()))
    };
    let judged = |nodes: [u32; 2]| {
        let changes = jobs.into_iter().zip(nodes.map(on)).collect();
        driver.engine.check(Amendment::of_assignments(Generation(1), changes)).map(|_| ())
    };
    assert_eq!(judged([0, 2]), Ok(()));
    assert_eq!(judged([0, 1]), Err(Violation::AntiAffinityBroken(jobs[0], NodeId(0))));
}

#[test]
fn only_one_member_of_a_gang_can_be_the_first() {
    let (mut driver, group) = world(two_by_two(), vec![]);
    let job = driver.submit(ruled(gang("a", 2, 1), &[group], &[together(group, true)]));
    assert_eq!(judged(&driver, job, &[0, 1]), Ok(()));
    assert_eq!(judged(&driver, job, &[0, 2]), Err(Violation::AffinityBroken(job, NodeId(2))));
}
