//! The binary against a real API server: replicas that are killed, and what people are told.

mod explain;
mod failover;
mod jobs;
mod replica;
mod what_if;
