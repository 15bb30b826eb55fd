//! The substrate for real: namespaces, links, groups and processes of this machine. Where the rights for it are
//! missing, a test says so and ends.

mod bursts;
mod cleaning;
mod flows;
mod full_disk;
mod lanes;
mod network;
mod processes;
mod worlds;
