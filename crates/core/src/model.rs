//! The nouns of scheduling, without any decision: units and ids, the cluster, jobs and queues, capacity in use and free
//! capacity, policies, the plan with its steps, and the typed reasons of a report.
//!
//! A type belongs here if more than one other room needs it and no decision is made in it.

pub mod allocated;
pub mod cluster;
pub mod cpu_weight;
pub mod devices;
pub mod free_capacity;
pub mod groups;
pub mod id;
pub mod job;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod queue;
pub mod report;
pub mod units;
