//! The decisions of Metronome: worlds send events, the engine keeps state and turns a snapshot into a plan with
//! reasons, a checker passes it, and the world carries out its steps.
//!
//! Nothing here reads a clock, a file or a random number: time is an argument, and the same input gives the same
//! bytes.

pub mod check;
pub mod cluster;
pub mod cpu;
pub mod decide;
mod devices;
pub mod engine;
pub mod forecast;
pub mod foresight;
pub mod groups;
pub mod id;
pub mod job;
pub mod journal;
pub mod lane;
pub mod meetings;
pub mod mishaps;
pub mod network;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod progress;
pub mod queue;
pub mod reconfiguration;
pub mod report;
pub mod room;
pub mod scaling;
pub mod snapshot;
pub mod stragglers;
pub mod taken;
pub mod timetable;
pub mod turns;
pub mod units;
pub mod wiring;
