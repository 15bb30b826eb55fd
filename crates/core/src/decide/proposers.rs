//! The proposers, one file each. `decide` lists them in the order in which they are asked.

pub(super) mod bookings;
pub(super) mod cpu_weights;
pub(super) mod defragment;
pub(super) mod free_capacity;
pub(super) mod grow;
pub(super) mod leave_drained_nodes;
pub(super) mod leave_slow_nodes;
pub(super) mod move_for_cores;
pub(super) mod move_for_links;
pub(super) mod preempt;
pub(super) mod rank_order;
pub(super) mod reclaim;
pub(super) mod speculate;
pub(super) mod traffic;
pub(super) mod unused_members;
