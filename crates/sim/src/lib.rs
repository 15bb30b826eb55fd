//! A world with virtual time: the engine of `metronome-core`, driven by events that a queue puts in order.

pub mod compare;
pub mod encounter;
pub mod experiment;
pub mod import;
pub mod model;
pub mod near;
pub mod noise;
pub mod outcome;
pub mod report;
pub mod results;
pub mod scenario;
pub mod trace;
pub mod world;
