//! What is learned from running jobs: progress and learning curves, measured scaling, nodes on which members fail, and
//! nodes on which members are slower than their peers.
//!
//! A type belongs here if it folds reports of the world into an estimate. What follows from the estimate is decided in
//! [`decide`](crate::decide).

pub mod node_failures;
pub mod progress;
pub mod scaling;
pub mod slow_nodes;
