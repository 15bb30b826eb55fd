//! The binary against a real API server: replicas that are killed, what people are told, and how it is installed.

mod agent;
mod alerts;
mod audit;
mod everything;
mod explain;
mod failover;
mod guard;
mod guide;
mod helm;
mod install;
mod jobs;
mod kubelet;
mod lessened;
mod logs;
mod replica;
mod rights;
mod runs;
mod training;
mod upgrade;
mod wait;
mod what_if;
