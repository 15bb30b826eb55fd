//! A node made of network namespaces, real senders on it, and the agent beside them. Needs the rights to make namespaces;
//! without them it says so.

mod agent;
mod cgroup;
mod cost;
mod freezing;
mod learning;
mod marking;
mod namespaces;
mod sharing;
