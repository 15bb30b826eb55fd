//! A world behind a Kubernetes API server.
//!
//! Watches bring objects, stripped to what scheduling needs (`objects`). The border translates them into the core's
//! neutral terms (`rules`, `world`). What the engine decides comes out as deeds (`deed`), which are carried out by
//! `act` and whose outcomes come back as events. Nothing but `act`, `watch`, `lead` and `serve` does any IO.

pub mod act;
pub mod agent;
pub mod ask;
mod backoff;
pub mod border;
mod bucket;
pub mod controller;
pub mod deed;
pub mod lead;
pub mod manifests;
pub mod metrics;
pub mod objects;
pub mod request;
pub mod rules;
pub mod run;
pub mod serve;
pub mod watch;
pub mod world;

pub use bucket::Limit;
