//! The agent on a node: it learns what jobs send from byte counters, holds jobs to the lanes that were decided for
//! them, and takes what they report of their progress.

pub mod profile;
