//! A world behind a Kubernetes API server.
//!
//! Watches bring objects, stripped to what scheduling needs (`objects`). The border translates them into the core's
//! neutral terms (`rules`, `world`). What the engine decides comes out as deeds (`deed`), which are carried out by
//! `act` and whose outcomes come back as events. Nothing but `act`, `watch`, `lead` and `serve` does any IO.

pub mod act;
mod backoff;
mod bucket;
pub mod deed;
pub mod lead;
pub mod metrics;
pub mod objects;
pub mod request;
pub mod watch;

pub use bucket::Limit;
