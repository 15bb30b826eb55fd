//! Shares of GPUs: each on one device, nobody waits who would fit, and rests that are of use are left.

use metronome_core::model::id::{DeviceId, JobId, NodeId};
use metronome_core::model::job::{Gang, JobSpec, Life};
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Cpu, Gpus, Resources};
use metronome_testkit::build::{gpu_node, gpus, policy, racks, share};
use metronome_testkit::drive::{Driver, Op};
use proptest::prelude::*;

fn single(each: Resources) -> JobSpec {
    JobSpec::workers("one", Gang::rigid(1).unwrap(), each)
}

/// The node of each job of one part, and its device where it has a share of one.
fn places(driver: &Driver) -> Vec<(JobId, u32, Option<u32>)> {
    let place = |part: &metronome_core::model::plan::Part| (part.node.0, part.device.map(|device| device.0));
    let plan = driver.engine.plan().iter().map(|(id, held)| (id, place(&held.parts()[0])));
    plan.map(|(id, (node, device))| (id, node, device)).collect()
}

#[test]
fn two_halves_of_different_devices_are_no_gpu() {
    let mut driver = Driver::new(racks(1, 1, 2), policy("metronome"));
    for _ in 0..2 {
        driver.submit(single(share(600)));
    }
    let whole = driver.submit(single(gpus(1)));
    driver.settle();
    assert_eq!(places(&driver), [(JobId(0), 0, Some(0)), (JobId(1), 0, Some(1))]);
    let reason = driver.engine.verdict(whole);
    let wanted = Reason::InsufficientResources { each: gpus(1), members: 1, fit: 0 };
    assert_eq!(reason, Some(wanted), "800 thousandths are free");
}

#[test]
fn a_gang_of_shares_fills_devices_one_after_the_other() {
    let mut driver = Driver::new(racks(1, 1, 4), policy("metronome"));
    let gang = driver.submit(JobSpec::workers("gang", Gang::rigid(5).unwrap(), share(400)));
    driver.settle();
    let shares = driver.engine.plan().get(gang).unwrap().shares();
    let expected = [(0, 800), (1, 800), (2, 400)];
    let expected = expected.map(|(device, taken)| (NodeId(0), DeviceId(device), Gpus(taken)));
    assert_eq!(shares, expected);
}

#[test]
fn one_and_a_half_gpus_are_refused_at_once() {
    let mut driver = Driver::new(racks(1, 2, 8), policy("metronome"));
    let id = driver.submit(single(share(1500)));
    assert_eq!(driver.engine.life(id), None);
}

#[test]
fn a_device_is_free_again_when_its_last_share_is() {
    let mut driver = Driver::new(racks(1, 1, 1), policy("metronome"));
    let shares: Vec<JobId> = (0..2).map(|_| driver.submit(single(share(500)))).collect();
    let whole = driver.submit(single(gpus(1)));
    driver.settle();
    for _ in &shares {
        assert!(driver.engine.life(whole).is_some_and(Life::is_waiting));
        driver.apply(&Op::End(0));
        driver.settle();
    }
    assert!(matches!(driver.engine.life(whole), Some(Life::Running(_))));
}

/// Node 0 has CPU for little beside its GPUs, node 1 for much.
#[test]
fn a_member_goes_where_it_makes_least_useless_to_others() {
    let mut driver = Driver::new(racks(1, 2, 2), policy("metronome"));
    let with_cpu = |gpus: u64, cores: u64| Resources { cpu: Cpu::cores(cores), ..share(gpus) };
    // Most ask for a whole GPU with 12 cores; a node has 32 cores and two GPUs.
    for _ in 0..3 {
        driver.submit(single(with_cpu(1000, 12)));
    }
    driver.settle();
    // What is left beside a member of 12 cores is 20 cores and a GPU, beside two of them 8 cores and none. A share with
    // 9 cores leaves too little beside it for such a member; a tightest fit would not mind.
    let share = driver.submit(single(with_cpu(300, 9)));
    driver.settle();
    let taken = places(&driver);
    assert_eq!(taken.iter().filter(|(_, node, _)| *node == taken[0].1).count(), 2, "{taken:?}");
    assert!(driver.engine.life(share).is_some());
    assert_eq!(gpu_node(2).cpu, Cpu::cores(32));
}

fn eaches() -> impl Strategy<Value = Resources> {
    prop_oneof![2 => (1u64..20).prop_map(|twentieths| share(50 * twentieths)), 1 => (1u64..4).prop_map(gpus)]
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => eaches().prop_map(|each| Op::Submit(Box::new(single(each)))),
        2 => (0usize..50).prop_map(Op::End),
    ]
}

/// How many devices of a node nobody is on, and what is left of those that are shared.
fn left(driver: &Driver, node: NodeId) -> (u64, Vec<u64>) {
    let state = driver.engine.state();
    let (mut whole, mut shared) = (0, std::collections::BTreeMap::<DeviceId, u64>::new());
    for (id, held) in driver.engine.plan().iter() {
        let each = state.jobs[id].spec.roles[0].shape.each.gpus.0;
        for part in held.parts().iter().filter(|part| part.node == node) {
            match part.device {
                Some(device) => *shared.entry(device).or_default() += each,
                None => whole += each / 1000,
            }
        }
    }
    let devices = state.cluster.node(node).capacity.gpus.0 / 1000;
    let empty = devices.checked_sub(whole + shared.len() as u64).expect("no more devices than there are");
    (
        empty,
        shared.values().map(|taken| 1000u64.checked_sub(*taken).expect("no more than a device")).collect(),
    )
}

proptest! {
    #[test]
    fn nobody_waits_who_would_fit_and_nobody_runs_who_does_not(
        name in prop::sample::select(vec!["kubernetes", "coscheduling", "volcano", "fifo-skip", "metronome"]),
        ops in prop::collection::vec(ops(), 1..120),
    ) {
        let mut driver = Driver::new(racks(1, 3, 4), policy(name));
        for op in &ops {
            driver.apply(op);
            driver.settle();
            let rests: Vec<_> = (0..3).map(|node| left(&driver, NodeId(node))).collect();
            let waiting = driver.engine.state().jobs.iter().filter(|(_, job)| job.life.is_waiting());
            for (id, job) in waiting {
                let each = job.spec.roles[0].shape.each.gpus.0;
                let fits = |(empty, pieces): &(u64, Vec<u64>)| {
                    *empty >= each.div_ceil(1000) || each < 1000 && pieces.iter().any(|piece| *piece >= each)
                };
                prop_assert!(!rests.iter().any(fits), "{:?} waits for {} beside {:?}", id, each, rests);
            }
        }
    }
}
