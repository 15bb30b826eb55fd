//! The binary against a real API server: replicas that are killed, what people are told, and how it is installed.

mod alerts;
mod audit;
mod everything;
mod explain;
mod failover;
mod guard;
mod helm;
mod install;
mod jobs;
mod lessened;
mod replica;
mod rights;
mod upgrade;
mod what_if;
