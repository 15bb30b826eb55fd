//! Estimates from running jobs: progress and learning curves, measured scaling, failing nodes, and slow nodes.
//!
//! A type belongs here if it folds reports of the world into an estimate. [`decide`](crate::decide) acts on the
//! estimates.

pub mod node_failures;
pub mod progress;
pub mod scaling;
pub mod slow_nodes;
