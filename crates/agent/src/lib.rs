//! The agent on a node: it learns what jobs send from byte counters, holds jobs to the lanes that were decided for
//! them, and takes what they report of their progress.

pub mod class_counters;
pub mod counters;
pub mod freezer;
pub mod intake;
pub mod marks;
pub mod members;
pub mod meter;
pub mod namespace;
pub mod observed;
pub mod pacer;
pub mod ports;
pub mod profile;
pub mod recording;
pub mod run;
pub mod turns;
mod watch;
mod windows;

pub use run::{AgentError, Options, run, run_until_told_to_stop};
