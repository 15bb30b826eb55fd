//! How good a node is for one more member.

use crate::model::units::Resources;

/// The default score of kube-scheduler: half for the least allocated node, half for the best balanced one, over the
/// resources the member asks for among CPU and memory; over GPUs where it asks for neither. What a node is not said to
/// have does not count: kube-scheduler's nodes have all of them. Where it picks one of the best at random, the first node
/// is taken here.
pub(super) fn kube_score(capacity: Resources, free: Resources, each: Resources) -> u64 {
    let asked = [
        (capacity.cpu.0, free.cpu.0, each.cpu.0),
        (capacity.memory.0, free.memory.0, each.memory.0),
        (capacity.gpus.0, free.gpus.0, each.gpus.0),
    ];
    let scored = if each.cpu.is_zero() && each.memory.is_zero() { &asked[2..] } else { &asked[..2] };
    let left = |(capacity, free, each): &(u64, u64, u64)| {
        (u128::from(free.saturating_sub(*each)) * 100_000 / u128::from(*capacity)) as u64
    };
    let shares: Vec<u64> = scored.iter().filter(|(capacity, ..)| *capacity > 0).map(left).collect();
    let least_allocated = shares.iter().sum::<u64>() / (shares.len() as u64).max(1);
    let imbalance = match shares[..] {
        [cpu, memory] => cpu.abs_diff(memory) / 2,
        _ => 0,
    };
    least_allocated + (100_000 - imbalance)
}

/// How full the node would be, over the resources the member asks for.
pub(super) fn fullness(capacity: Resources, free: Resources, each: Resources) -> u64 {
    let used = |capacity: u64, free: u64, each: u64| match (capacity, each) {
        (0, _) | (_, 0) => 0,
        _ => (u128::from(capacity - free.min(capacity) + each) * 100_000 / u128::from(capacity)) as u64,
    };
    used(capacity.cpu.0, free.cpu.0, each.cpu.0)
        + used(capacity.memory.0, free.memory.0, each.memory.0)
        + used(capacity.gpus.0, free.gpus.0, each.gpus.0)
}
