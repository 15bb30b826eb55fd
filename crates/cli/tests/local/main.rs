//! Jobs as real processes on this machine: namespaces, shaped links, control groups. Where that is not allowed, these tests
//! say so and are left out.

mod faults;
mod ground;
mod jobs;
mod kills;
mod mishaps;
mod mixes;
mod programs;
mod pytorch;
mod sdk;
mod sizes;
mod strangers;
mod trace;
