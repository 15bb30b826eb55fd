//! Counters as they would be read beside jobs of the thirteen models, alone and on a link that they share, and what is
//! learned from them beside what is true.

mod contention;
mod models;
mod properties;
mod world;
